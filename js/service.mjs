import { createServer } from 'node:http';
import { createClient } from './client.js';

export const problem = (status, code, headers = {}) => ({
  status, headers: { 'Content-Type': 'application/problem+json', ...headers }, body: JSON.stringify({ code }),
});

export const post = (body = '{"item":"tea"}', more = {}) => ({ method: 'POST', body, ...more });

// Service is a token service and a guarded route over real connections, with scripted answers.
export class Service {
  #server = createServer((request, response) => this.#serve(request, response));

  async listen() {
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.base = `http://127.0.0.1:${this.#server.address().port}`;
    this.url = `${this.base}/orders`;
  }

  close() {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(resolve));
  }

  reset() {
    this.issued = [];
    this.asked = [];
    this.calls = [];
    this.life = 60;
    this.scripts = { '/idem/token': [], '/orders': [] };
    this.release();
  }

  // client may send its tokens here, and waits next to nothing where it is not told to.
  client({ retry, ...more } = {}) {
    return createClient({ origins: [this.base], action: 'order.create', retry: { jitter: () => 1, ...retry }, ...more });
  }

  // answers scripts the next answers of a path; then it succeeds again.
  answers(path, ...list) { this.scripts[path].push(...list); }

  // hold keeps the answers of the guarded route back until release; reached resolves when n calls have come.
  hold() { this.gate = new Promise((resolve) => { this.release = () => { this.gate = undefined; resolve(); }; }); }
  release() { this.gate = undefined; }

  async reached(n) {
    while (this.calls.length < n) await new Promise((resolve) => setImmediate(resolve));
  }

  tokens() { return this.calls.map((call) => call.headers['idempotent-token']); }
  requestIds() { return this.calls.map((call) => call.headers['idempotent-request-id']); }

  #issue({ requestId, count }) {
    const one = () => {
      const n = this.made = (this.made ?? 0) + 1;
      return { token: `token-${n}`, requestId: requestId ?? `request-${n}`, expiresIn: this.life };
    };
    return count ? { tokens: Array.from({ length: count }, one) } : one();
  }

  async #serve(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { url, method, headers } = request;
    const call = { method, headers, body, at: performance.now() };
    const asked = url === '/idem/token' && JSON.parse(body);
    if (asked) {
      this.issued.push(asked);
      this.asked.push(call);
    } else {
      this.calls.push(call);
      await this.gate;
    }
    const answer = this.scripts[url].shift() ?? { status: 201, body: JSON.stringify(asked ? this.#issue(asked) : { id: this.calls.length }) };
    if (answer.destroy) return request.socket.destroy();
    if (answer.never) return undefined;
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }
}
