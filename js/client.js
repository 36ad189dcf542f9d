import { digest, save, start, unfinished } from './memory.js';
import { document, listen, meta, origin } from './page.js';
import { RETRY, attempt, repeat, within } from './retry.js';
import { obtain } from './tokens.js';

function prepare(settings, input, init) {
  const call = {
    origins: [], timeout: 60_000, fetch,
    tokenHeader: 'Idempotent-Token', requestIdHeader: 'Idempotent-Request-Id', ...settings, ...init,
    retry: { ...RETRY, ...settings.retry, ...init.retry },
  };
  if (call.json !== undefined) {
    call.method ??= 'POST';
    call.body = new Blob([JSON.stringify(call.json)], { type: 'application/json' });
  }
  if (call.body instanceof ReadableStream) throw TypeError('idem: a stream cannot be sent twice');
  const request = call.request = new Request(input, { ...call, headers: init.headers });
  call.signal = request.signal;
  const headers = call.headers = new Headers(settings.headers);
  request.headers.forEach((value, name) => headers.set(name, value));
  call.action ??= meta('action') ?? 'default';
  call.tokenUrl = new URL(call.tokenUrl || meta('token-url') || '/idem/token', request.url);
  call.requestId = headers.get(call.requestIdHeader) ?? call.requestId;
  call.own = headers.get(call.tokenHeader) ?? headers.get('Idempotency-Key');
  return call;
}

// Equal keys are one intention. Who asks, and what the caller names it by, keep them apart; a trace header does not. The boundary of
// a multipart body is made anew by every click.
async function identify(call) {
  const { request, headers } = call;
  call.body = await request.arrayBuffer();
  const boundary = headers.get('Content-Type')?.split('boundary=')[1];
  const text = new TextDecoder('latin1').decode(call.body).split(boundary);
  call.key = digest([call.action, call.requestId, request.method, request.url, call.own, headers.get('Authorization'), ...text]);
}

/** A client with settings of its own. Types and documentation: idem-client.d.ts */
export function createClient(settings = {}) {
  const calls = {};
  let pools = {};
  start();

  async function run(call, intention) {
    const { headers, own, key, body } = call;
    const send = async (renewals = 2) => {
      if (!own) {
        if (!intention.token || intention.fresh < Date.now()) {
          Object.assign(intention, await obtain(pools, call, intention.requestId));
          intention.fresh = Date.now() + intention.expiresIn * 900; // a tenth of its life before its end
        }
        headers.set(call.tokenHeader, intention.token);
        headers.set(call.requestIdHeader, intention.requestId);
        save();
      }
      // A redirect would carry the token elsewhere.
      const mode = own || call.origins[0] ? undefined : 'same-origin';
      const result = await attempt(call.request, { headers, body, mode }, call);
      if (own || result.code !== 'token_expired' || !renewals) return result;
      intention.fresh = 1;
      return send(renewals - 1);
    };
    const result = await repeat(send, call);
    const { response: { status }, code } = result;
    if (status === 403) pools = {}; // they may be another person's
    // A success, or the pair is of no more use, as the server says: a 401 or 404 on the way does not undo what an unanswered attempt did.
    if (code ? status < 410 && code !== 'in_progress' : status < 400) delete unfinished[key];
    save();
    return result;
  }

  function begin(call) {
    const { action, key, requestId } = call;
    const control = new AbortController();
    const cancel = call.cancel = (reason) => control.abort(reason);
    const intention = unfinished[key] ??= { requestId };
    const tell = call.tell = (name, more) => document?.dispatchEvent(new CustomEvent(`idem:${name}`, {
      bubbles: true, detail: { action, cancel, requestId: intention.requestId, ...more },
    }));
    const end = (result) => {
      delete calls[key];
      if (result.response?.headers.get('Idempotent-Replayed')) tell('replay', result);
      tell(result.response?.status < 400 ? 'success' : 'error', result);
      return result.response;
    };
    calls[key] = call;
    const answer = within(call.totalTimeout, control.signal, (signal) => {
      call.signal = signal;
      tell('start');
      return run(call, intention);
    });
    answer.catch((error) => end({ error }));
    call.answer = answer.then(end);
    call.callers = 0;
    return call;
  }

  listen('pagehide', () => { for (const key in calls) calls[key].request.keepalive || calls[key].cancel(); });

  return {
    async fetch(input, init = {}) {
      const call = prepare(settings, input, init);
      const { request, headers, signal, fetch } = call;
      // No token for strangers: only for the page's own origin and those that are named.
      const guarded = call.own || [origin, ...call.origins].includes(new URL(request.url).origin);
      if (!guarded || /^(GET|HEAD|OPTIONS)$/.test(request.method)) return fetch(new Request(request, { headers }));
      await identify(call);
      signal.throwIfAborted();
      const running = calls[call.key] ?? begin(call);
      // Each caller may leave on its own; the call ends when the last one has left.
      running.callers++;
      signal.addEventListener('abort', () => --running.callers || running.cancel(signal.reason));
      const response = await within(0, signal, () => running.answer);
      return running.callers > 1 ? response.clone() : response;
    },
    token(init = {}) {
      const call = prepare(settings, settings.tokenUrl ?? '/', init);
      return obtain(pools, call, call.requestId);
    },
  };
}
