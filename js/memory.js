import { document, listen } from './page.js';

/** The intentions that were begun and not finished: key to { token, requestId, fresh }. */
export let unfinished = {};

let away;

// Kept only while nobody looks at the page: a duplicate of a living tab, which gets a copy of the storage, finds nothing in it. What is found counts,
// not what this page remembers: another page of the tab may have finished some meanwhile. A frame shares the storage with the page around it.
// Absent, full or denied storage is a memory that ends with the page.
function turn(seen) {
  try {
    const name = `idem${location.pathname}`;
    away = !seen;
    if (away) sessionStorage[name] = JSON.stringify(unfinished);
    else {
      unfinished = JSON.parse(sessionStorage[name]); // fails where there is none
      delete sessionStorage[name];
    }
  } catch {}
}

/** To be called after each change of unfinished. */
export const save = () => away && turn();

/** Short, because what was typed does not belong in storage. 64 bits keep others apart. */
export function digest(parts) {
  let a = 0, b = 0;
  const text = String(parts);
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x1000193);
    b = Math.imul(b, 31) + a | 0;
  }
  return [a, b];
}

/** Begins to remember. */
export function start() {
  listen('pagehide', () => turn());
  listen('pageshow', turn);
  listen('visibilitychange', () => turn(!document.hidden));
  turn(true);
}
