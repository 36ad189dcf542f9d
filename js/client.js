import { emit } from './events.js';
import { digest, forget, keep, unfinished } from './memory.js';
import { RETRY, attempt, failure, repeat, transient } from './retry.js';
import { createTokens, fallbackAction, tokenUrl } from './tokens.js';

const KEY = 'Idempotency-Key';
const NAMES = { token: 'Idempotent-Token', requestId: 'Idempotent-Request-Id', replayed: 'Idempotent-Replayed' };

const merge = (options, init) => {
  const retry = (given) => (typeof given === 'number' ? { limit: given } : given);
  return {
    timeout: 60_000, ...options, ...init,
    retry: { ...RETRY, ...retry(options.retry), ...retry(init.retry) }, names: { ...NAMES, ...options.headerNames, ...init.headerNames },
  };
};

// A body that can be read once would be empty when it is sent again.
function refuse(input, body) {
  if (input.bodyUsed) throw new TypeError('idem: the body of this Request is used up, it cannot be sent again');
  if (globalThis.ReadableStream && body instanceof ReadableStream) throw new TypeError('idem: a stream cannot be sent twice, use a Blob or bytes');
}

function prepare(settings, input, init) {
  const options = merge(settings, init);
  const more = { duplex: 'half', ...init };
  if (init.json !== undefined) {
    more.method ??= 'POST';
    more.body = new Blob([JSON.stringify(init.json)], { type: 'application/json' });
  }
  const request = new Request(input, { ...more, signal: null });
  const headers = new Headers(settings.headers);
  request.headers.forEach((value, name) => headers.set(name, value));
  const { names } = options;
  return {
    action: init.action ?? settings.action ?? fallbackAction(), options, request, headers, body: more.body, url: request.url, method: request.method,
    signal: init.signal === undefined ? input.signal : init.signal,
    own: headers.has(names.token) || headers.has(KEY),
    requestId: headers.get(names.requestId) ?? init.requestId,
    tokenUrl: tokenUrl(options, request.url), credentials: request.credentials,
  };
}

// No token for strangers: the page's own origin, without a page the token service's, and those that are named.
function guarded({ method, own, url, options, tokenUrl }) {
  if (/^(GET|HEAD|OPTIONS|TRACE)$/.test(method)) return false;
  return own || [globalThis.origin ?? tokenUrl.origin, ...options.origins ?? []].includes(new URL(url).origin);
}

// Equal keys are one intention. Who asks, and what the caller names it by, keep calls apart; a trace header does not. The boundary of a
// multipart body is made anew by every click.
async function identify(call) {
  const { action, requestId, method, url, headers, options } = call;
  const bytes = call.bytes = await call.request.arrayBuffer();
  const [, boundary] = /boundary=(.+)/.exec(headers.get('Content-Type')) ?? [];
  const text = new TextDecoder('latin1').decode(bytes).replaceAll(boundary ?? '\n', '');
  const who = [options.names.token, KEY, 'Authorization'].map((name) => headers.get(name));
  call.content = digest([method, url, text].join('\n'));
  call.key = digest(JSON.stringify([action, requestId ?? call.content, who]));
}

// Each caller may leave on its own; the call ends when the last one has left.
const follow = (running, signal) => new Promise((resolve, reject) => {
  running.callers++;
  signal?.addEventListener('abort', () => {
    reject(signal.reason);
    if (!--running.callers) running.control.abort(signal.reason);
  });
  running.answer.then((response) => resolve(running.callers > 1 ? response.clone() : response), reject);
});

/** A client with settings of its own. Types and documentation: idem-client.d.ts */
export function createClient(settings = {}) {
  const tokens = createTokens();
  const calls = new Map();

  async function run(call, intention, signal, tell) {
    const { headers, options, own, key, bytes } = call;
    let expired;
    const send = async () => {
      if (!own && (expired || !intention.token || intention.fresh < Date.now())) {
        const { token, requestId, fresh } = await tokens.get(call, intention.requestId, signal, tell);
        expired = false;
        Object.assign(intention, { token, requestId, fresh });
      }
      if (!own) {
        headers.set(options.names.token, intention.token);
        keep(key, intention);
      }
      if (intention.requestId) headers.set(options.names.requestId, intention.requestId);
      return attempt(new Request(call.request, { headers, body: bytes }), options, signal);
    };
    for (let renewals = 0; ; renewals++) {
      const result = await repeat(send, options, signal, tell);
      expired = !own && result.code === 'token_expired';
      if (expired && renewals < 2) continue;
      const { status } = result.response;
      if (status === 403) tokens.clear();
      // A plain refusal leaves the pair to the corrected call; one with a code says that the pair is of no more use.
      if (status < 400 || (status < 500 && result.code && !expired && !transient(result, options.retry))) forget(key);
      return result;
    }
  }

  function begin(call) {
    const { action, url, method, key, options } = call;
    const control = new AbortController();
    const cancel = (reason = failure('AbortError', 'cancelled')) => control.abort(reason);
    const intention = unfinished.get(key) ?? { requestId: call.requestId };
    const tell = (name, more) => emit(name, { action, url, method, cancel, get requestId() { return intention.requestId; }, ...more });
    const timer = options.totalTimeout && setTimeout(cancel, options.totalTimeout, failure('TimeoutError', 'no answer in time'));
    const finish = ({ response, code, error }) => {
      clearTimeout(timer);
      if (calls.get(key) === running) calls.delete(key);
      if (response?.headers.get(options.names.replayed)) tell('replay', { response });
      tell(response?.status < 400 ? 'success' : 'error', { response, code, error });
    };
    const running = { control, callers: 0, content: call.content };
    calls.set(key, running);
    running.answer = new Promise((resolve, reject) => {
      control.signal.addEventListener('abort', () => reject(control.signal.reason));
      tell('start');
      run(call, intention, control.signal, tell).then(resolve, reject);
    }).then((result) => {
      finish(result);
      return result.response;
    }, (error) => {
      finish({ error });
      throw error;
    });
    running.answer.catch(() => {}); // reported to those who follow
    return running;
  }

  return {
    async fetch(input, init = {}) {
      if (input.bodyUsed) refuse(input);
      const call = prepare(settings, input, init);
      const { signal } = call;
      if (!guarded(call)) return call.options.fetch(new Request(call.request, { headers: call.headers, signal }));
      refuse(input, init.body);
      await identify(call);
      for (;;) {
        signal?.throwIfAborted();
        const running = calls.get(call.key);
        if (!running || running.control.signal.aborted) return follow(begin(call), signal);
        if (running.content === call.content) return follow(running, signal);
        await new Promise((resolve) => {
          running.answer.finally(resolve).catch(() => {}); // then the server judges the other payload
          signal?.addEventListener('abort', resolve);
        });
      }
    },

    async token({ action = settings.action ?? fallbackAction(), requestId, signal = new AbortController().signal } = {}) {
      const options = merge(settings, {});
      const call = { action, options, headers: new Headers(settings.headers), tokenUrl: tokenUrl(options, globalThis.location?.href) };
      return tokens.get(call, requestId, signal, () => {});
    },
  };
}
