// The browser client: createClient, the default instance, and the forms where there is a document. Types and documentation: idem-client.d.ts
import { createClient as create } from './client.js';
import { startForms } from './forms.js';
import { document } from './page.js';

if (!globalThis.idem) { // a second copy would listen and remember twice
  const client = create();
  globalThis.idem = { ...client, createClient: create, forms: document && startForms(client.token) };
}

export const { idem } = globalThis;
export const { createClient } = idem;
