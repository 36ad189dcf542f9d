const STATUS = '[data-idem-sending]';
const SUMMARY = '[role=alert][tabindex]';

// The region stands behind the form, for inside of aria-busy nothing is announced; one elsewhere in the page serves all forms without.
export function say(form, what) {
  const next = form.isConnected && form.nextElementSibling;
  const region = next && next.matches(STATUS) ? next : document.querySelector(STATUS);
  if (region) region.textContent = region.getAttribute(`data-idem-${what}`);
}

export const summarize = (form) => (form.querySelector(SUMMARY) ?? document.querySelector(SUMMARY))?.focus();

// show makes the form pending and returns what takes that back: of what the application changes meanwhile nothing.
export function show(form, submitter) {
  const undo = [];
  const set = (element, name, value) => {
    const before = element.getAttribute(name);
    element.setAttribute(name, value);
    undo.push(() => {
      if (element.getAttribute(name) !== value) return;
      if (before === null) element.removeAttribute(name);
      else element.setAttribute(name, before);
    });
  };
  // The name stays: a screen reader would read the button again, in the middle of what the region says.
  const label = (busy) => {
    const input = submitter.matches('input');
    const name = input ? submitter.value : submitter.innerText.trim();
    if (!name) return; // a picture
    if (!submitter.matches('[aria-labelledby]')) set(submitter, 'aria-label', submitter.getAttribute('aria-label') ?? name);
    if (input) return set(submitter, 'value', busy);
    const before = [...submitter.childNodes];
    submitter.replaceChildren(busy);
    undo.push(() => { if (submitter.textContent === busy) submitter.replaceChildren(...before); });
  };
  set(form, 'aria-busy', 'true');
  // Not form.elements: it has no pictures, and a field may have its name.
  for (const element of document.querySelectorAll('input, button, textarea')) {
    if (element.form !== form) continue;
    if (/^(submit|image)$/.test(element.type)) set(element, 'aria-disabled', 'true');
    else if (element.matches(':read-write')) set(element, 'readonly', ''); // a disabled one would lose focus, and its value
  }
  const busy = submitter?.getAttribute('data-idem-busy');
  if (busy) label(busy);
  return () => undo.forEach((step) => step());
}
