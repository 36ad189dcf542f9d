// Package sqlitestore is the embedded ledger: a table in an SQLite database that the application may share, on
// modernc.org/sqlite, without cgo.
//
//	db, err := sqlitestore.Open("shop.db")
//	err = sqlitestore.Migrate(ctx, db, sqlitestore.Options{})
//	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
//
// # One writer
//
// SQLite has one writer at a time. The store queues its own writes in the process, first come, first served, before they reach the
// database, so that whoever waits holds no connection and ends when its context does. The transaction of work ([Tx], ClaimTx) takes the
// same place in that queue, from its first use until the work ends: an open write transaction is the lease. Nothing can be renewed meanwhile, and
// nobody can take over. Extend therefore waits a third of the shortest lease at most, notes the renewals and reports the claims as
// held; they are written before anything else, in the commit of the transaction that is in the way where it commits. Renewals that still
// wait go before claims. Slow work belongs before the transaction.
//
// Use one [Store] for a file and process, or two queues meet as two processes do. Another process that uses the file waits in SQLite, up to
// the busy timeout of the handle, and then gets its SQLITE_BUSY. It takes over claims whose lease ran out while a transaction of this one stood
// open and that had no chance to be renewed; the fence then refuses their writes. SQLite suits one process with several helpers beside it, such
// as a purge from the command line; several equal servers want Postgres.
//
// # Work in a transaction
//
// Work that holds [Tx] must write through it alone: a write through the application's own *sql.DB waits for the transaction, which waits for the work,
// until the busy timeout ends it with SQLITE_BUSY. Reads through *sql.DB go on beside it and see the state before it. A call to the
// store from a context whose own transaction is open, and which would wait for it, returns [ErrNested].
//
// SQLite itself undoes a transaction on some errors: ON CONFLICT ROLLBACK, RAISE(ROLLBACK), a full disk, a statement interrupted by the end
// of its context. What follows would commit statement by statement. The transaction that [Tx] returns refuses every further statement then, and the claim does not
// complete. Statements prepared on it are the database's own and cannot be watched in between; the completion is refused all the same.
//
// [Once] commits claim, work and record together in a transaction that it makes, [OnceTx] in a *sql.Tx that the caller has.
//
// # Clock
//
// SQLite has no clock but the process's; Options.Now is the one that leases go by. Idle limits of transactions and waiting times are
// measured in real time, the former from the last statement through Tx on.
package sqlitestore
