// The browser client: the default instance, and the forms where there is a document. Types and documentation: idem-client.d.ts
import { idem as client } from './client.js';
import { startForms } from './forms.js';

const first = !globalThis.idem; // a second copy would listen twice
if (first) globalThis.idem = Object.freeze({ ...client, forms: globalThis.document && startForms() });

export const { idem } = globalThis;
