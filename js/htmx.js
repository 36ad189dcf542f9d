// The hook for htmx 2 and 4: forms marked data-idem that htmx sends. Load it beside idem-client.js, before or after htmx.
//
// It needs two things of the client's forms, globalThis.idem.forms:
//   take(form, submitter)  a library sends the form: locked and pending, as if the browser had sent it. False: it is being sent already.
//   give(form, done)       the answer is there. Not done: the form is given back at once and keeps its token. Done: a form that is still
//                          in the page gets a fresh token and is given back when that is in, not before 500 ms.
const TOKEN = 'idempotent_token';
const REST_MS = 500; // as long as the client's forms swallow clicks after a success
const sent = new Map(); // htmx 2's xhr or htmx 4's ctx -> the form, and the forms that were in the page before the answer
const recent = new Set(); // of the answers that come into the page, or came just now, those forms before

const on = (names, step, options) => names.split(' ').forEach((name) => addEventListener(name, step, options));
const marked = (element) => element?.matches('form[data-idem]');

function asked({ ctx, elt, requestConfig = {}, verb = requestConfig.verb }) {
  const source = ctx?.sourceElement ?? elt;
  const form = source.matches('form') ? source : source.form ?? source.closest('form');
  const method = (ctx?.request.method ?? verb).toUpperCase();
  return { source, method, form: method !== 'GET' && marked(form) ? form : undefined };
}

// A click on a form that an answer has just brought still meant its predecessor. htmx 2 lets the browser send it at first.
const unmeant = (form) => marked(form) && [...recent].some((before) => !before.has(form));
addEventListener('submit', (event) => {
  if (!unmeant(event.target)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

// A token that htmx would put into the URL goes into the header: there it would be refused, and logged on the way.
on('htmx:configRequest htmx:config:request', ({ detail }) => {
  const { form, method } = asked(detail);
  const { headers, body, formData = body, useUrlParams = method === 'DELETE' } = detail.ctx?.request ?? detail;
  const token = form?.elements[TOKEN]?.value;
  if (!token || !useUrlParams) return;
  formData.delete(TOKEN);
  headers['Idempotent-Token'] = token;
});

on('htmx:beforeRequest htmx:before:request', (event) => {
  const { ctx, xhr, requestConfig } = event.detail;
  const { form, source } = asked(event.detail);
  if (!form || event.defaultPrevented) return;
  const { submitter } = ctx?.request ?? requestConfig.triggeringEvent ?? {};
  const gone = !form.isConnected; // htmx queues a second click, and sends it when the first is answered
  if (gone || unmeant(form) || !globalThis.idem.forms.take(form, submitter)) return event.preventDefault();
  sent.set(ctx ?? xhr, { form });
  const refusal = source.previousElementSibling;
  if (refusal?.matches('.idem-problem')) refusal.remove();
});

on('htmx:beforeSwap htmx:before:swap', ({ detail: { ctx, xhr } }) => {
  const sending = sent.get(ctx ?? xhr);
  if (sending) recent.add(sending.before = new WeakSet(document.forms));
});

function give(request, done) {
  const { form, before } = sent.get(request) ?? {};
  if (!sent.delete(request)) return;
  globalThis.idem.forms.give(form, done);
  setTimeout(() => recent.delete(before), done ? REST_MS : 0);
}

// Where the answer leads elsewhere, the page is about to go: until it does, the form is being sent.
on('htmx:afterRequest htmx:onLoadError htmx:finally:request', ({ detail: { ctx, xhr } }) => {
  const { status } = (ctx ? ctx.response : xhr) ?? {};
  const header = (name) => (ctx ? ctx.response.headers.get(name) : xhr.getResponseHeader(name));
  const done = status >= 200 && status < 400;
  if (!done || !['HX-Redirect', 'HX-Refresh', 'HX-Location'].some(header)) give(ctx ?? xhr, done);
  else on('htmx:afterSwap htmx:after:swap', () => give(ctx ?? xhr, true), { once: true });
});

// htmx 2 shows no answer of 400 and above, unless told. Where it goes, the server says.
on('htmx:beforeSwap', ({ detail }) => {
  if (detail.xhr?.status >= 400 && detail.xhr.getResponseHeader('HX-Retarget')) detail.shouldSwap = true;
});
