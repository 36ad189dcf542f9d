// Types of idem-client.js. The script sets window.idem:
//
//     <script defer src="/idem/idem-client.js"></script>      or      import '/idem/idem-client.js';
//
//     const order = idem.intention('order.create');
//     button.onclick = () => order.fetch('/api/orders', { method: 'POST', body: JSON.stringify(cart) });
//
// Forms: <form method="post" data-idem> sends once until an answer comes. data-idem-busy on a button is its label meanwhile;
// data-idem-timeout on the form is after how many milliseconds (30000) a submission that went nowhere gives the form back.

export interface Options {
  /** What the token permits. Default: <meta name="idem-action">, then "default". */
  action?: string;
  /** Names the intention: 8 to 128 of A-Z a-z 0-9 . _ - Default: the embedded one, then a new one from the token service. */
  requestId?: string;
  /** A token that the application has already. Default: <meta name="idem-token">, once; then one from the token service. */
  token?: string;
  /**
   * Default: <meta name="idem-token-url">, then "/idem/token". Calls to another origin are left alone, without token and without
   * repetition, unless this is given.
   */
  tokenUrl?: string;
  /** How often a call is sent at most, the first time included. Default 5. */
  attempts?: number;
  /** The first wait in milliseconds; doubled each time, up to half of it less at random. Default 500. */
  backoff?: number;
  /** The longest wait in milliseconds. Where the server's Retry-After asks for more, its answer is returned. Default 30000. */
  maxWait?: number;
  /** How long one attempt may wait for the head of its answer, in milliseconds. Default 60000. */
  timeout?: number;
  /** Called before each wait, to show what is going on. */
  onwait?: (state: { attempt: number; delay: number; response?: Response; error?: unknown }) => void;
}

export interface Init extends RequestInit {
  /** For an intention's call: action, requestId and token are the intention's own, whatever is said here. */
  idem?: Options;
}

/** One thing that a person wants done. It keeps its request id for as long as it lives; for the next thing make a new one. */
export interface Intention {
  readonly action: string;
  /** Known from the first call on. */
  readonly requestId: string | undefined;
  readonly pending: boolean;
  /**
   * Like fetch. An unsafe method gets the headers Idempotent-Token and Idempotent-Request-Id, and is sent again, byte for byte, with the same two,
   * on a network error, a timeout, 408, 502, 503, 504, 409 in_progress, and 429 with Retry-After. On 409 token_expired the token is renewed
   * for the same request id. Every other answer is returned: after a 422 correct the payload and call again.
   *
   * While a call runs, an equal one joins it and gets a copy of its answer; a different one waits for it first.
   * An own Idempotent-Token or Idempotency-Key header wins: then no token is asked for or renewed.
   *
   * Rejects with the signal's reason as soon as it aborts, while waiting too; with the last network error when the attempts are used up; with an
   * Error that has a `response` when the token service refuses.
   */
  fetch(input: RequestInfo | URL, init?: Init): Promise<Response>;
}

export interface Idem {
  /**
   * A call whose intention is its content: action, method, URL and body. Equal calls join while one runs, and share a request id as long as none was
   * answered, over a reload of the page too. Once answered, an equal call is a new intention: for a button keep an intention.
   */
  fetch(input: RequestInfo | URL, init?: Init): Promise<Response>;
  intention(action?: string, options?: Omit<Options, 'action'>): Intention;
}

declare global {
  // eslint-disable-next-line no-var
  var idem: Idem;
}
