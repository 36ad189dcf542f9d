// Compiled only: what applications write must have the types that the declarations give.
import type { Idem } from './idem-client.js';

export async function order(idem: Idem): Promise<Response> {
  const intention = idem.intention('order.create');
  const response: Response = await intention.fetch('/api/orders', { method: 'POST', body: '{}' });
  // @ts-expect-error the name is attempts
  await idem.fetch('/api/orders', { method: 'POST', idem: { attempt: 2 } });
  return response;
}
