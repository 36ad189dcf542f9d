// Package idem makes submitting something twice harmless.
//
// Everything is one idea: claiming a [Key]. A [Claim] has an owner, an attempt, a lease and, at the end, a [Result]
// that every duplicate gets. A token is a permission to claim; a consumed message is a claim in the [Ledger].
//
// The package holds the vocabulary, the contracts of stores and the engine on top of them. [Once] runs a function once for a business key; [Lock]
// keeps two workers apart, [Window] lets one call through in a length of time, and a [Janitor] looks after the ledger.
// Package web guards HTTP handlers, package tokens signs one-time tokens, and the packages below stores keep the records.
package idem
