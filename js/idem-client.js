/*! idem-client. Load with <script defer> or import for its effect; either way it sets window.idem. Types and documentation: idem-client.d.ts */
(() => {
  'use strict';
  const root = globalThis;
  if (root.idem?.intention) return; // a second copy would listen twice

  const TOKEN = 'Idempotent-Token';
  const REQUEST_ID = 'Idempotent-Request-Id';
  const KEY = 'Idempotency-Key';
  const DEFAULTS = { attempts: 5, backoff: 500, maxWait: 30_000, timeout: 60_000 };

  const defaultAction = () => meta('idem-action') ?? 'default';
  const meta = (name) => root.document?.querySelector(`meta[name="${name}"]`)?.content || undefined;

  // ---- waiting and repeating -------------------------------------------------------------------------------------

  const sleep = (ms, signal) => new Promise((resolve, reject) => {
    const stop = () => { clearTimeout(timer); reject(signal.reason); };
    const timer = setTimeout(() => { signal.removeEventListener('abort', stop); resolve(); }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });

  // Retry-After is seconds or a date (RFC 9110, 10.2.3). Without one: exponential, and half of it at random, so that
  // clients that failed together do not come back together.
  function pause(attempt, response, { backoff, maxWait }) {
    const after = response?.headers.get('Retry-After');
    if (after) {
      const ms = /^\d+$/.test(after.trim()) ? after * 1000 : Date.parse(after) - Date.now();
      if (ms >= 0) return ms;
    }
    return Math.min(maxWait, backoff * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
  }

  async function problemCode(response) {
    if (response.status !== 409 || !/json/.test(response.headers.get('Content-Type'))) return '';
    return (await response.clone().json().catch(() => ({}))).code;
  }

  // A 429 without Retry-After is a suppressed duplicate: sending it again is what the server asks us not to do.
  async function isTransient(response) {
    const { status, headers } = response;
    return [408, 502, 503, 504].includes(status) || (status === 429 && headers.has('Retry-After')) ||
      (await problemCode(response)) === 'in_progress';
  }

  async function repeat(attempt, options, signal) {
    for (let n = 1; ; n++) {
      let response, error;
      try {
        response = await attempt();
      } catch (caught) {
        if (signal.aborted) throw signal.reason;
        error = caught;
      }
      const delay = pause(n, response, options);
      if (n >= options.attempts || delay > options.maxWait || (response && !(await isTransient(response)))) {
        if (error) throw error;
        return response;
      }
      response?.body?.cancel().catch(() => {}); // frees the connection
      options.onwait?.({ attempt: n, delay, response, error });
      await sleep(delay, signal);
    }
  }

  // The time limit is for the answer's head only; the caller's signal goes on to cover the body.
  async function attempt(request, init, timeout, signal) {
    signal.throwIfAborted();
    const control = new AbortController();
    signal.addEventListener('abort', () => control.abort(signal.reason), { once: true });
    const timer = setTimeout(() => control.abort(new DOMException('idem: no answer in time', 'TimeoutError')), timeout);
    try {
      return await root.fetch(new Request(request, { ...init, signal: control.signal }));
    } finally {
      clearTimeout(timer);
    }
  }

  // ---- tokens ----------------------------------------------------------------------------------------------------

  let taken; // the embedded token serves one intention
  function embedded(action, requestId) {
    const token = meta('idem-token');
    const id = meta('idem-request-id');
    if (!token || token === taken || action !== defaultAction() || (requestId && requestId !== id)) return undefined;
    taken = token;
    return { token, requestId: id };
  }

  async function issue({ action, requestId }, { options, request: { credentials } }, signal) {
    const headers = { 'Content-Type': 'application/json' };
    const init = { method: 'POST', credentials, headers, body: JSON.stringify({ action, requestId }) };
    const url = options.tokenUrl ?? meta('idem-token-url') ?? '/idem/token';
    const response = await repeat(() => attempt(url, init, options.timeout, signal), options, signal);
    if (response.ok) return response.json();
    throw Object.assign(new Error(`idem: no token, the answer was ${response.status}`), { response });
  }

  // ---- what was sent and not answered, kept over a reload --------------------------------------------------------

  // Equal identities are the same intention. A body that cannot be compared has none.
  function identity(action, { method, url }, body) {
    const file = (v) => (v.size === undefined ? v : [v.name, v.type, v.size, v.lastModified]);
    if (body instanceof FormData) body = JSON.stringify([...body].map(([name, v]) => [name, file(v)]));
    if (body instanceof URLSearchParams) body = String(body);
    return body == null || typeof body === 'string' ? [action, method, url, body ?? ''].join('\n') : undefined;
  }

  // The digest is short because what was typed does not belong in storage. A collision costs a refusal, nothing more:
  // the server compares the payload.
  function unanswered(id) {
    let a = 0x811c9dc5, b = 0x1000193;
    for (const char of id ?? '') {
      a = Math.imul(a ^ char.codePointAt(0), 0x01000193);
      b = Math.imul(b ^ char.codePointAt(0), 0x5bd1e995) ^ (b >>> 15);
    }
    const key = `idem:${(a >>> 0).toString(36)}${(b >>> 0).toString(36)}`;
    const storage = (call) => { try { return id && call(root.sessionStorage); } catch {} };
    return {
      recall: () => storage((s) => s.getItem(key)) || undefined,
      keep: (requestId) => storage((s) => s.setItem(key, requestId)),
      forget: () => storage((s) => s.removeItem(key)),
    };
  }

  // ---- intentions ------------------------------------------------------------------------------------------------

  async function run(state, call, signal) {
    const { options, headers, memory } = call;
    const bytes = await call.request.arrayBuffer(); // once: every attempt sends these
    const foreign = headers.has(TOKEN) || headers.has(KEY);
    if (!foreign && !state.token) {
      state.requestId ??= headers.get(REQUEST_ID) ?? memory.recall();
      Object.assign(state, embedded(state.action, state.requestId) ?? await issue(state, call, signal));
    }
    for (let renewals = 0; ; renewals++) {
      if (!foreign) headers.set(TOKEN, state.token);
      if (!foreign && state.requestId) {
        headers.set(REQUEST_ID, state.requestId);
        memory.keep(state.requestId);
      }
      const again = () => attempt(call.request, { headers, body: bytes }, options.timeout, signal);
      const response = await repeat(again, options, signal);
      if (foreign) return response;
      if (renewals === 2 || (await problemCode(response)) !== 'token_expired') {
        if (response.status < 500 && !(await isTransient(response))) memory.forget();
        return response;
      }
      Object.assign(state, await issue(state, call, signal));
    }
  }

  const gone = (signal) => new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

  // Each caller may leave on its own; the call ends when the last one has left.
  const follow = (running, signal) => new Promise((resolve, reject) => {
    running.callers++;
    const leave = () => {
      reject(signal.reason);
      if (!--running.callers) running.control.abort(signal.reason);
    };
    if (signal?.aborted) return leave();
    signal?.addEventListener('abort', leave, { once: true });
    running.answer.then((response) => resolve(running.callers > 1 ? response.clone() : response), reject);
  });

  function prepare(action, settings, input, init = {}) {
    const { idem, signal = input?.signal, ...rest } = init;
    const request = new Request(input, { ...rest, signal: null });
    const body = init.body ?? (input instanceof Request && request.body !== null ? input : null); // a stream: it has no identity
    const headers = new Headers(request.headers);
    const options = { ...DEFAULTS, ...settings, ...idem };
    const content = identity(action, request, body);
    // Who asks, and whatever the caller names the intention by, keep calls apart; a trace header does not.
    const names = [idem?.requestId, ...[TOKEN, REQUEST_ID, KEY, 'Authorization'].map((name) => headers.get(name))];
    return { request, headers, signal, options, id: content && content + JSON.stringify(names), memory: unanswered(content) };
  }

  // Another origin gets a token only where the caller names the token service: a token is not for strangers.
  function guarded({ request, options, headers }) {
    if (/^(GET|HEAD|OPTIONS|TRACE)$/.test(request.method)) return false;
    return headers.has(TOKEN) || headers.has(KEY) || options.tokenUrl || !root.location ||
      new URL(request.url).origin === root.location.origin;
  }

  function create(action, settings) {
    const state = { action, requestId: settings.requestId, token: settings.token };
    let running;
    const live = () => (running?.control.signal.aborted ? undefined : running);
    const begin = (call) => {
      const control = new AbortController();
      const mine = running = { id: call.id, control, callers: 0 };
      mine.answer = run(state, call, control.signal).finally(() => { if (running === mine) running = undefined; });
      mine.answer.catch(() => {}); // reported to those who follow
      return mine;
    };
    const send = async (call) => {
      if (!guarded(call)) return root.fetch(call.request, { signal: call.signal });
      while (live() && running.id !== call.id && !call.signal?.aborted) {
        await Promise.race([running.answer.catch(() => {}), gone(call.signal)]); // then the server judges the other payload
      }
      return follow(live() ?? begin(call), call.signal);
    };
    return { state, live, send };
  }

  function intention(action = defaultAction(), settings = {}) {
    const { state, live, send } = create(action, settings);
    return {
      action,
      get requestId() { return state.requestId; },
      get pending() { return !!live(); },
      fetch: async (input, init) => send(prepare(action, settings, input, init)),
    };
  }

  const calls = new Map();
  async function idemFetch(input, init) {
    const { action = defaultAction(), ...settings } = init?.idem ?? {};
    const call = prepare(action, settings, input, init);
    const one = calls.get(call.id) ?? create(action, settings);
    if (call.id) calls.set(call.id, one);
    try {
      return await one.send(call);
    } finally {
      if (!one.live() && calls.get(call.id) === one) calls.delete(call.id);
    }
  }

  root.idem = Object.freeze({ fetch: idemFetch, intention });

  // ---- forms marked data-idem ------------------------------------------------------------------------------------

  if (!root.document) return;
  const LOCK_MS = 30_000; // a submission that went nowhere (stopped, answered 204, a download) gives the form back
  const locks = new Map(); // form -> { event, timer, restore }

  // What the application changes meanwhile is the application's: only our own value is taken back.
  function label(button) {
    const busy = button.getAttribute('data-idem-busy');
    if (!busy) return () => {};
    if (button instanceof HTMLInputElement) {
      const before = button.value;
      button.value = busy;
      return () => { if (button.value === busy) button.value = before; };
    }
    const before = [...button.childNodes];
    button.replaceChildren(busy);
    return () => { if (button.textContent === busy) button.replaceChildren(...before); };
  }

  function dim(form, submitter) {
    const buttons = new Set(form.querySelectorAll('button:not([type]), [type=submit], [type=image]'));
    if (submitter) buttons.add(submitter);
    const undo = [...buttons].filter((button) => !button.hasAttribute('aria-disabled')).map((button) => {
      button.setAttribute('aria-disabled', 'true');
      return () => { if (button.getAttribute('aria-disabled') === 'true') button.removeAttribute('aria-disabled'); };
    });
    if (submitter) undo.push(label(submitter));
    return () => undo.forEach((step) => step());
  }

  function unlock(form) {
    const { timer, restore } = locks.get(form) ?? {};
    locks.delete(form);
    clearTimeout(timer);
    restore?.();
  }

  // Capturing at the window comes before every handler, so a blocked submit reaches none. Whether one of them cancels
  // is known only after the event: the lock is taken at once and given back then. The buttons are touched after it too,
  // when the browser has collected the fields; a button disabled earlier would not be among them.
  root.addEventListener('submit', (event) => {
    const form = event.target;
    if (!form.matches?.('form[data-idem]')) return;
    const lock = locks.get(form);
    if ((lock && !lock.event.defaultPrevented) || event.submitter?.getAttribute('aria-disabled') === 'true') {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    unlock(form);
    const mine = { event };
    locks.set(form, mine);
    setTimeout(() => {
      if (locks.get(form) !== mine) return;
      if (event.defaultPrevented) return unlock(form);
      mine.restore = dim(form, event.submitter);
      mine.timer = setTimeout(unlock, Number(form.getAttribute('data-idem-timeout')) || LOCK_MS, form);
    });
  }, true);

  // A page that Back brought out of the cache is as it was left: locked.
  root.addEventListener('pageshow', (event) => { if (event.persisted) [...locks.keys()].forEach(unlock); });
})();
