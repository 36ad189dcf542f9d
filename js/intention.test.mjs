import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Service, post, problem } from './service.mjs';

const service = new Service();
before(() => service.listen());
after(() => service.close());
beforeEach(() => service.reset());

const distinct = (list) => new Set(list).size;
let serial = 0; // an intention that is not finished is the same one to the next test
const body = () => `{"n":${serial++}}`;

describe('bytes are equal on every attempt', () => {
  const form = new FormData();
  form.append('item', 'tea');
  form.append('attachment', new Blob([new Uint8Array([0, 255, 13, 10])]), 'a.bin');
  const bodies = {
    text: () => post('ü\r\n'), form: () => post(form), fields: () => post(new URLSearchParams({ a: '1 2' })), json: () => ({ json: { a: 'ü' } }),
    bytes: () => post(new Uint8Array([0, 1, 254])), blob: () => post(new Blob(['b'], { type: 'text/x' })), empty: () => post(''),
    none: () => ({ method: 'POST' }), request: () => new Request(service.url, post('in a Request')),
  };
  for (const [name, make] of Object.entries(bodies)) {
    test(name, async () => {
      service.answers('/orders', { status: 503 }, { destroy: true });
      const init = make();
      const client = service.client();
      assert.equal((await (init instanceof Request ? client.fetch(init) : client.fetch(service.url, init))).status, 201);
      const [first, ...others] = service.calls;
      assert.equal(others.length, 2);
      for (const call of others) {
        assert.deepEqual(call.body, first.body);
        assert.equal(call.headers['content-type'], first.headers['content-type']);
      }
      assert.equal(first.body.length > 0, name !== 'empty' && name !== 'none');
    });
  }

  test('a stream, a Request that is used: refused before anything is sent', async () => {
    const used = new Request(service.url, post());
    await used.text();
    const stream = () => new Blob(['streamed']).stream();
    await assert.rejects(service.client().fetch(used), TypeError);
    await assert.rejects(service.client().fetch(service.url, post(stream())), /stream cannot be sent twice/);
    await assert.rejects(service.client().fetch(service.url, post(stream(), { duplex: 'half' })), /stream cannot be sent twice/);
    assert.equal(service.issued.length + service.calls.length, 0);
  });
});

describe('joining', () => {
  test('equal calls make one request for a token and one call, and all get the answer', async () => {
    const client = service.client();
    const make = { text: () => post('1'), form: () => { const f = new FormData(); f.append('a', '1'); f.append('f', new Blob(['x']), 'f'); return post(f); } };
    for (const init of Object.values(make)) {
      service.reset();
      const answers = await Promise.all([1, 2, 3].map(() => client.fetch(service.url, init())));
      assert.deepEqual(await Promise.all(answers.map((answer) => answer.json())), [{ id: 1 }, { id: 1 }, { id: 1 }]);
      assert.equal(service.issued.length, 1);
      assert.equal(service.calls.length, 1);
    }
  });

  test('calls that fail fail for all', async () => {
    service.answers('/orders', { destroy: true });
    const client = service.client({ retry: { limit: 0 } });
    const results = await Promise.allSettled([1, 2].map(() => client.fetch(service.url, post(`failing ${serial}`))));
    assert.deepEqual(results.map(({ status }) => status), ['rejected', 'rejected']);
    assert.equal(service.calls.length, 1);
  });

  const apart = {
    'by Idempotency-Key': (n) => ({ headers: { 'Idempotency-Key': `k-${n}` } }), 'by Idempotent-Token': (n) => ({ headers: { 'Idempotent-Token': `t-${n}` } }),
    'by Idempotent-Request-Id': (n) => ({ headers: { 'Idempotent-Request-Id': `request-of-${n}` } }), 'by requestId': (n) => ({ requestId: `request-of-${n}` }),
    'by who asks': (n) => ({ headers: { Authorization: `Bearer ${n}` } }), 'by action': (n) => ({ action: `action-${n}` }), 'by method': (n) => ({ method: ['PUT', 'POST'][n - 1] }),
    'by content': (n) => ({ body: `${n}` }), 'by a line more': (n) => ({ body: '\n'.repeat(n) }), 'by the bytes of a file': (n) => {
      const form = new FormData();
      form.append('file', new Blob([`${n}`]), 'a.txt');
      return { body: form };
    },
  };
  for (const [name, more] of Object.entries(apart)) {
    test(`not of calls that differ ${name}`, async () => {
      const client = service.client();
      await Promise.all([1, 2].map((n) => client.fetch(service.url, { ...post('1'), ...more(n) })));
      assert.equal(service.calls.length, 2);
    });
  }

  test('a trace header keeps nothing apart', async () => {
    const client = service.client();
    await Promise.all([1, 2].map((n) => client.fetch(service.url, post('1', { headers: { 'X-Trace': `${n}` } }))));
    assert.equal(service.calls.length, 1);
  });
});

describe('the pair of token and request id', () => {
  const kept = {
    'a lost connection': [{ destroy: true }], 500: [{ status: 500 }], 503: [{ status: 503 }], 408: [{ status: 408 }],
    '409 in_progress': [problem(409, 'in_progress')], '429 rate_limited': [problem(429, 'rate_limited')], '422 of the application': [{ status: 422 }],
    '401 on the way': [{ status: 401 }], '403 on the way': [{ status: 403 }], '404 on the way': [{ status: 404 }],
  };
  for (const [name, answers] of Object.entries(kept)) {
    test(`is kept over ${name}: the same again sends the same`, async () => {
      const [mine, client] = [body(), service.client({ retry: { limit: 0 } })];
      service.answers('/orders', ...answers);
      await client.fetch(service.url, post(mine)).catch(() => {});
      assert.equal((await client.fetch(service.url, post(mine))).status, 201);
      assert.equal(distinct(service.requestIds()), 1);
      assert.equal(distinct(service.tokens()), 1);
    });
  }

  const ended = {
    'a success': { status: 201 }, 'a redirect': { status: 303 }, '409 token_used': problem(409, 'token_used'), '409 already_done': problem(409, 'already_done'),
    '403 token_wrong_subject': problem(403, 'token_wrong_subject'),
  };
  for (const [name, answer] of Object.entries(ended)) {
    test(`ends with ${name}: the same again is another intention`, async () => {
      const [mine, client] = [body(), service.client()];
      service.answers('/orders', answer);
      await client.fetch(service.url, post(mine));
      await client.fetch(service.url, post(mine));
      assert.equal(distinct(service.requestIds()), 2);
    });
  }

  test('is not that of another content', async () => {
    const client = service.client({ retry: { limit: 0 } });
    service.answers('/orders', { status: 500 });
    await client.fetch(service.url, post(body()));
    await client.fetch(service.url, post(body()));
    assert.equal(distinct(service.requestIds()), 2);
  });

  test('of a request id that is given stays, whatever is sent, and after a success', async () => {
    const client = service.client();
    for (const content of ['1', '2', '2']) await client.fetch(service.url, post(content, { requestId: 'request-of-mine' }));
    assert.deepEqual(service.requestIds(), Array(3).fill('request-of-mine'));
  });
});

describe('aborting', () => {
  const reason = new Error('the person left');
  const aborted = (error) => error === reason;
  const leave = (content) => {
    const control = new AbortController();
    return { control, init: post(content, { signal: control.signal }) };
  };

  test('before: nothing is sent', async () => {
    await assert.rejects(service.client().fetch(service.url, post('1', { signal: AbortSignal.abort(reason) })), aborted);
    assert.equal(service.issued.length + service.calls.length, 0);
  });

  test('while waiting: within 50 ms, and nothing more is sent', async () => {
    service.answers('/orders', { status: 503, headers: { 'Retry-After': '1' } });
    const { control, init } = leave(body());
    let since;
    const shouldRetry = () => { setTimeout(() => { since = performance.now(); control.abort(reason); }, 50); };
    await assert.rejects(service.client({ retry: { shouldRetry } }).fetch(service.url, init), aborted);
    assert.ok(performance.now() - since < 50);
    assert.equal(service.calls.length, 1);
  });

  test('while running: the connection ends; the same again sends the same pair and does not join the dead one', async () => {
    service.hold();
    const asked = [];
    const [mine, client] = [body(), service.client({ retry: { shouldRetry: (attempt) => { asked.push(attempt); } } })];
    const { control, init } = leave(mine);
    const first = client.fetch(service.url, init);
    await service.reached(1);
    control.abort(reason);
    await assert.rejects(first, aborted);
    service.release();
    assert.equal((await client.fetch(service.url, post(mine))).status, 201);
    assert.equal(service.calls.length, 2);
    assert.equal(distinct(service.requestIds()), 1);
    assert.equal(distinct(service.tokens()), 1);
    assert.deepEqual(asked, []);
  });

  test('one of two: the other gets the answer', async () => {
    service.hold();
    const client = service.client();
    const { control, init } = leave('one of two');
    const first = client.fetch(service.url, init);
    const second = client.fetch(service.url, post('one of two'));
    await service.reached(1);
    control.abort(reason);
    await assert.rejects(first, aborted);
    service.release();
    assert.deepEqual(await (await second).json(), { id: 1 });
    assert.equal(service.calls.length, 1);
  });

  test("the signal of a Request counts, and init's goes before it", async () => {
    const request = () => new Request(service.url, post(body(), { signal: AbortSignal.abort(reason) }));
    await assert.rejects(service.client().fetch(request()), aborted);
    assert.equal((await service.client().fetch(request(), { signal: new AbortController().signal })).status, 201);
  });
});
