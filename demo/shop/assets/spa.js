// A single-page order: one intention until the person starts a new one.
const $ = (id) => document.getElementById(id);
const action = 'order.create';
const unsent = () => ({ requestId: undefined, control: undefined, waiting: 0 }); // the request id is promised
let order = unsent();

$('order').addEventListener('submit', (event) => {
  event.preventDefault();
  send(order);
});
$('stop').addEventListener('click', () => order.control?.abort(new Error('you stopped waiting')));
$('next').addEventListener('click', () => {
  order.control?.abort(new Error('you started a new order'));
  order = unsent();
  delete sessionStorage.order;
  $('stop').hidden = true;
  $('request').textContent = 'not known yet';
  $('answer').replaceChildren();
  state('idle', 'Nothing sent yet');
  note('A new intention.');
});

// The first one's is in the page already. One that was sent and not answered before the page was loaded again goes on.
async function intend() {
  return sessionStorage.order ?? (await idem.token({ action })).requestId;
}

async function send(mine) {
  mine.control ??= new AbortController();
  const { signal } = mine.control;
  const json = { item: $('item').value, quantity: Number($('quantity').value) };
  note(mine.waiting++ ? 'Clicked again: this joins the call that runs.' : 'Sent.');
  state('sending', 'Sending…');
  $('stop').hidden = false;
  $('answer').replaceChildren();
  try {
    const requestId = await (mine.requestId ??= intend());
    if (mine === order) $('request').textContent = sessionStorage.order = requestId;
    const response = await idem.fetch(`/api/orders${$('trouble').value}`, { action, requestId, json, signal });
    const answer = await response.json();
    if (mine === order) show(response, answer);
  } catch (error) {
    if (!sessionStorage.order) mine.requestId = undefined; // there was none
    if (mine === order) {
      state('wrong', 'No answer');
      note(`No answer: ${error.message}. Press the button again; it is still the same order.`);
    }
  }
  if (--mine.waiting) return;
  mine.control = undefined;
  if (mine === order) $('stop').hidden = true;
}

document.addEventListener('idem:retry', ({ detail: { retryCount, delay, response } }) => {
  state('sending', 'Trying again…');
  note(`Attempt ${retryCount}: ${response ? `answer ${response.status}` : 'no connection'}. Again in ${(delay / 1000).toFixed(1)} s.`);
});
document.addEventListener('idem:offline', () => {
  state('sending', 'Waiting for a network…');
  note('You are offline. It is sent as soon as you are not; or stop waiting.');
});

function show(response, answer) {
  if (!response.ok) {
    state('wrong', `Refused: ${response.status}`);
    note(`${response.status} ${answer.code ?? answer.title}.`);
    $('answer').replaceChildren(line('p', 'says', answer.detail ?? answer.title));
    return;
  }
  delete sessionStorage.order;
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
