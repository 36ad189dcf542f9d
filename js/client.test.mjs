import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { createClient } from './client.js';
import { Service, post, problem } from './service.mjs';

const service = new Service();
before(() => service.listen());
after(() => service.close());
beforeEach(() => service.reset());

const fetch = (init, more) => service.client(more).fetch(service.url, { ...post(), ...init });
const one = (list) => assert.equal(new Set(list).size, 1, `${list}`);

describe('the token', () => {
  test('is asked for with the action and sent with its request id', async () => {
    const response = await fetch({ headers: { 'Content-Type': 'application/json' } });
    assert.equal(response.status, 201);
    assert.deepEqual(service.issued, [{ action: 'order.create' }]);
    assert.match(service.tokens()[0], /^token-\d+$/);
    assert.match(service.requestIds()[0], /^request-\d+$/);
    assert.equal(service.calls[0].headers['content-type'], 'application/json');
  });

  for (const method of ['GET', 'HEAD', 'OPTIONS']) {
    test(`is not asked for by ${method}, which is not repeated either`, async () => {
      service.answers('/orders', { status: 503 });
      assert.equal((await fetch({ method, body: undefined })).status, 503);
      assert.equal(service.issued.length, 0);
      assert.deepEqual(service.tokens(), [undefined]);
    });
  }

  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    test(`is asked for by ${method}`, async () => {
      await fetch({ method });
      assert.match(service.tokens()[0], /^token/);
    });
  }

  test('is asked for again for a request id that is given', async () => {
    await fetch({ requestId: 'request-of-mine' });
    assert.deepEqual(service.issued, [{ action: 'order.create', requestId: 'request-of-mine' }]);
    assert.deepEqual(service.requestIds(), ['request-of-mine']);
  });

  test('refused: the call is not made, and the error carries the answer', async () => {
    service.answers('/idem/token', { status: 403 });
    await assert.rejects(fetch(), (error) => error.response.status === 403);
    assert.equal(service.calls.length, 0);
  });

  test('service away for a moment: asked again', async () => {
    service.answers('/idem/token', { status: 503 }, { destroy: true }, problem(429, 'rate_limited', { 'Retry-After': '0' }));
    assert.equal((await fetch()).status, 201);
    assert.equal(service.issued.length, 4);
  });

  test('is kept from an origin that is not named: no token, no retry', async () => {
    service.answers('/orders', { status: 503 });
    assert.equal((await createClient({ tokenUrl: `${service.base}/idem/token` }).fetch(service.url, post())).status, 503);
    assert.equal(service.issued.length, 0);
    assert.deepEqual(service.tokens(), [undefined]);
  });

  test('of who asks: its headers go to the token service too', async () => {
    await fetch({ headers: { Authorization: 'Bearer b' } }, { headers: { Authorization: 'Bearer a', 'X-Tenant': 't' } });
    for (const { headers } of [service.asked[0], service.calls[0]]) {
      assert.equal(headers.authorization, 'Bearer b');
      assert.equal(headers['x-tenant'], 't');
    }
    assert.equal(service.asked[0].headers['content-type'], 'application/json');
  });
});

describe('a life that ends', () => {
  test('token_expired: renewed for the same request id, and the call goes on', async () => {
    service.answers('/orders', problem(409, 'token_expired'));
    assert.equal((await fetch()).status, 201);
    assert.deepEqual(service.issued, [{ action: 'order.create' }, { action: 'order.create', requestId: service.requestIds()[0] }]);
    assert.notEqual(...service.tokens());
    one(service.requestIds());
  });

  test('again and again: the answer is returned after two renewals', async () => {
    service.answers('/orders', ...Array(9).fill(problem(409, 'token_expired')));
    assert.equal((await fetch()).status, 409);
    assert.equal(service.calls.length, 3);
  });

  test('before its end it is renewed unasked', async () => {
    service.life = 0;
    service.answers('/orders', { status: 503, headers: { 'Retry-After': '1' } });
    assert.equal((await fetch()).status, 201);
    assert.equal(service.issued.length, 2);
    assert.notEqual(...service.tokens());
    one(service.requestIds());
  });
});

describe('the pool', () => {
  test('fetches ahead with count, and more when the last is taken', async () => {
    const client = service.client({ pool: 3 });
    for (const n of [1, 2, 3]) await client.fetch(service.url, post(`${n}`));
    assert.deepEqual(service.issued[0], { action: 'order.create', count: 3 });
    assert.equal(new Set(service.tokens()).size, 3);
    while (service.issued.length < 2) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(service.issued[1], { action: 'order.create', count: 3 });
    await client.fetch(service.url, post('4'));
    assert.equal(service.issued.length, 2);
  });

  test('is of one action, and not for a request id that is given', async () => {
    const client = service.client({ pool: 2 });
    await client.fetch(service.url, post());
    await client.fetch(service.url, post('2', { action: 'refund' }));
    await client.fetch(service.url, post('3', { requestId: 'request-of-mine' }));
    assert.deepEqual(service.issued.map(({ action, count, requestId }) => [action, count, requestId]),
      [['order.create', 2, undefined], ['refund', 2, undefined], ['order.create', undefined, 'request-of-mine']]);
  });

  test('is emptied by a 403: it may be of the person before', async () => {
    const client = service.client({ pool: 2 });
    service.answers('/orders', problem(403, 'token_wrong_subject'));
    assert.equal((await client.fetch(service.url, post())).status, 403);
    assert.equal((await client.fetch(service.url, post())).status, 201);
    assert.equal(service.issued.length, 2);
  });
});

describe("the caller's own header wins", () => {
  for (const [name, key] of [['Idempotent-Token', 'own'], ['Idempotency-Key', 'k-1']]) {
    test(`${name}: no token is asked for, repeated with it, never renewed`, async () => {
      service.answers('/orders', { status: 503 }, problem(409, 'token_expired'));
      assert.equal((await fetch({ headers: { [name]: key } })).status, 409);
      assert.equal(service.issued.length, 0);
      assert.deepEqual(service.calls.map(({ headers }) => headers[name.toLowerCase()]), [key, key]);
      assert.deepEqual(service.requestIds(), [undefined, undefined]);
    });
  }

  test('Idempotent-Request-Id: sent, with a token for it', async () => {
    await fetch({ headers: { 'Idempotent-Request-Id': 'request-of-mine' }, requestId: 'another-one' });
    assert.equal(service.issued[0].requestId, 'request-of-mine');
    assert.deepEqual(service.requestIds(), ['request-of-mine']);
  });

  test('under other names, where the client has them', async () => {
    const client = service.client({ tokenHeader: 'X-Token', requestIdHeader: 'X-Intention' });
    await client.fetch(service.url, post('1'));
    await client.fetch(service.url, post('2', { headers: { 'X-Token': 'own' } }));
    assert.match(service.calls[0].headers['x-intention'], /^request/);
    assert.deepEqual(service.calls.map(({ headers }) => headers['x-token'].replace(/\d+/, '')), ['token-', 'own']);
    assert.deepEqual(service.tokens(), [undefined, undefined]);
  });
});

describe('json and fetch', () => {
  test('json is a POST of application/json', async () => {
    await service.client().fetch(service.url, { json: { item: 'tea' } });
    assert.deepEqual(service.calls.map(({ method, headers, body }) => [method, headers['content-type'], String(body)]),
      [['POST', 'application/json', '{"item":"tea"}']]);
    await service.client().fetch(service.url, { json: null, method: 'PUT', headers: { 'Content-Type': 'application/merge-patch+json' } });
    assert.deepEqual([service.calls[1].method, service.calls[1].headers['content-type'], String(service.calls[1].body)],
      ['PUT', 'application/merge-patch+json', 'null']);
  });

  test('fetch sends what the client sends, tokens too', async () => {
    const sent = [];
    await fetch({}, { fetch: (request) => { sent.push(new URL(request.url).pathname); return globalThis.fetch(request); } });
    assert.deepEqual(sent, ['/idem/token', '/orders']);
  });

  test('token is a grant for a new intention, or for one that is named', async () => {
    const client = service.client({ tokenUrl: `${service.base}/idem/token` });
    assert.match((await client.token()).requestId, /^request/);
    assert.equal((await client.token({ action: 'refund', requestId: 'request-of-mine' })).requestId, 'request-of-mine');
    assert.deepEqual(service.issued, [{ action: 'order.create' }, { action: 'refund', requestId: 'request-of-mine' }]);
  });
});
