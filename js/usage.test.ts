// Compiled only: what applications write must have the types that the declarations give.
import { createClient, idem, type Detail } from './idem-client.js';

const client = createClient({
  retry: { limit: 2, statusCodes: [503], maxRetryAfter: 5000, backoffLimit: 5000, delay: (n) => n * 100, jitter: (ms) => ms / 2 },
  timeout: 5000, totalTimeout: false, pool: 4, origins: ['https://api.example'], tokenUrl: 'https://api.example/idem/token',
  headers: { Authorization: 'Bearer x' }, fetch, tokenHeader: 'X-Token', requestIdHeader: 'X-Intention',
});

export async function order(cart: unknown, signal: AbortSignal): Promise<Response> {
  const { requestId } = await client.token({ action: 'order.create' });
  await client.fetch('/api/orders', { action: 'order.create', requestId, json: cart, signal });
  await idem.fetch(new URL('/api/orders', location.href), { method: 'POST', body: new FormData(), headers: new Headers() });
  return idem.fetch(new Request('/api/orders'), { retry: { shouldRetry: ({ response, error, retryCount }) => !error && response?.ok && retryCount < 2 } });
}

document.addEventListener('idem:retry', ({ detail }) => show(detail.retryCount, detail.delay));
document.addEventListener('idem:offline', ({ detail }) => detail.cancel(new Error('not now')));
document.addEventListener('idem:success', ({ detail }) => detail.response?.headers.get('Location'));

function show(...values: (number | undefined)[]): Detail['requestId'] {
  return values.join();
}

const replacement: typeof fetch = client.fetch;
replacement('/').then((response) => response.ok);

// @ts-expect-error the name is limit
createClient({ retry: { limits: 2 } });
// @ts-expect-error an id is text
idem.fetch('/', { requestId: 1 });
// @ts-expect-error there is no such event
document.addEventListener('idem:started', ({ detail }) => detail);
// @ts-expect-error headers are of the client or of the call
createClient({ headers: 'x' });
