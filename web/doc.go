// Package web guards HTTP handlers: the first submission runs, every duplicate gets its answer.
//
// A [Guard] is middleware for net/http. [Guard.Token] guards a route with one-time tokens, which pages behind [Guard.Forms] embed and
// [Guard.Routes] hands out; [Guard.Key] guards it with a key that the request names. Two more need no memory of what was done: [Guard.Window]
// suppresses repetitions within a time, [Guard.Lock] lets one request of a key run at a time. What goes over the wire, and what each refusal means,
// is the page of [Guard.Routes] below problems. Services in other languages guard their own work with its calls consume, extend, complete and fail.
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
