import { say, show, summarize } from './pending.js';

const LIMIT = 30_000; // a submission that went nowhere (stopped, answered 204, a download) gives the form back
const locks = new WeakMap(); // form -> { event, timers, undo }
const due = new WeakMap(); // form -> { token, at }
let issue;

const field = (form) => form.querySelector('[name=idempotent_token]');
const marked = () => document.querySelectorAll('form[data-idem]');

// A prevented submission counts until its form is shown as pending: a handler that checks first may send it again at once.
const locked = (form) => {
  const lock = locks.get(form);
  return lock && (lock.undo || !lock.event.defaultPrevented);
};

/** The form is being sent: it is pending until give. False: it is being sent already. */
export function take(form, submitter) {
  const lock = locks.get(form) ?? {};
  if (lock.undo) return false;
  const limit = +form.getAttribute('data-idem-timeout') || LIMIT;
  locks.set(form, lock);
  lock.undo = show(form, submitter);
  say(form, 'sending');
  lock.timers = [setTimeout(say, Math.min(15_000, limit / 2), form, 'working'), setTimeout(free, limit, form)];
  return true;
}

function free(form, what = '') {
  const { timers = [], undo } = locks.get(form) ?? {};
  locks.delete(form);
  timers.forEach(clearTimeout);
  undo?.();
  if (undo) say(form, what);
}

/**
 * The answer is there. Not done: the form is given back at once, with its token. Done: if it is still in the page it gets a fresh token, and is
 * given back when that is in, but not before 500 ms, in which a second click is a double click's.
 */
export async function give(form, done) {
  if (!done) {
    free(form, 'failed');
    return summarize(form);
  }
  const pause = new Promise((resolve) => { setTimeout(resolve, 500); });
  if (form.isConnected) await Promise.all([renew(form, true), pause]);
  free(form, 'done');
}

// The claims of a token (RFC 7519); none of what is no token.
function claims(token) {
  try {
    return JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')));
  } catch {
    return {};
  }
}

// Without a fresh one the old one stays: the server knows what to do.
async function renew(form, anew) {
  const input = field(form);
  const { value } = input ?? {};
  const { act: action, rid, sub } = claims(value);
  if (!action) return;
  try {
    const { token, requestId } = await issue({ action, requestId: anew ? undefined : rid, tokenUrl: form.getAttribute('data-idem') });
    // Another person may have logged in meanwhile: the server asks before it takes what the first one typed.
    if (input.value !== value || (!anew && claims(token).sub !== sub)) return;
    // What is put in as a value Firefox would bring back on reload, in a page with a newer token.
    input.setAttribute('value', token);
    form.querySelector('[name=idempotent_request_id]')?.setAttribute('value', requestId);
    watch(form);
  } catch {}
}

// Renews the token before its end. Its life is counted from when it is first seen: people's clocks are wrong.
function watch(form) {
  const input = field(form);
  const { iat, exp } = claims(input?.value);
  if (!exp || !form.isConnected) return;
  const known = due.get(form);
  if (known?.token !== input.value) {
    const ms = Math.min((exp - iat) * 600, 8e7);
    due.set(form, { token: input.value, at: Date.now() + ms });
    setTimeout(watch, ms + 9, form);
  } else if (known.at > Date.now()) {
    return;
  } else if (document.hidden) {
    document.addEventListener('visibilitychange', () => watch(form), { once: true });
  } else {
    renew(form);
  }
}

// Capturing at the window comes before every handler, so a blocked submit reaches none. Whether one of them cancels is known only after the event. The
// buttons are touched after it too, when the browser has collected the fields: a button disabled earlier would not be among them.
function submitted(event) {
  const { target: form, submitter } = event;
  // A dialog that is closed sends nothing.
  if (!form.matches?.('form[data-idem]') || (submitter?.formMethod || form.method) === 'dialog') return;
  if (locked(form) || submitter?.getAttribute('aria-disabled') === 'true') {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  const lock = { event };
  locks.set(form, lock);
  setTimeout(() => { if (locks.get(form) === lock && !event.defaultPrevented) take(form, submitter); });
}

// A page that Back brought out of the cache is as it was left: locked, with a token that may have expired. It is renewed, not replaced: the same again
// is a duplicate, and the server tells of other content under it.
function shown({ persisted }) {
  if (!persisted) return;
  for (const form of marked()) {
    const next = locks.has(form) ? renew : watch;
    free(form, 'sent');
    next(form);
  }
}

/** Guards the forms marked data-idem in this document. ask gives tokens, as a client's token does. What it returns is for libraries that send forms themselves. */
export function startForms(ask) {
  issue = ask;
  addEventListener('submit', submitted, true);
  addEventListener('pageshow', shown);
  addEventListener('focusin', ({ target }) => {
    const form = target.form ?? target.closest?.('form');
    if (form?.matches('form[data-idem]')) watch(form);
  });
  marked().forEach(watch);
  const { prototype } = HTMLFormElement;
  const { submit } = prototype;
  prototype.submit = function () { // has no event
    if (!this.matches('form[data-idem]')) return submit.call(this);
    if (locks.get(this)?.undo) return; // not within its own submit event, which may be cancelled yet
    submit.call(this);
    take(this);
  };
  return { take, give };
}
