// A single-page order: one intention until the person starts a new one.
const $ = (id) => document.getElementById(id);
const action = 'order.create';
const intend = async () => (await idem.token({ action })).requestId; // of the first it is in the page already
let intention = intend();
let control;
let waiting = 0;

$('order').addEventListener('submit', (event) => {
  event.preventDefault();
  send();
});
$('stop').addEventListener('click', () => control?.abort(new Error('you stopped waiting')));
$('next').addEventListener('click', () => {
  control?.abort(new Error('you started a new order'));
  intention = intend();
  state('idle', 'Nothing sent yet');
  $('request').textContent = 'not known yet';
  $('answer').replaceChildren();
  note('A new intention.');
});

async function send() {
  const mine = intention;
  control ??= new AbortController();
  const { signal } = control;
  const json = { item: $('item').value, quantity: Number($('quantity').value) };
  note(waiting++ ? 'Clicked again: this joins the call that runs.' : 'Sent.');
  state('sending', 'Sending…');
  $('stop').hidden = false;
  try {
    const requestId = await mine;
    const response = await idem.fetch(`/api/orders${$('trouble').value}`, { action, requestId, json, signal });
    const answer = await response.json();
    if (mine === intention) show(requestId, response, answer);
  } catch (error) {
    if (mine === intention) {
      state('wrong', 'No answer');
      note(`No answer: ${error.message}. Press the button again; it is still the same order.`);
    }
  }
  if (--waiting) return;
  control = undefined;
  $('stop').hidden = true;
}

document.addEventListener('idem:retry', ({ detail: { retryCount, delay, response } }) => {
  state('sending', 'Trying again…');
  note(`Attempt ${retryCount}: ${response ? `answer ${response.status}` : 'no connection'}. Again in ${(delay / 1000).toFixed(1)} s.`);
});
document.addEventListener('idem:offline', () => {
  state('sending', 'Waiting for a network…');
  note('You are offline. It is sent as soon as you are not; or stop waiting.');
});

function show(requestId, response, answer) {
  $('request').textContent = requestId;
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

function line(tag, className, textContent) {
  return Object.assign(document.createElement(tag), { className, textContent });
}

function note(text) {
  $('log').prepend(line('li', '', text));
}
