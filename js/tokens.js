import { meta } from './page.js';
import { attempt, repeat } from './retry.js';

let taken; // the page's own token serves one intention
function embedded(action, id) {
  const token = meta('token'), requestId = meta('request-id');
  if (token === taken || action !== meta('action') || (id ?? requestId) !== requestId) return undefined;
  taken = token;
  return { token, requestId };
}

// The headers are the call's, because who asks may be in them.
async function ask(call, body) {
  const headers = new Headers(call.headers);
  headers.set('Content-Type', 'application/json');
  const init = { method: 'POST', credentials: call.request.credentials, headers, body: JSON.stringify(body) };
  const { response } = await repeat(() => attempt(call.tokenUrl, init, call), call);
  if (!response.ok) throw Object.assign(Error('idem: no token'), { response });
  return response.json();
}

/** A grant for a new intention, or for the one that requestId names. pools are the grants fetched ahead, by action. */
export async function obtain(pools, call, requestId) {
  const { action, pool: count } = call;
  const own = embedded(action, requestId);
  if (own) return own;
  if (!count || requestId) return ask(call, { action, requestId });
  const pool = pools[action] ??= [];
  const fill = async (asking) => pool.push(...(await ask(asking, { action, count })).tokens);
  while (!pool.length) await fill(call);
  const grant = pool.shift();
  if (!pool.length) fill({ ...call, tell: undefined }).catch(() => {}); // the next one need not wait
  return grant;
}
