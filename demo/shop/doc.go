// Package shop is the demonstration: a small shop whose orders, accounts and refunds are guarded by idem in each of the three ways to run work.
//
//   - Orders are written in the ledger's transaction, which the guard commits together with the record of the claim.
//   - Transfers share one transaction with their claim.
//   - Refunds go to a pretended gateway, which commits on its own; a resolver asks it what became of an attempt that died.
//
// The tables live in the ledger's database, in Postgres or SQLite. Every page works under a Content-Security-Policy of 'self'.
package shop
