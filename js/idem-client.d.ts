// Types of idem-client.js, a module without dependencies:
//
//     <script type="module" src="/idem/idem-client.js"></script>      or      import { idem } from '/idem/idem-client.js';
//
//     button.onclick = () => idem.fetch('/api/orders', { action: 'order.create', json: cart });
//
// The default instance is globalThis.idem too; a second copy of the script does nothing and exports the first one's instance.
//
// Forms: <form method="post" data-idem="/idem/token"> sends once until an answer comes; the value is where its token is renewed. Until then it is
// aria-busy, its buttons are aria-disabled, its fields readonly, and data-idem-busy is the label of the button that was pressed. data-idem-timeout is
// after how many milliseconds (30000) a submission that went nowhere gives the form back. What becomes of it is said in the element behind the form, or
// else in the first of the page that has role="status" and data-idem-sending; further texts are data-idem-working (after 15 s, or half of the
// time-out), -done, -failed and -sent (Back brought the form). After a failure [role=alert][tabindex] gets the focus.

/** What is known of an attempt when it is asked whether to try again. */
export interface Attempt {
  /** The answer, if there was one. Read a clone of it. */
  response?: Response;
  /** The `code` of an answer in application/problem+json. */
  code?: string;
  /** Why there was no answer: a network error, or a DOMException named TimeoutError. */
  error?: unknown;
  /** Which retry this would be: 1, 2, ... */
  retryCount: number;
}

/** When and how often a call is sent again, always with the same token, request id and bytes. The names are ky's. */
export interface Retry {
  /** How often a call is sent again at most. Default 4. */
  limit?: number;
  /**
   * Answers that are worth another try. Default 408, 425, 500, 502, 503, 504. Whatever is said here: 409 is repeated with the code in_progress only,
   * 429 with the code rate_limited, or with Retry-After unless its code is duplicate_in_window.
   */
  statusCodes?: readonly number[];
  /** The longest wait in milliseconds that a Retry-After, in seconds or as a date, may ask for; what asks for more is answered by this. Default 30000. */
  maxRetryAfter?: number;
  /** The longest wait in milliseconds where the server asks for none. Default 30000. */
  backoffLimit?: number;
  /** The wait in milliseconds before the first, second, ... retry. Default 300, 600, 1200, ... */
  delay?: (retryCount: number) => number;
  /** true, the default: at random between none and all of the wait. false: all of it. Otherwise what this makes of it. */
  jitter?: boolean | ((delay: number) => number);
  /** true: try again; false: do not; undefined: as it would be without this. Asked of failures, while the limit is not reached. */
  shouldRetry?: (attempt: Attempt) => boolean | undefined | Promise<boolean | undefined>;
}

/** Settings of a client; a call can give its own. */
export interface Options {
  /** What the token permits. Default: <meta name="idem-action">, then "default". */
  action?: string;
  /** Where tokens come from, relative to the address that is called. Default: <meta name="idem-token-url">, then "/idem/token". */
  tokenUrl?: string;
  /**
   * Origins beside the page's own that may see tokens. To others, and without a page to all, calls go as fetch sends them: no token, no retry.
   * Where there are any, a redirect is followed wherever it leads, with the token.
   */
  origins?: readonly string[];
  /** How many tokens are fetched ahead at once, 1 to 32. Default 0: one when it is needed. */
  pool?: number;
  retry?: Retry;
  /** How long one attempt may wait for the head of its answer, in milliseconds. 0 or false: for ever. Default 60000. */
  timeout?: number | false;
  /** How long all attempts and waits may take together, in milliseconds. Default: for ever. */
  totalTimeout?: number | false;
  /** What sends, tokens included. Default: the global one. */
  fetch?: (request: Request) => Promise<Response>;
  /** Default "Idempotent-Token". */
  tokenHeader?: string;
  /** Default "Idempotent-Request-Id". */
  requestIdHeader?: string;
}

/** Settings of a client. */
export interface ClientOptions extends Options {
  /** Sent with every call, where the call does not name them itself. */
  headers?: HeadersInit;
}

/** What one call may say, beside what fetch takes. */
export interface Init extends RequestInit, Options {
  /**
   * Names the intention: 8 to 128 of A-Z a-z 0-9 . _ - Calls of one request id are one intention, whatever they carry; the server refuses another payload
   * once one went through. Default: the intention is action, method, URL, content and who asks, and has a new id after each success.
   */
  requestId?: string;
  /** A body, sent as application/json; the method is POST unless given. */
  json?: unknown;
}

/** A token and what it is for, as the token service gives it. */
export interface Grant {
  token: string;
  requestId: string;
  action?: string;
  /** RFC 3339. */
  expiresAt?: string;
  /** Seconds. */
  expiresIn?: number;
}

export interface Client {
  /**
   * Like fetch. A call by an unsafe method gets a token and a request id, and is sent again, byte for byte, with the same two, on a network error, a timeout
   * and the answers that Retry names. They are kept until a success, over failures, aborts and a reload of the page (in sessionStorage: ids and
   * tokens, no content): a timeout or abort undoes nothing, the same call again sends the same pair. A token that expires is renewed, unnoticed.
   *
   * While a call runs, an equal one joins it and gets a copy of its answer. Without a network it waits, until there is one. When the page is left it ends,
   * unless it is keepalive.
   *
   * An own Idempotent-Token or Idempotency-Key header wins: then no token is asked for or renewed. A body that is a stream is refused, before anything is sent:
   * it cannot be sent twice.
   *
   * Rejects with the signal's reason as soon as it aborts, while waiting too; with the last network error when the retries are used up; with a
   * TimeoutError; with an Error that has a `response` when the token service refuses.
   */
  fetch(input: RequestInfo | URL, init?: Init): Promise<Response>;
  /** A token: for a new intention, or a renewed one for that of requestId. */
  token(init?: { action?: string; requestId?: string; tokenUrl?: string; signal?: AbortSignal }): Promise<Grant>;
}

/** What the events tell. */
export interface Detail extends Partial<Attempt> {
  action: string;
  /** Unknown to the first idem:start of an intention. */
  requestId?: string;
  /** Milliseconds until the next attempt: idem:retry. */
  delay?: number;
  /** Ends the call, for all who joined it; they get reason, or an AbortError. */
  cancel(reason?: unknown): void;
}

/** A client with settings of its own. It shares with others what was begun and not finished. */
export declare function createClient(options?: ClientOptions): Client;

/** For libraries that send the forms marked data-idem themselves, as htmx.js and turbo.js do. */
export interface Forms {
  /** The form is being sent: locked and pending until give. False: it is being sent already. */
  take(form: HTMLFormElement, submitter?: HTMLElement | null): boolean;
  /** The answer is there. Not done: the form is given back at once, with its token. Done: with a fresh one, if it is still in the page. */
  give(form: HTMLFormElement, done: boolean): Promise<void>;
}

/** The default instance: it guards the forms where there is a document, and makes clients for scripts that are not modules. */
export declare const idem: Client & { readonly createClient: typeof createClient; readonly forms?: Forms };

declare global {
  // eslint-disable-next-line no-var
  var idem: Client & { readonly createClient: typeof createClient; readonly forms?: Forms };

  /** Dispatched on the document, once a call and not once a caller; they bubble to the window. Each start is followed by one success or error. */
  interface DocumentEventMap {
    'idem:start': CustomEvent<Detail>;
    /** Before each wait. */
    'idem:retry': CustomEvent<Detail>;
    /** There is no network: the call waits until there is one. */
    'idem:offline': CustomEvent<Detail>;
    /** The answer is the recorded one of an earlier submission; idem:success or idem:error follows. */
    'idem:replay': CustomEvent<Detail>;
    /** A status below 400. */
    'idem:success': CustomEvent<Detail>;
    /** A refusal, with response and code, or an error. */
    'idem:error': CustomEvent<Detail>;
  }
}
