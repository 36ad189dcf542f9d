// The hook for Turbo 8: forms marked data-idem that Turbo sends. Load it beside idem-client.js, before or after Turbo. What it needs of the
// client's forms is described in htmx.js.
const REST_MS = 500; // as long as the client's forms swallow clicks after a success
const busy = new Map(); // forms that Turbo is sending -> the submitter, and the forms that were in the page before the answer
const recent = new Set(); // of the answers that came just now, those forms before
const refused = new WeakSet(); // answers

const marked = (element) => element.matches?.('form[data-idem]');
const on = (name, step, options) => addEventListener(`turbo:${name}`, step, options);

// A click on a form that an answer has just brought still meant its predecessor.
addEventListener('submit', (event) => {
  if (!marked(event.target) || [...recent].every((before) => before.has(event.target))) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

function give(form, done, sending = busy.get(form)) {
  if (!sending || busy.get(form) !== sending) return;
  busy.delete(form);
  globalThis.idem.forms.give(form, done);
  if (!done || !sending.before) return;
  recent.add(sending.before);
  setTimeout(() => recent.delete(sending.before), REST_MS);
}

// Turbo aborts a submission for the next one, of whatever form. That undoes nothing: the answer is worth waiting for.
on('before-fetch-request', ({ target, detail: { fetchOptions } }) => { if (marked(target)) delete fetchOptions.signal; });

on('submit-start', ({ target, detail: { formSubmission } }) => {
  if (marked(target) && !formSubmission.isSafe && globalThis.idem.forms.take(target, formSubmission.submitter)) {
    busy.set(target, { submitter: formSubmission.submitter });
  }
});

// After a redirect the form is on a page that is about to go.
on('submit-end', ({ target, detail: { success, fetchResponse } }) => {
  if (!success || !fetchResponse.redirected) return give(target, success);
  const sending = busy.get(target);
  for (const next of ['render', 'frame-render']) on(next, () => give(target, true, sending), { once: true });
});

// A page is kept as it looks, and would come back as it was left: busy, by Turbo's own marks too.
on('before-cache', () => {
  for (const [form, { submitter }] of busy) {
    give(form, false);
    form.removeAttribute('aria-busy');
    if (submitter) submitter.disabled = false;
  }
});

on('before-fetch-response', ({ target, detail: { fetchResponse } }) => {
  if (busy.has(target)) busy.get(target).before = new WeakSet(document.forms);
  if (marked(target) && !fetchResponse.succeeded) refused.add(fetchResponse.response);
});

// A refusal is a page of its own and has no frame of that name.
on('frame-missing', (event) => {
  if (!refused.has(event.detail.response)) return;
  event.preventDefault();
  event.detail.visit(event.detail.response);
});
