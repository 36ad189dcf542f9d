import { listen, navigator } from './page.js';

/** Defaults, by ky's names; idem-client.d.ts says what each means. */
export const RETRY = {
  limit: 4, statusCodes: [408, 425, 500, 502, 503, 504], maxRetryAfter: 30_000, backoffLimit: 30_000,
  delay: (count) => 300 * 2 ** (count - 1), jitter: true,
};

/** Calls work with a signal that is aborted when the given one is, and after ms, if any; then it fails at once, whatever work does. */
export const within = (ms, signal, work) => new Promise((resolve, reject) => {
  const control = new AbortController();
  const stop = (reason) => {
    control.abort(reason);
    reject(reason);
  };
  const timer = ms && setTimeout(stop, ms, new DOMException('timeout', 'TimeoutError'));
  signal.addEventListener('abort', () => stop(signal.reason));
  work(control.signal).finally(() => clearTimeout(timer)).then(resolve, reject);
});

// Seconds or a date (RFC 9110, 10.2.3). Date.parse alone takes "1.5" for a day in January.
function retryAfter(value) {
  if (/^\d+$/.test(value)) return value * 1000;
  if (/^[A-Z].+:/.test(value)) return Math.max(0, Date.parse(value) - Date.now());
  return undefined;
}

function pause(count, response, { maxRetryAfter, backoffLimit, delay, jitter }) {
  const after = retryAfter(response?.headers.get('Retry-After'));
  if (after >= 0) return Math.min(after, maxRetryAfter);
  const most = Math.min(delay(count), backoffLimit);
  return jitter.call ? jitter(most) : most * (jitter ? Math.random() : 1);
}

// A suppressed duplicate must not be sent again, nor what conflicts with something that waiting does not end.
function transient({ response, code }, { statusCodes }) {
  const { status, headers } = response;
  if (status === 409) return code === 'in_progress';
  if (status === 429) return code === 'rate_limited' || (code !== 'duplicate_in_window' && headers.has('Retry-After'));
  return statusCodes.includes(status);
}

/** One attempt: { response, code } or { error }. Its time limit is for the head of the answer; the call's signal covers the body too. */
export async function attempt(input, init, { timeout, fetch, signal }) {
  signal.throwIfAborted();
  try {
    return await within(timeout, signal, async (signal) => {
      const response = await fetch(new Request(input, { ...init, signal }));
      return { response, code: !response.ok && (await response.clone().json().catch(() => 0))?.code };
    });
  } catch (error) {
    return { error };
  }
}

/** Sends until there is an answer that counts. The call's tell is called before each wait: with "retry", or "offline" until there is a network. */
export async function repeat(send, { retry, tell, signal }) {
  for (let count = 1; ; count++) {
    const result = await send();
    const { response, error } = result;
    const state = { ...result, retryCount: count };
    if (response?.ok || signal.aborted || count > retry.limit || !(await retry.shouldRetry?.(state) ?? (error || transient(result, retry)))) {
      if (error) throw error;
      return result;
    }
    const offline = error && navigator?.onLine === false;
    const delay = pause(count, response, retry);
    tell?.(offline ? 'offline' : 'retry', { ...state, delay });
    response?.body?.cancel().catch(() => {}); // frees the connection
    await new Promise((resolve) => { if (offline) listen('online', resolve); else setTimeout(resolve, delay); });
  }
}
