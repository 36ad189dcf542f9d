import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Service, post, problem } from './service.mjs';

const service = new Service();
before(() => service.listen());
after(() => service.close());
beforeEach(() => service.reset());

const fetch = (init, retry, more) => service.client({ retry, ...more }).fetch(service.url, { ...post(), ...init });
const orders = (...list) => service.answers('/orders', ...list);
const after429 = { 'Retry-After': '0' };

describe('sent again, with the same token, request id and bytes', () => {
  const repeated = {
    'a lost connection': { destroy: true }, 408: { status: 408 }, 425: { status: 425 }, 500: { status: 500 }, 502: { status: 502 },
    503: { status: 503 }, 504: { status: 504 }, '409 in_progress': problem(409, 'in_progress'), '503 outcome_unknown': problem(503, 'outcome_unknown'),
    '429 rate_limited': problem(429, 'rate_limited'), '429 from elsewhere, with Retry-After': { status: 429, headers: after429, body: 'slow down' },
    "429 of an application's own code, with Retry-After": problem(429, 'quota', after429),
  };
  for (const [name, answer] of Object.entries(repeated)) {
    test(name, async () => {
      orders(answer, answer);
      assert.equal((await fetch()).status, 201);
      assert.equal(service.issued.length, 1);
      assert.equal(service.calls.length, 3);
      for (const values of [service.tokens(), service.requestIds(), service.calls.map(({ body }) => String(body))]) {
        assert.equal(new Set(values).size, 1);
        assert.ok(values[0]);
      }
    });
  }
});

describe('returned, body and all', () => {
  const final = {
    'redirect without location': { status: 303 }, 400: { status: 400 }, 401: { status: 401 }, 403: { status: 403 }, 404: { status: 404 },
    '409 token_used': problem(409, 'token_used'), '409 already_done': problem(409, 'already_done'), '409 key_taken': problem(409, 'key_taken'),
    "409 of the application's": { status: 409, body: 'in_progress' }, 413: { status: 413 }, 422: { status: 422, body: 'no such item' },
    '422 payload_mismatch': problem(422, 'payload_mismatch'), 501: { status: 501 }, '429 duplicate_in_window': problem(429, 'duplicate_in_window'),
    '429 duplicate_in_window, a proxy adds Retry-After': problem(429, 'duplicate_in_window', after429), '429 from elsewhere, without': { status: 429 },
  };
  for (const [name, answer] of Object.entries(final)) {
    test(name, async () => {
      orders(answer);
      const response = await fetch();
      assert.equal(response.status, answer.status);
      assert.equal(await response.text(), answer.body ?? '');
      assert.equal(service.calls.length, 1);
    });
  }
});

describe('the limit', () => {
  const away = () => orders(...Array(9).fill({ status: 503, body: 'away' }));
  for (const [name, retry, times] of [['default', {}, 5], ['two', { limit: 2 }, 3], ['none', { limit: 0 }, 1]]) {
    test(`${name}: then the last answer is returned`, async () => {
      away();
      const response = await fetch({}, retry);
      assert.equal(await response.text(), 'away');
      assert.equal(service.calls.length, times);
    });
  }

  test('then the last error is thrown', async () => {
    orders({ destroy: true }, { destroy: true });
    await assert.rejects(fetch({}, { limit: 1 }), TypeError);
    assert.equal(service.calls.length, 2);
  });

  test("a call's own goes before the client's", async () => {
    away();
    await fetch({ retry: { limit: 1 } }, { limit: 3 });
    assert.equal(service.calls.length, 2);
  });
});

describe('statusCodes and shouldRetry', () => {
  test('statusCodes are those and no others', async () => {
    orders({ status: 418 }, { status: 503 });
    assert.equal((await fetch({}, { statusCodes: [418] })).status, 503);
  });

  test('statusCodes do not permit what must not be sent again', async () => {
    orders(problem(429, 'duplicate_in_window', after429));
    assert.equal((await fetch({}, { statusCodes: [409, 429] })).status, 429);
    orders(problem(409, 'token_used'));
    assert.equal((await fetch({}, { statusCodes: [409, 429] })).status, 409);
  });

  test('shouldRetry decides, or leaves it; it may take its time', async () => {
    const asked = [];
    const shouldRetry = async ({ response, error, code, retryCount }) => {
      asked.push([response?.status, code, !!error, retryCount]);
      return { 418: true, 503: false }[response?.status];
    };
    orders({ status: 418 }, { destroy: true }, problem(409, 'in_progress'), { status: 503 });
    assert.equal((await fetch({}, { shouldRetry })).status, 503);
    assert.deepEqual(asked, [[418, undefined, false, 1], [undefined, undefined, true, 2], [409, 'in_progress', false, 3], [503, undefined, false, 4]]);
  });
});

describe('the wait', () => {
  const gap = () => service.calls[1].at - service.calls[0].at;
  const backoff = () => {
    const asked = [];
    return { asked, jitter: (ms) => { asked.push(ms); return 0; } };
  };

  for (const [name, value, least, most] of [
    ['seconds', () => '1', 950, 3000], ['none', () => '0', 0, 900],
    ['a date', () => new Date(Date.now() + 2000).toUTCString(), 900, 5000], ['a date that is past', () => 'Sun, 06 Nov 1994 08:49:37 GMT', 0, 900],
    ['a date of RFC 850', () => 'Sunday, 06-Nov-94 08:49:37 GMT', 0, 900],
  ]) {
    test(`Retry-After, ${name}`, async () => {
      orders({ status: 503, headers: { 'Retry-After': value() } });
      const { asked, jitter } = backoff();
      await fetch({}, { jitter });
      assert.deepEqual(asked, []);
      assert.ok(gap() >= least && gap() < most, `${gap()} ms`);
    });
  }

  for (const value of ['soon', '-5', '1.5', '5s', '+5', '1, 2', '']) {
    test(`Retry-After is malformed, "${value}": as without`, async () => {
      orders({ status: 503, headers: { 'Retry-After': value } });
      const { asked, jitter } = backoff();
      await fetch({}, { jitter });
      assert.deepEqual(asked, [300]);
    });
  }

  test('Retry-After is capped by maxRetryAfter', async () => {
    orders({ status: 503, headers: { 'Retry-After': '86400' } });
    await fetch({}, { maxRetryAfter: 20 });
    assert.ok(gap() < 5000);
  });

  test('doubles, and is capped by backoffLimit', async () => {
    orders(...Array(9).fill({ status: 503 }));
    const { asked, jitter } = backoff();
    await fetch({}, { jitter, limit: 5, backoffLimit: 1500 });
    assert.deepEqual(asked, [300, 600, 1200, 1500, 1500]);
  });

  test('is at random, from nothing to all of it', async () => {
    const took = [];
    for (let i = 0; i < 12; i++) {
      service.reset();
      orders({ status: 503 });
      await fetch({}, { jitter: true, delay: () => 400 });
      took.push(gap());
    }
    assert.ok(Math.min(...took) < 300 && Math.max(...took) - Math.min(...took) > 100, `${took}`);
  });

  test('is all of it without jitter, and what delay says', async () => {
    orders({ status: 503 });
    await fetch({}, { jitter: false, delay: (count) => count * 150 });
    assert.ok(gap() >= 145 && gap() < 2000, `${gap()}`);
  });
});

describe('time limits', () => {
  test('an attempt that gets no answer in time is sent again', async () => {
    orders({ never: true });
    assert.equal((await fetch({ timeout: 400 })).status, 201);
    assert.equal(service.calls.length, 2);
    assert.equal(new Set(service.requestIds()).size, 1);
  });

  test('and fails with a TimeoutError when the retries are used up; trying again sends the same pair', async () => {
    orders({ never: true }, { never: true });
    const client = service.client({ timeout: 400, retry: { limit: 1 } });
    await assert.rejects(client.fetch(service.url, post()), { name: 'TimeoutError' });
    assert.equal((await client.fetch(service.url, post())).status, 201);
    assert.equal(new Set(service.tokens()).size, 1);
  });

  test('totalTimeout ends a wait', async () => {
    orders({ status: 503, headers: { 'Retry-After': '2' } });
    const since = performance.now();
    await assert.rejects(fetch({ totalTimeout: 500 }), { name: 'TimeoutError' });
    assert.ok(performance.now() - since < 1900);
    assert.equal(service.calls.length, 1);
  });

  test('is for the head: a body may take longer', async () => {
    const { createServer } = await import('node:http');
    const slow = createServer((request, response) => { response.write('a'); setTimeout(() => response.end('b'), 900); });
    await new Promise((resolve) => slow.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${slow.address().port}/`;
    const response = await service.client({ timeout: 400 }).fetch(url, { ...post(), headers: { 'Idempotent-Token': 'own' } });
    assert.equal(await response.text(), 'ab');
    slow.close();
  });
});
