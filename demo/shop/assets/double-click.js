// Two buttons that order the same thing: one sends a request for each click, the other has one intention.
const page = document.querySelector('[data-view]');
const requestId = `double-click.${page.dataset.view}`;
const action = 'order.create';
const through = document.getElementById('through');
const json = { 'Content-Type': 'application/json' };
const post = (url, order, headers) => fetch(url, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(order) });

const guarded = '/api/orders?delay=800ms';
const ways = {
  unguarded: (order) => ({ sent: true, answer: post('/api/unguarded/orders?delay=800ms', order) }),
  guarded: (order) => (through.checked ? { sent: true, answer: past(order) } : once(order)),
};

let running = 0;
function once(order) {
  const sent = !running++;
  return { sent, answer: idem.fetch(guarded, { action, requestId, json: order }).finally(() => { running--; }) };
}

// past leaves the client out: each click is a request of its own under a token of the same intention, as a browser without JavaScript would send it.
async function past(order) {
  const { token } = await idem.token({ action, requestId });
  return post(guarded, order, { 'Idempotent-Token': token });
}

const sides = [...page.querySelectorAll('[data-side]')].map((element) => ({
  element, name: element.dataset.side, item: element.dataset.item, click: 0, request: 0, waiting: 0, lines: [],
  order: Number(element.querySelector('[data-count=order]').textContent),
}));
const fresh = sides.every((side) => side.order === 0); // otherwise the shop knows of clicks that this page did not see
sides.forEach((side) => side.element.querySelector('form').addEventListener('submit', (event) => {
  event.preventDefault();
  click(side);
}));

// What the client does unasked is a request, too.
document.addEventListener('idem:retry', ({ detail: { response } }) => {
  const side = sides.find(({ name }) => name === 'guarded');
  side.request++;
  side.lines[side.sent - 1].went.textContent += `, ${response?.status ?? 'no connection'}, sent again`;
  show(side);
});

async function click(side) {
  const { sent, answer } = ways[side.name]({ item: side.item, quantity: 1 });
  const line = begin(side, sent);
  side.waiting++;
  show(side);
  try {
    await finish(side, line, await answer);
  } catch (error) {
    line.made.textContent = `no answer: ${error.message}`;
  }
  side.waiting--;
  show(side);
}

function begin(side, sent) {
  history.replaceState(null, '', `?view=${page.dataset.view}`); // Back from a receipt: the shop says what it has
  side.click++;
  if (sent) {
    side.request++;
    side.sent = side.click;
  }
  const line = { element: make('li'), went: make('span', sent ? 'sent' : `joined click ${side.sent}`), made: make('span', 'waiting…'), since: performance.now() };
  line.went.className = 'quiet';
  line.made.className = 'made';
  line.element.append(make('span', `Click ${side.click}`), line.went, line.made);
  side.element.querySelector('[data-log]').append(line.element);
  side.lines.push(line);
  return line;
}

async function finish(side, line, response) {
  const took = `${Math.round(performance.now() - line.since)} ms`;
  const replayed = response.headers.get('Idempotent-Replayed') === 'true' ? ', replayed' : '';
  line.went.textContent += `, ${response.status}${replayed}, ${took}`;
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail ?? answer.title);
  line.id = answer.id;
  tell(side);
  side.order = await count(side.item);
}

// What the shop says, not what this page believes.
async function count(item) {
  const response = await fetch(`/api/orders?item=${encodeURIComponent(item)}`);
  return (await response.json()).count;
}

// Answers may come in another order than clicks: what is new and what is the same is told in the clicks' own.
function tell({ lines }) {
  lines.forEach((line, i) => {
    if (!line.id) return;
    const same = lines.slice(0, i).some((earlier) => earlier.id === line.id);
    line.element.className = same ? 'same' : 'new';
    const link = Object.assign(make('a', line.id), { href: `/orders/${line.id}` });
    line.made.replaceChildren(link, same ? ' the same order' : ' a new order');
  });
}

function show(side) {
  tell(side);
  side.element.classList.toggle('waiting', side.waiting > 0);
  side.element.classList.toggle('many', side.order > 1);
  side.element.classList.toggle('one', side.order === 1);
  for (const unit of ['order', 'click', 'request']) {
    const number = side.element.querySelector(`[data-count=${unit}]`);
    number.textContent = side[unit];
    number.previousElementSibling.textContent = side[unit] === 1 ? unit : `${unit}s`;
  }
  document.getElementById('verdict').textContent = verdict(...sides);
}

const make = (tag, textContent = '') => Object.assign(document.createElement(tag), { textContent });
const times = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;

function verdict(plain, kept) {
  if (plain.waiting || kept.waiting) return '';
  if (!fresh) return `The button without a guard made ${times(plain.order, 'order')}, the one with idem ${times(kept.order, 'order')}.`;
  const without = `${times(plain.click, 'click')} without a guard made ${times(plain.order, 'order')}`;
  const with_ = `${times(kept.click, 'click')} with idem made ${times(kept.order, 'order')}, and every click got its receipt.`;
  if (!kept.click) return `${without}. Now the other button.`;
  return plain.click ? `${without}; ${with_}` : with_;
}
