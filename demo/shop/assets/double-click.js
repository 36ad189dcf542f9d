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
    element, name: element.dataset.side, item: element.dataset.item, clicks: 0, waiting: 0, orders: 0, seen: new Set(),
  }));
  sides.forEach((side) => side.element.querySelector('form').addEventListener('submit', (event) => {
    event.preventDefault();
    click(side);
  }));

  async function click(side) {
    side.clicks++;
    side.waiting++;
    const line = log(side, `Click ${side.clicks}`);
    show(side);
    try {
      const response = await ways[side.name](JSON.stringify({ item: side.item, quantity: 1 }));
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.detail || answer.title);
      const again = side.seen.has(answer.id);
      side.seen.add(answer.id);
      line.say(answer.id, again ? 'the same order' : 'a new order', `/orders/${answer.id}`);
      line.element.classList.add(again ? 'same' : 'new');
      side.orders = await count(side.item);
    } catch (error) {
      line.say('', `no answer: ${error.message}`);
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
    const element = document.createElement('li');
    const outcome = document.createElement('span');
    outcome.textContent = 'waiting…';
    element.append(Object.assign(document.createElement('span'), { textContent: label }), outcome);
    side.element.querySelector('[data-log]').append(element);
    const say = (id, text, url) => {
      outcome.textContent = text;
      if (id) outcome.prepend(Object.assign(document.createElement('a'), { href: url, textContent: id }), ' ');
    };
    return { element, say };
  }

  function show(side) {
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
    if (guarded.clicks === 0) return `${times(unguarded.clicks, 'click')}, ${times(unguarded.orders, 'order')}. Now double-click the other one.`;
    const one = `${times(guarded.clicks, 'click')} with idem made ${times(guarded.orders, 'order')}, and every click got its receipt`;
    if (unguarded.clicks === 0) return `${one}.`;
    return `${one}; ${times(unguarded.clicks, 'click')} without made ${unguarded.orders}.`;
  }
})();
