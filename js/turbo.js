// The hook for Turbo 8: forms marked data-idem that Turbo sends. Load it beside idem-client.js, before or after Turbo. What it needs of the
// client's forms is described in htmx.js.
const busy = new Map(); // forms that Turbo is sending -> submitter
const refused = new WeakSet(); // answers

const marked = (element) => element.matches?.('form[data-idem]');
const on = (name, step) => addEventListener(`turbo:${name}`, step);

function give(form, done) {
  if (busy.delete(form)) globalThis.idem.forms.give(form, done);
}

// Turbo aborts a submission for the next one, of whatever form. That undoes nothing: the answer is worth waiting for.
on('before-fetch-request', ({ target, detail: { fetchOptions } }) => { if (marked(target)) delete fetchOptions.signal; });

on('submit-start', ({ target, detail: { formSubmission } }) => {
  if (marked(target) && !formSubmission.isSafe && globalThis.idem.forms.take(target, formSubmission.submitter)) {
    busy.set(target, formSubmission.submitter);
  }
});

// After a redirect the form is on a page that is about to go.
on('submit-end', ({ target, detail: { success, fetchResponse } }) => {
  if (success && fetchResponse.redirected) for (const next of ['render', 'frame-render']) on(next, () => give(target, true));
  else give(target, success);
});

// A page is kept as it looks, and would come back as it was left: busy, by Turbo's own marks too.
on('before-cache', () => {
  for (const [form, submitter] of busy) {
    give(form, false);
    form.removeAttribute('aria-busy');
    if (submitter) submitter.disabled = false;
  }
});

on('before-fetch-response', ({ target, detail: { fetchResponse } }) => {
  if (marked(target) && !fetchResponse.succeeded) refused.add(fetchResponse.response);
});

// A refusal is a page of its own and has no frame of that name.
on('frame-missing', (event) => {
  if (!refused.has(event.detail.response)) return;
  event.preventDefault();
  event.detail.visit(event.detail.response);
});
