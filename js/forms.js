const LOCK_MS = 30_000; // a submission that went nowhere (stopped, answered 204, a download) gives the form back
const locks = new Map(); // form -> { event, timer, restore }

// What the application changes meanwhile is the application's: only our own value is taken back.
function label(button) {
  const busy = button.getAttribute('data-idem-busy');
  if (!busy) return () => {};
  if (button instanceof HTMLInputElement) {
    const before = button.value;
    button.value = busy;
    return () => { if (button.value === busy) button.value = before; };
  }
  const before = [...button.childNodes];
  button.replaceChildren(busy);
  return () => { if (button.textContent === busy) button.replaceChildren(...before); };
}

function dim(form, submitter) {
  const buttons = new Set(form.querySelectorAll('button:not([type]), [type=submit], [type=image]'));
  if (submitter) buttons.add(submitter);
  const undo = [...buttons].filter((button) => !button.hasAttribute('aria-disabled')).map((button) => {
    button.setAttribute('aria-disabled', 'true');
    return () => { if (button.getAttribute('aria-disabled') === 'true') button.removeAttribute('aria-disabled'); };
  });
  if (submitter) undo.push(label(submitter));
  return () => undo.forEach((step) => step());
}

function unlock(form) {
  const { timer, restore } = locks.get(form) ?? {};
  locks.delete(form);
  clearTimeout(timer);
  restore?.();
}

/** Guards the forms marked data-idem in this document. */
export function startForms() {
  // Capturing at the window comes before every handler, so a blocked submit reaches none. Whether one of them cancels
  // is known only after the event: the lock is taken at once and given back then. The buttons are touched after it too,
  // when the browser has collected the fields; a button disabled earlier would not be among them.
  addEventListener('submit', (event) => {
    const form = event.target;
    if (!form.matches?.('form[data-idem]')) return;
    const lock = locks.get(form);
    if ((lock && !lock.event.defaultPrevented) || event.submitter?.getAttribute('aria-disabled') === 'true') {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    unlock(form);
    const mine = { event };
    locks.set(form, mine);
    setTimeout(() => {
      if (locks.get(form) !== mine) return;
      if (event.defaultPrevented) return unlock(form);
      mine.restore = dim(form, event.submitter);
      mine.timer = setTimeout(unlock, Number(form.getAttribute('data-idem-timeout')) || LOCK_MS, form);
    });
  }, true);

  // A page that Back brought out of the cache is as it was left: locked.
  addEventListener('pageshow', (event) => { if (event.persisted) [...locks.keys()].forEach(unlock); });
}
