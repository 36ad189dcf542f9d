// Package web guards HTTP handlers: the first submission runs, every duplicate gets its answer.
//
// A [Guard] is middleware for net/http. [Guard.Token] guards a route with one-time tokens, which pages behind [Guard.Forms] embed and
// [Guard.Routes] hands out; [Guard.Key] guards it with a key that the request names. Two more need no memory of what was done: [Guard.Window]
// suppresses repetitions within a time, [Guard.Lock] lets one request of a key run at a time. Services in other languages guard their own work with the
// calls consume, extend, complete and fail of [Guard.Routes].
//
// # On the wire
//
//   - POST <prefix>/token of [Guard.Routes] issues a token. The body is empty, or JSON {"action","requestId","count"}, all optional; the answer is
//     201 {"token","requestId","action","expiresAt","expiresIn"}, or {"tokens":[...]} where count was given. Asking again with the same
//     requestId renews: a new token for the same intention.
//   - A submission carries the token in the header Idempotent-Token, or in the form field idempotent_token within the first 64 KiB of the body.
//   - The request id names the intention. The token carries it; who sends it too, as Idempotent-Request-Id (Config.RequestIDHeader) or
//     idempotent_request_id, must send the token's. Answers to an authentic token have it in the same header.
//   - A replay is the first answer, status, headers and body, with Idempotent-Replayed: true added. It has no Set-Cookie ([ReplayCookies]).
//   - A refusal is application/problem+json, to browsers a page, to htmx a fragment. GET <prefix>/problems/<code> says what a code means.
//
// # What counts
//
//   - 2xx and 3xx are success: the answer is kept, and every duplicate gets it. Of a redirect no body is kept. What is larger than
//     Config.ResponseLimit or was flushed goes through, and duplicates get already_done.
//   - Every other status and a panic free the claim: the same token or key may be sent again, with other contents too.
//   - The handler may say otherwise: [Reject], nothing happened, whatever the status; [Unknown], it may have happened.
//   - Two calls are the same where method, path, query, media type, body and key are; of forms the fields and files, not the boundary. Token fields do not count, nor
//     what [Ignore] names. The same token or key with other contents is refused as payload_mismatch.
//   - GET, HEAD, OPTIONS and TRACE pass unguarded.
//
// # What stands in front
//
// Authentication and authorisation: a replay is an answer like the first one, and the handler that would have asked whether it may be given is
// not run for it. Middleware in front of the guard is asked for every duplicate, so that a right that was revoked ends the replays too.
//
// # Three ways to run the work
//
//   - As it comes: the claim is committed before the handler starts. What the handler writes in the ledger's transaction (pgstore.Tx or
//     sqlitestore.Tx of its context) commits together with the result: exactly once. Effects elsewhere - a mail, a gateway - happen at least
//     once after a crash; idem.FromContext tells the attempt, and its OutboundKey is the same on each.
//   - [SameTx]: claim, work and result are one transaction. One commit instead of two; a crash leaves nothing, not even the attempt.
//   - The handler commits on its own, elsewhere or in a transaction of its own: at least once after a crash, unless its own unique key, or a
//     [Resolver], says that it was done.
package web
