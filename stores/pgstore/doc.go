// Package pgstore is the ledger in PostgreSQL 13 or later: a table beside the application's own, reached through the application's pool, so that
// business writes and the record of them commit together.
//
//	store, err := pgstore.New(pool, pgstore.Options{Schema: "app"})
//	tx, err := pgstore.Tx(ctx) // in guarded work: commits together with the record
//
// [Migrate] makes the table, [SQL] prints what it would run.
//
// # Columns
//
// Beside those that name themselves: biz_key is [idem.Key.Column]; tenant, biz_type, subject and request_id are [idem.Column], for Postgres text takes
// no NUL and an index entry is bounded. A record found under another key than the request's therefore shows "~" and a digest where a part did not fit.
// All text is COLLATE "C": keys are bytes, and an operating system's new sort order must not corrupt the index. owner stays after a success, so that a
// finish whose reply was lost is recognised. fingerprint and result_body are bytea and result_headers is JSON in a text column, as jsonb would reorder and
// lose bytes. result_headers is null where the result is not kept; result_until ends header and body before the record. format is [idem.Format]. expires_at is the
// end of the retention, written with each claim and finish but not with renewals: those touch no indexed column and stay heap-only updates, which is also
// why lease_until has no index, nor updated_at. Purge reads the partial index on expires_at; those on created_at are for Find. A vacuum after it does not shorten the
// file, which would keep claims waiting (vacuum_truncate is off): VACUUM (TRUNCATE) does, when it suits. Making an index keeps writers of a table that is large
// already waiting meanwhile; who cannot have that makes it CONCURRENTLY under the same name before Migrate.
//
// Fences are drawn from a sequence beside the table, of which a role that is not the owner needs USAGE. Whoever copies the table elsewhere takes the sequence along, and a
// fail-over to a standby that replicates asynchronously may draw a number again, as it may lose any commit: synchronous replication keeps both.
//
// # One transaction
//
// [Once] commits claim, work and record together in a transaction that it makes, [OnceTx] in one that the caller has. [NewSQL] takes a *sql.DB of pgx's driver
// instead of a pool; work then has the same transaction by [SQLTx], for code on database/sql, and by [Tx].
//
// # How it decides
//
// Every command is one pipeline from BEGIN ISOLATION LEVEL READ COMMITTED to COMMIT: one round trip, and no database-wide default of another level, under
// which a wait for the winner ends in 40001. A claim inserts ON CONFLICT DO NOTHING and then selects: the second statement sees the winner whom the first
// one waited for, which one statement with a CTE does not, and DO UPDATE would lock and write held rows. [idem.Judge] decides; a takeover is an UPDATE bound to the attempt that
// was judged, and judged again when it meets no row. Times are clock_timestamp(): now() stands still in a transaction that works for a while.
//
// A claim in one transaction with its work holds an advisory transaction lock on the key, and one on the request id. Others only try that lock - shared, so that they do not
// get in one another's way - and never wait on the uncommitted row: who waits there holds a connection, and a frozen holder would block it for ever.
// idle_in_transaction_session_timeout ends such a holder. Lookup reads pg_locks, so that looking takes nothing from anybody.
//
// Errors are told apart by SQLSTATE. No session lock, LISTEN or temporary table is used, so PgBouncer's transaction mode will do, with a pgx query mode that suits it.
package pgstore
