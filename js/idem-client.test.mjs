import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Service, problem } from './service.mjs';
import './idem-client.js';

const { idem } = globalThis;
const service = new Service();
const quick = { backoff: 1 };
const post = (body = '{"item":"tea"}', more = {}) => ({
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body, ...more,
});

let options;
before(async () => { options = { ...quick, tokenUrl: `${await service.listen()}/token` }; });
after(() => service.close());
beforeEach(() => {
  service.reset();
  globalThis.sessionStorage = service.storage;
  delete globalThis.document;
  delete globalThis.location;
});
const order = (more) => idem.intention('order.create', { ...options, ...more });
const url = () => `${service.base}/orders`;

describe('the token', () => {
  test('is asked for with the action and sent with its request id', async () => {
    const response = await order().fetch(url(), post());
    assert.equal(response.status, 201);
    assert.deepEqual(service.issued, [{ action: 'order.create' }]);
    assert.equal(service.calls[0].headers['idempotent-token'], 'token-1');
    assert.equal(service.calls[0].headers['idempotent-request-id'], 'request-1');
    assert.equal(service.calls[0].headers['content-type'], 'application/json');
  });

  for (const method of ['GET', 'HEAD', 'OPTIONS']) {
    test(`is not asked for by ${method}, which is not repeated either`, async () => {
      service.answers('/orders', { status: 503 });
      const response = await order().fetch(url(), { method });
      assert.equal(response.status, 503);
      assert.equal(service.issued.length, 0);
      assert.equal(service.calls.length, 1);
      assert.equal(service.calls[0].headers['idempotent-token'], undefined);
    });
  }

  test('given with its request id is used as it is', async () => {
    await order({ token: 'mine', requestId: 'request-of-mine' }).fetch(url(), post());
    assert.equal(service.issued.length, 0);
    assert.equal(service.calls[0].headers['idempotent-token'], 'mine');
    assert.equal(service.calls[0].headers['idempotent-request-id'], 'request-of-mine');
  });

  test('is renewed for a request id that is given', async () => {
    await order({ requestId: 'request-of-mine' }).fetch(url(), post());
    assert.deepEqual(service.issued, [{ action: 'order.create', requestId: 'request-of-mine' }]);
  });

  test('refused: the call is not made, and the error carries the answer', async () => {
    service.answers('/token', { status: 403 });
    await assert.rejects(order().fetch(url(), post()), (error) => error.response.status === 403);
    assert.equal(service.calls.length, 0);
  });

  test('service away for a moment: asked again', async () => {
    service.answers('/token', { status: 503 }, { destroy: true }, { status: 429, headers: { 'Retry-After': '0' } });
    assert.equal((await order().fetch(url(), post())).status, 201);
    assert.equal(service.issued.length, 4);
  });

  test('is kept from another origin unless its service is named', async () => {
    globalThis.location = { origin: 'https://shop.example' };
    service.answers('/orders', { status: 503 });
    const response = await idem.intention('order.create', quick).fetch(url(), post());
    assert.equal(response.status, 503, 'no token, no retry');
    assert.equal(service.calls.length, 1);
    assert.equal(service.calls[0].headers['idempotent-token'], undefined);
    assert.equal((await order().fetch(url(), post())).status, 201);
    assert.equal(service.calls[1].headers['idempotent-token'], 'token-1');
  });
});

describe('the embedded token', () => {
  const embed = (more) => {
    service.metas = { 'idem-token': 'embedded', 'idem-request-id': 'request-embedded', 'idem-action': 'order.create',
      'idem-token-url': options.tokenUrl, ...more };
    globalThis.document = service.document;
  };

  test('serves the first intention of its action, the next one asks', async () => {
    embed({ 'idem-token': 'embedded-a' });
    await idem.intention(undefined, quick).fetch(url(), post());
    await idem.intention('order.create', quick).fetch(url(), post());
    assert.deepEqual(service.calls.map((c) => c.headers['idempotent-token']), ['embedded-a', 'token-1']);
    assert.deepEqual(service.calls.map((c) => c.headers['idempotent-request-id']), ['request-embedded', 'request-1']);
  });

  test('of another action is left alone', async () => {
    embed({ 'idem-token': 'embedded-b' });
    await idem.intention('refund', quick).fetch(url(), post());
    assert.deepEqual(service.issued, [{ action: 'refund' }]);
  });

  test('of another request id is left alone', async () => {
    embed({ 'idem-token': 'embedded-c' });
    await idem.intention('order.create', { ...quick, requestId: 'another-one' }).fetch(url(), post());
    assert.deepEqual(service.issued, [{ action: 'order.create', requestId: 'another-one' }]);
  });
});

describe("the caller's own header wins", () => {
  test('Idempotent-Token: no token is asked for, repeated with it, never renewed', async () => {
    service.answers('/orders', { status: 503 }, problem(409, 'token_expired'));
    const response = await order().fetch(url(), post('{}', { headers: { 'Idempotent-Token': 'own' } }));
    assert.equal(response.status, 409);
    assert.equal(service.issued.length, 0);
    assert.deepEqual(service.calls.map((c) => c.headers['idempotent-token']), ['own', 'own']);
    assert.equal(service.calls[0].headers['idempotent-request-id'], undefined);
  });

  test('Idempotency-Key: likewise', async () => {
    service.answers('/orders', { status: 502 });
    const response = await order().fetch(url(), post('{}', { headers: { 'Idempotency-Key': 'k-1' } }));
    assert.equal(response.status, 201);
    assert.equal(service.issued.length, 0);
    assert.deepEqual(service.calls.map((c) => c.headers['idempotency-key']), ['k-1', 'k-1']);
    assert.equal(service.calls[0].headers['idempotent-token'], undefined);
  });
});

describe('an expired token', () => {
  test('is renewed for the same request id, and the call goes on', async () => {
    service.answers('/orders', problem(409, 'token_expired'));
    assert.equal((await order().fetch(url(), post())).status, 201);
    assert.deepEqual(service.issued, [{ action: 'order.create' }, { action: 'order.create', requestId: 'request-1' }]);
    assert.deepEqual(service.calls.map((c) => c.headers['idempotent-token']), ['token-1', 'token-2']);
    assert.deepEqual(service.calls.map((c) => c.headers['idempotent-request-id']), ['request-1', 'request-1']);
  });

  test('again and again: the answer is returned after two renewals', async () => {
    service.answers('/orders', ...Array(9).fill(problem(409, 'token_expired')));
    assert.equal((await order().fetch(url(), post())).status, 409);
    assert.equal(service.calls.length, 3);
  });
});

describe('an intention', () => {
  test('keeps request id and token after a refusal, for the corrected payload', async () => {
    service.answers('/orders', { status: 422 });
    const mine = order();
    assert.equal(mine.requestId, undefined);
    assert.equal((await mine.fetch(url(), post('{"quantity":0}'))).status, 422);
    assert.equal((await mine.fetch(url(), post('{"quantity":1}'))).status, 201);
    assert.equal(mine.requestId, 'request-1');
    assert.equal(service.issued.length, 1);
    assert.deepEqual(service.calls.map((c) => c.headers['idempotent-request-id']), ['request-1', 'request-1']);
  });

  test('keeps its request id when all attempts failed and the person tries again', async () => {
    service.answers('/orders', { destroy: true }, { destroy: true });
    const mine = order({ attempts: 2 });
    await assert.rejects(mine.fetch(url(), post()), TypeError);
    assert.equal((await mine.fetch(url(), post())).status, 201);
    assert.equal(new Set(service.calls.map((c) => c.headers['idempotent-request-id'])).size, 1);
  });

  test('keeps its request id after success: a late click is a replay, not a second order', async () => {
    const mine = order();
    await mine.fetch(url(), post());
    await mine.fetch(url(), post());
    assert.deepEqual(service.calls.map((c) => c.headers['idempotent-request-id']), ['request-1', 'request-1']);
  });

  test('is distinct from another one', async () => {
    await Promise.all([order().fetch(url(), post('1')), order().fetch(url(), post('2'))]);
    assert.equal(new Set(service.calls.map((c) => c.headers['idempotent-request-id'])).size, 2);
  });
});
