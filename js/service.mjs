import { createServer } from 'node:http';

export const problem = (status, code, headers = {}) => ({
  status, headers: { 'Content-Type': 'application/problem+json', ...headers }, body: JSON.stringify({ code }),
});

// Service is a token service and a guarded route over real connections, with scripted answers. It also lends what a page
// has and Node has not: the storage of a tab, the metas of a document.
export class Service {
  #server = createServer((request, response) => this.#serve(request, response));

  async listen() {
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.base = `http://127.0.0.1:${this.#server.address().port}`;
    return this.base;
  }

  close() {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(resolve));
  }

  reset() {
    this.issued = [];
    this.calls = [];
    this.metas = {};
    this.scripts = { '/token': [], '/orders': [] };
    this.stored = new Map();
    this.release();
  }

  // answers scripts the next answers of a path; then it succeeds again.
  answers(path, ...list) { this.scripts[path].push(...list); }

  // hold keeps the answers of the guarded route back until release; reached resolves when n calls have come.
  hold() { this.gate = new Promise((resolve) => { this.release = () => { this.gate = undefined; resolve(); }; }); }
  release() { this.gate = undefined; }

  async reached(n) {
    while (this.calls.length < n) await new Promise((resolve) => setImmediate(resolve));
  }

  get storage() {
    return {
      getItem: (key) => this.stored.get(key) ?? null,
      setItem: (key, value) => this.stored.set(key, value),
      removeItem: (key) => this.stored.delete(key),
    };
  }

  get document() {
    return { querySelector: (selector) => ({ content: this.metas[/"(.*)"/.exec(selector)[1]] ?? '' }) };
  }

  async #serve(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const token = request.url === '/token';
    if (token) this.issued.push(JSON.parse(body));
    else this.calls.push({ method: request.method, headers: request.headers, body });
    const n = this.issued.length;
    const issued = token && { token: `token-${n}`, requestId: JSON.parse(body).requestId ?? `request-${n}` };
    if (!token) await this.gate;
    const answer = this.scripts[request.url].shift() ?? { status: 201, body: JSON.stringify(issued || { id: this.calls.length }) };
    if (answer.destroy) return request.socket.destroy();
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }
}
