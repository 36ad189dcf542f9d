import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Service, problem } from './service.mjs';
import './idem-client.js';

const { idem } = globalThis;
const service = new Service();
let options;
before(async () => { options = { backoff: 1, tokenUrl: `${await service.listen()}/token` }; });
after(() => service.close());
beforeEach(() => {
  service.reset();
  globalThis.sessionStorage = service.storage;
});
const order = (more) => idem.intention('order.create', { ...options, ...more });
const url = () => `${service.base}/orders`;
const post = (body = '{"item":"tea"}', more = {}) => ({ method: 'POST', body, ...more });
const requestIds = () => new Set(service.calls.map((c) => c.headers['idempotent-request-id'])).size;

describe('repeating', () => {
  const repeated = {
    'a lost connection': { destroy: true }, 'request timeout': { status: 408 }, 'bad gateway': { status: 502 },
    'unavailable': { status: 503 }, 'gateway timeout': { status: 504 }, 'in progress': problem(409, 'in_progress'),
    'too many, come back': { status: 429, headers: { 'Retry-After': '0' } },
  };
  for (const [name, answer] of Object.entries(repeated)) {
    test(`${name}: the same token, request id and bytes`, async () => {
      service.answers('/orders', answer, answer);
      const response = await order().fetch(url(), post());
      assert.equal(response.status, 201);
      assert.equal(service.calls.length, 3);
      assert.equal(service.issued.length, 1);
      for (const call of service.calls) {
        assert.equal(call.headers['idempotent-token'], 'token-1');
        assert.equal(call.headers['idempotent-request-id'], 'request-1');
        assert.equal(String(call.body), '{"item":"tea"}');
      }
    });
  }

  const final = {
    'redirect without location': { status: 303 }, 'bad request': { status: 400 }, 'forbidden': { status: 403 },
    'token used': problem(409, 'token_used'), 'a conflict of the application': { status: 409, body: 'in_progress' },
    'mismatch': problem(422, 'payload_mismatch'), 'suppressed duplicate': problem(429, 'duplicate_in_window'),
    'server error': { status: 500 },
  };
  for (const [name, answer] of Object.entries(final)) {
    test(`${name}: returned, body and all`, async () => {
      service.answers('/orders', answer);
      const response = await order().fetch(url(), post());
      assert.equal(response.status, answer.status);
      assert.equal(await response.text(), answer.body ?? '');
      assert.equal(service.calls.length, 1);
    });
  }

  test('ends after five attempts with the last answer', async () => {
    service.answers('/orders', ...Array(9).fill({ status: 503, body: 'away' }));
    const response = await order().fetch(url(), post());
    assert.equal(await response.text(), 'away');
    assert.equal(service.calls.length, 5);
  });

  test('doubles the wait, at random up to half of it less', async () => {
    service.answers('/orders', ...Array(4).fill({ status: 503 }));
    const delays = [];
    await order({ backoff: 8, onwait: ({ delay }) => delays.push(delay) }).fetch(url(), post());
    assert.equal(delays.length, 4);
    delays.forEach((delay, i) => assert.ok(delay >= 4 * 2 ** i && delay <= 8 * 2 ** i, `wait ${i + 1}: ${delay}`));
  });

  test('honours Retry-After, as seconds and as a date', async () => {
    const date = new Date(Date.now() + 2000).toUTCString();
    service.answers('/orders', { status: 503, headers: { 'Retry-After': '0' } }, { status: 503, headers: { 'Retry-After': date } });
    const delays = [];
    await order({ backoff: 20_000, onwait: ({ delay }) => delays.push(delay) }).fetch(url(), post());
    assert.equal(delays[0], 0);
    assert.ok(delays[1] <= 2000, `${delays[1]}`);
  });

  test('returns the answer rather than come back earlier than asked', async () => {
    service.answers('/orders', { status: 503, headers: { 'Retry-After': '31' } });
    assert.equal((await order().fetch(url(), post())).status, 503);
    assert.equal(service.calls.length, 1);
  });

  test('an attempt that gets no answer in time is repeated', async () => {
    service.hold();
    const answer = order({ timeout: 60, onwait: () => service.release() }).fetch(url(), post());
    assert.equal((await answer).status, 201);
    assert.equal(service.calls.length, 2);
    assert.equal(requestIds(), 1);
  });
});

describe('bytes are equal on every attempt', () => {
  const form = new FormData();
  form.append('item', 'tea');
  form.append('attachment', new Blob([new Uint8Array([0, 255, 13, 10])]), 'a.bin');
  const stream = () => new Blob(['streamed']).stream();
  const bodies = {
    text: () => post('ü\r\n'), form: () => post(form), fields: () => post(new URLSearchParams({ a: '1 2' })),
    bytes: () => post(new Uint8Array([0, 1, 254])), stream: () => post(stream(), { duplex: 'half' }), empty: () => post(''),
    none: () => ({ method: 'POST' }), request: () => new Request(url(), post('in a Request')),
  };
  for (const [name, body] of Object.entries(bodies)) {
    test(name, async () => {
      service.answers('/orders', { status: 503 }, { destroy: true });
      const init = body();
      const response = init instanceof Request ? await order().fetch(init) : await order().fetch(url(), init);
      assert.equal(response.status, 201);
      const [first, ...others] = service.calls;
      assert.equal(others.length, 2);
      for (const call of others) {
        assert.deepEqual(call.body, first.body);
        assert.equal(call.headers['content-type'], first.headers['content-type']);
      }
      assert.equal(first.body.length > 0, name !== 'empty' && name !== 'none');
    });
  }
});

describe('joining', () => {
  for (const [name, call] of Object.entries({
    'an intention': () => { const mine = order(); return (init) => mine.fetch(url(), init); },
    'idem.fetch': () => (init) => idem.fetch(url(), { ...init, idem: { ...options, action: 'order.create' } }),
  })) {
    test(`${name}: equal calls make one request for a token and one call, and all get the answer`, async () => {
      const fetch = call();
      const answers = await Promise.all([fetch(post()), fetch(post()), fetch(post())]);
      assert.deepEqual(await Promise.all(answers.map((a) => a.json())), [{ id: 1 }, { id: 1 }, { id: 1 }]);
      assert.equal(service.issued.length, 1);
      assert.equal(service.calls.length, 1);
    });
  }

  test('another payload of an intention waits, and goes under the same request id', async () => {
    service.hold();
    const mine = order();
    const first = mine.fetch(url(), post('1'));
    const second = mine.fetch(url(), post('2'));
    await service.reached(1);
    assert.equal(mine.pending, true);
    service.release();
    await Promise.all([first, second]);
    assert.equal(mine.pending, false);
    assert.deepEqual(service.calls.map((c) => String(c.body)), ['1', '2']);
    assert.equal(requestIds(), 1);
  });

  test('idem.fetch with another payload, or once answered, is another intention', async () => {
    const fetch = (body) => idem.fetch(url(), { ...post(body), idem: options });
    await Promise.all([fetch('1'), fetch('2')]);
    await fetch('1');
    assert.equal(requestIds(), 3);
  });
});

describe('equal calls that the caller keeps apart are not joined', () => {
  const apart = {
    'by Idempotency-Key': (n) => ({ headers: { 'Idempotency-Key': `k-${n}` } }),
    'by Idempotent-Token': (n) => ({ headers: { 'Idempotent-Token': `t-${n}` } }),
    'by Idempotent-Request-Id': (n) => ({ headers: { 'Idempotent-Request-Id': `request-of-${n}` } }),
    'by who asks': (n) => ({ headers: { Authorization: `Bearer ${n}` } }),
    'by requestId': (n) => ({ idem: { ...options, requestId: `request-of-${n}` } }),
    'by action': (n) => ({ idem: { ...options, action: `action-${n}` } }),
  };
  for (const [name, more] of Object.entries(apart)) {
    test(name, async () => {
      await Promise.all([1, 2].map((n) => idem.fetch(url(), { ...post(), idem: options, ...more(n) })));
      assert.equal(service.calls.length, 2);
    });
  }

  test('a trace header keeps nothing apart', async () => {
    await Promise.all([1, 2].map((n) => idem.fetch(url(), { ...post(), idem: options, headers: { 'X-Trace': `${n}` } })));
    assert.equal(service.calls.length, 1);
  });

  test('Idempotent-Request-Id of the caller is the one that is sent, with a token for it', async () => {
    await idem.fetch(url(), { ...post(), idem: options, headers: { 'Idempotent-Request-Id': 'request-of-mine' } });
    assert.equal(service.issued[0].requestId, 'request-of-mine');
    assert.equal(service.calls[0].headers['idempotent-request-id'], 'request-of-mine');
  });
});

describe('a call that was not answered keeps its request id', () => {
  const fetch = (body, more) => idem.fetch(url(), { ...post(body), idem: { ...options, attempts: 1, ...more } });
  for (const [name, answer] of Object.entries({ 'lost': { destroy: true }, 'failed': { status: 500 }, 'away': { status: 503 } })) {
    test(`${name}: the same again, as after a reload`, async () => {
      service.answers('/orders', answer);
      await fetch('1').catch(() => {});
      assert.equal(service.stored.size, 1);
      await fetch('1');
      assert.equal(requestIds(), 1);
      assert.equal(service.stored.size, 0);
    });
    test(`${name}: another payload is another intention`, async () => {
      service.answers('/orders', answer);
      await fetch('1').catch(() => {});
      await fetch('2');
      assert.equal(requestIds(), 2);
    });
  }

  test('forms compare by their fields', async () => {
    const form = (item) => { const f = new FormData(); f.append('item', item); return f; };
    service.answers('/orders', { destroy: true });
    await fetch(form('tea')).catch(() => {});
    await fetch(form('tea'));
    await fetch(form('milk'));
    assert.equal(requestIds(), 2);
  });

  test('storage that throws changes nothing', async () => {
    Object.defineProperty(globalThis, 'sessionStorage', { configurable: true, get() { throw new Error('denied'); } });
    const response = await fetch('1');
    Object.defineProperty(globalThis, 'sessionStorage', { configurable: true, writable: true, value: service.storage });
    assert.equal(response.status, 201);
  });
});

describe('aborting', () => {
  const reason = new Error('the person left');
  const aborted = (error) => error === reason;

  test('before: nothing is sent', async () => {
    await assert.rejects(order().fetch(url(), post('1', { signal: AbortSignal.abort(reason) })), aborted);
    assert.equal(service.issued.length + service.calls.length, 0);
  });

  test('while waiting: at once', async () => {
    service.answers('/orders', { status: 503, headers: { 'Retry-After': '20' } });
    const control = new AbortController();
    let since;
    const onwait = () => setImmediate(() => { since = performance.now(); control.abort(reason); });
    await assert.rejects(order({ onwait }).fetch(url(), post('1', { signal: control.signal })), aborted);
    assert.ok(performance.now() - since < 50);
  });

  test('while running: the connection ends, and a new call does not join the dead one', async () => {
    service.hold();
    const control = new AbortController();
    const mine = order();
    const first = mine.fetch(url(), post('1', { signal: control.signal }));
    await service.reached(1);
    control.abort(reason);
    await assert.rejects(first, aborted);
    assert.equal(mine.pending, false);
    service.release();
    assert.equal((await mine.fetch(url(), post('1'))).status, 201);
    assert.equal(requestIds(), 1);
  });

  test('one of two: the other gets the answer', async () => {
    service.hold();
    const control = new AbortController();
    const mine = order();
    const first = mine.fetch(url(), post('1', { signal: control.signal }));
    const second = mine.fetch(url(), post('1'));
    await service.reached(1);
    control.abort(reason);
    await assert.rejects(first, aborted);
    service.release();
    assert.equal((await second).status, 201);
    assert.equal(service.calls.length, 1);
  });

  test('while another payload of the intention runs: at once, and the other goes on', async () => {
    service.hold();
    const control = new AbortController();
    const mine = order();
    const first = mine.fetch(url(), post('1'));
    const second = mine.fetch(url(), post('2', { signal: control.signal }));
    await service.reached(1);
    control.abort(reason);
    await assert.rejects(second, aborted);
    service.release();
    assert.equal((await first).status, 201);
    assert.equal(service.calls.length, 1);
  });

  test("the signal of a Request counts, and init's goes before it", async () => {
    const request = () => new Request(url(), post('1', { signal: AbortSignal.abort(reason) }));
    await assert.rejects(order().fetch(request()));
    assert.equal((await order().fetch(request(), { signal: new AbortController().signal })).status, 201);
  });
});
