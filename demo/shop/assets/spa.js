// A single-page order: one intention until the person starts a new one.
(() => {
  'use strict';
  const $ = (id) => document.getElementById(id);
  const form = $('order');
  let intention = idem.intention('order.create');
  let control;

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  $('stop').addEventListener('click', () => control?.abort(new Error('you stopped waiting')));
  $('next').addEventListener('click', () => {
    control?.abort(new Error('you started a new order'));
    intention = idem.intention('order.create');
    state('idle', 'Nothing sent yet');
    $('request').textContent = 'not known yet';
    $('answer').replaceChildren();
    note('A new intention.');
  });

  async function send() {
    const mine = intention;
    control ??= new AbortController();
    const order = { item: $('item').value, quantity: Number($('quantity').value) };
    note(mine.pending ? 'Clicked again: this joins the call that runs.' : 'Sent.');
    state('sending', 'Sending…');
    $('stop').hidden = false;
    try {
      const response = await mine.fetch(`/api/orders${$('trouble').value}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(order),
        signal: control.signal,
        idem: { onwait: retrying },
      });
      const answer = await response.json();
      if (mine === intention) show(response, answer);
    } catch (error) {
      if (mine === intention) {
        state('wrong', 'No answer');
        note(`No answer: ${error.message}. Press the button again; it is still the same order.`);
      }
    }
    if (mine.pending) return;
    control = undefined;
    $('stop').hidden = true;
  }

  function retrying({ attempt, delay, response }) {
    state('sending', 'Trying again…');
    note(`Attempt ${attempt}: ${response ? `answer ${response.status}` : 'no connection'}. Again in ${(delay / 1000).toFixed(1)} s.`);
  }

  function show(response, answer) {
    $('request').textContent = intention.requestId ?? 'unknown';
    if (!response.ok) {
      state('wrong', `Refused: ${response.status}`);
      note(`${response.status} ${answer.code ?? answer.title}.`);
      $('answer').replaceChildren(line('p', 'says', answer.detail ?? answer.title));
      return;
    }
    const replayed = response.headers.get('Idempotent-Replayed') === 'true';
    state('done', replayed ? 'Done before' : 'Done');
    note(replayed ? 'The first answer again: Idempotent-Replayed.' : `201, attempt ${answer.attempt}.`);
    const link = Object.assign(line('a', '', `${answer.quantity} × ${answer.item}`), { href: `/orders/${answer.id}` });
    const receipt = line('p', 'got', '');
    receipt.append(link, line('code', '', answer.id));
    $('answer').replaceChildren(receipt);
  }

  function state(kind, text) {
    $('pill').dataset.state = kind;
    $('pill').textContent = text;
  }

  const line = (tag, className, textContent) => Object.assign(document.createElement(tag), { className, textContent });
  const note = (text) => $('log').prepend(line('li', '', text));
})();
