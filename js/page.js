/** What a page has and other places have not. */
export const { document, navigator, origin, addEventListener: listen = () => {} } = globalThis;

export const meta = (name) => document?.querySelector(`[name=idem-${name}]`)?.content;
