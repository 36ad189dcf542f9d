// Two buttons that order the same thing: one sends a request for each click, the other has one intention.
(() => {
  'use strict';
  const json = { 'Content-Type': 'application/json' };
  const intention = idem.intention('order.create');
  const ways = {
    unguarded: (body) => fetch('/api/unguarded/orders?delay=800ms', { method: 'POST', headers: json, body }),
    guarded: (body) => intention.fetch('/api/orders?delay=800ms', { method: 'POST', headers: json, body }),
  };

  const sides = [...document.querySelectorAll('[data-side]')].map((element) => ({
    element, name: element.dataset.side, item: element.dataset.item, clicks: 0, waiting: 0, orders: 0, lines: [],
  }));
  sides.forEach((side) => side.element.querySelector('form').addEventListener('submit', (event) => {
    event.preventDefault();
    click(side);
  }));

  async function click(side) {
    const line = log(side, `Click ${++side.clicks}`);
    side.waiting++;
    show(side);
    try {
      const response = await ways[side.name](JSON.stringify({ item: side.item, quantity: 1 }));
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.detail ?? answer.title);
      line.id = answer.id;
      side.orders = await count(side.item);
    } catch (error) {
      line.outcome.textContent = `no answer: ${error.message}`;
    }
    side.waiting--;
    show(side);
  }

  // What the shop says, not what this page believes.
  async function count(item) {
    const response = await fetch(`/api/orders?item=${encodeURIComponent(item)}`);
    return (await response.json()).count;
  }

  function log(side, label) {
    const make = (tag, textContent) => Object.assign(document.createElement(tag), { textContent });
    const line = { element: make('li', ''), outcome: make('span', 'waiting…'), id: undefined };
    line.element.append(make('span', label), line.outcome);
    side.element.querySelector('[data-log]').append(line.element);
    side.lines.push(line);
    return line;
  }

  // Answers may come in another order than clicks: what is new and what is the same is told in the clicks' own.
  function tell({ lines }) {
    lines.forEach((line, i) => {
      if (!line.id) return;
      const same = lines.slice(0, i).some((earlier) => earlier.id === line.id);
      line.element.className = same ? 'same' : 'new';
      const link = Object.assign(document.createElement('a'), { href: `/orders/${line.id}`, textContent: line.id });
      line.outcome.replaceChildren(link, same ? ' the same order' : ' a new order');
    });
  }

  function show(side) {
    tell(side);
    side.element.classList.toggle('waiting', side.waiting > 0);
    side.element.classList.toggle('many', side.orders > 1);
    side.element.classList.toggle('one', side.orders === 1);
    side.element.querySelector('[data-orders]').textContent = side.orders;
    side.element.querySelector('[data-unit]').textContent = side.orders === 1 ? 'order' : 'orders';
    document.getElementById('verdict').textContent = verdict(...sides);
  }

  const times = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;

  function verdict(unguarded, guarded) {
    if (unguarded.waiting || guarded.waiting || !(unguarded.orders + guarded.orders)) return '';
    const without = `${times(unguarded.clicks, 'click')} without a guard made ${times(unguarded.orders, 'order')}`;
    const kept = `${times(guarded.clicks, 'click')} with idem made ${times(guarded.orders, 'order')}, and every click got its receipt.`;
    if (!guarded.clicks) return `${without}. Now the other button.`;
    return unguarded.clicks ? `${without}; ${kept}` : kept;
  }
})();
