package pgstore

import "github.com/idemkit/idem"

// Every parameter is cast, so that the simple protocol and undescribed statements mean the same as prepared ones. $1 to $3 are always tenant, biz_type
// and biz_key. Durations are bigint microseconds; locks are bigint, null where there is no request id.
const (
	begin  = `BEGIN ISOLATION LEVEL READ COMMITTED`
	commit = `COMMIT`

	// free tries the locks that a claim in one transaction with its work holds.
	free = `pg_try_advisory_xact_lock_shared($10::bigint) AND ($11::bigint IS NULL OR pg_try_advisory_xact_lock_shared($11::bigint))`

	insertClaim = `
INSERT INTO {{table}} (tenant, biz_type, biz_key, status, attempt, owner, subject, request_id, fingerprint, format,
    lease_until, expires_at, created_at, updated_at)
SELECT $1::text, $2::text, $3::text, 'processing', 1, $4::text, $5::text, $6::text, $7::bytea, {{format}},
    clock.now + $8::bigint * interval '1 microsecond', clock.now + $9::bigint * interval '1 microsecond', clock.now, clock.now
FROM (SELECT clock_timestamp() AS now) clock
WHERE {{free}}
ON CONFLICT DO NOTHING
RETURNING attempt`

	// insertTaken and takeOver raise division_by_zero when they change nothing, so that the COMMIT behind them in the pipeline does not happen.
	insertTaken = `WITH taken AS (` + insertClaim + `) SELECT 1 / count(*), coalesce(max(attempt), 0) FROM taken`

	takeOver = `
WITH taken AS (
    UPDATE {{table}} SET status = 'processing', attempt = attempt + 1, owner = $4::text, subject = $5::text, request_id = $6::text,
        fingerprint = coalesce($7::bytea, CASE WHEN status = 'processing' THEN fingerprint END), format = {{format}},
        lease_until = clock_timestamp() + $8::bigint * interval '1 microsecond',
        expires_at = greatest(expires_at, clock_timestamp() + $9::bigint * interval '1 microsecond'), updated_at = clock_timestamp()
    WHERE tenant = $1::text AND biz_type = $2::text AND biz_key = $3::text AND attempt = $12::integer AND format <= {{format}}
        AND (status = 'failed' OR (status = 'processing' AND lease_until <= clock_timestamp()))
        AND {{free}}
    RETURNING attempt
) SELECT 1 / count(*), coalesce(max(attempt), 0) FROM taken`

	giveUpRequestID = `
UPDATE {{table}} SET request_id = NULL, updated_at = clock_timestamp()
WHERE tenant = $1::text AND biz_type = $2::text AND subject = $4::text AND request_id = $5::text AND biz_key <> $3::text
    AND status = 'failed' AND format <= {{format}}`

	// recordColumns read a row, or its absence in an outer join. now() decides whether the result is kept, so that header and body agree.
	recordColumns = `coalesce(t.biz_key, ''), coalesce(t.status, ''), coalesce(t.attempt, 0), coalesce(t.owner, ''),
    coalesce(t.subject, ''), coalesce(t.request_id, ''), t.fingerprint, coalesce(t.error, ''), coalesce(t.result_status, 0),
    CASE WHEN t.result_until IS NULL OR t.result_until > now() THEN t.result_headers END,
    CASE WHEN t.result_until IS NULL OR t.result_until > now() THEN t.result_body END,
    coalesce((extract(epoch FROM t.result_until - now()) * 1000000)::bigint, 0),
    coalesce((extract(epoch FROM t.lease_until - clock_timestamp()) * 1000000)::bigint, 0), coalesce(t.format, 0)`

	// find always returns a row: whether the key is free, and what stands under the key or bears the request id.
	find = `
SELECT lock.free, {{columns}}
FROM (SELECT pg_try_advisory_xact_lock_shared($6::bigint)
        AND ($7::bigint IS NULL OR pg_try_advisory_xact_lock_shared($7::bigint)) AS free) lock
LEFT JOIN (
    SELECT * FROM {{table}} WHERE tenant = $1::text AND biz_type = $2::text AND biz_key = $3::text
    UNION ALL
    SELECT * FROM {{table}} WHERE tenant = $1::text AND biz_type = $2::text AND subject = $4::text AND request_id = $5::text
        AND biz_key <> $3::text
) t ON true`

	look = `
SELECT true, {{columns}} FROM {{table}} t WHERE tenant = $1::text AND biz_type = $2::text AND biz_key = $3::text
UNION ALL
SELECT true, {{columns}} FROM {{table}} t WHERE tenant = $1::text AND biz_type = $2::text AND subject = $4::text AND request_id = $5::text
    AND biz_key <> $3::text`

	// worked tells whether a transaction holds the key while it works. It must run before look: a holder that commits between them is then seen as a row.
	worked = `
SELECT CASE WHEN EXISTS (
    SELECT 1 FROM {{table}} WHERE tenant = $1::text AND biz_type = $2::text AND biz_key = $3::text
        AND (status IN ('succeeded', 'cancelled') OR (status = 'processing' AND lease_until > clock_timestamp())))
THEN false
ELSE EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted AND objsubid = 1
        AND classid = $4::bigint::oid AND objid = $5::bigint::oid
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
END`

	// held never holds for an empty owner, which is what a release leaves.
	held = `
    WHERE tenant = $1::text AND biz_type = $2::text AND biz_key = $3::text AND owner = $4::text AND owner <> '' AND attempt = $5::integer
        AND status = 'processing' AND format <= {{format}}`

	// complete and release raise division_by_zero when the claim is not held: behind them in the pipeline stands COMMIT, and before them the work's writes.
	complete = `
WITH done AS (
    UPDATE {{table}} SET status = 'succeeded', error = NULL, result_status = $6::integer, result_headers = $7::text, result_body = $8::bytea,
        result_until = CASE WHEN $9::bigint > 0 THEN clock_timestamp() + $9::bigint * interval '1 microsecond' END,
        expires_at = greatest(expires_at, clock_timestamp() + $10::bigint * interval '1 microsecond'), updated_at = clock_timestamp()` + held + `
    RETURNING 1
) SELECT 1 / count(*) FROM done`

	release = `
WITH done AS (
    UPDATE {{table}} SET status = $6::text, owner = '', error = $7::text, lease_until = clock_timestamp(),
        fingerprint = CASE WHEN $6::text = 'processing' THEN fingerprint END,
        expires_at = greatest(expires_at, clock_timestamp() + $8::bigint * interval '1 microsecond'), updated_at = clock_timestamp()` + held + `
    RETURNING 1
) SELECT 1 / count(*) FROM done`

	// fence ends a claim whose commit is unknown: a late finish finds another owner and raises.
	fence = `UPDATE {{table}} SET owner = '', lease_until = clock_timestamp(), updated_at = clock_timestamp()` + held

	// extend skips rows that somebody is writing at this moment, so that no claim of the process waits for another's. It returns what it did not renew, and whether that is
	// lost or such a row.
	extend = `
WITH claims AS (
    SELECT tenant, biz_type, biz_key, nullif(owner, '') AS owner, attempt, lease, position
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::bigint[])
        WITH ORDINALITY AS c (tenant, biz_type, biz_key, owner, attempt, lease, position)
), mine AS (
    SELECT t.tenant, t.biz_type, t.biz_key, c.lease, c.position FROM claims c
    JOIN {{table}} t ON t.tenant = c.tenant AND t.biz_type = c.biz_type AND t.biz_key = c.biz_key AND t.owner = c.owner AND t.attempt = c.attempt
    WHERE t.status = 'processing' AND t.format <= {{format}}
    FOR UPDATE OF t SKIP LOCKED
), renewed AS (
    UPDATE {{table}} t SET lease_until = clock_timestamp() + mine.lease * interval '1 microsecond', updated_at = clock_timestamp()
    FROM mine WHERE t.tenant = mine.tenant AND t.biz_type = mine.biz_type AND t.biz_key = mine.biz_key
)
SELECT c.position, NOT EXISTS (
    SELECT 1 FROM {{table}} t WHERE t.tenant = c.tenant AND t.biz_type = c.biz_type AND t.biz_key = c.biz_key
        AND t.owner = c.owner AND t.attempt = c.attempt AND t.status = 'processing' AND t.format <= {{format}})
FROM claims c WHERE c.position NOT IN (SELECT position FROM mine)
ORDER BY c.position`

	// ping reads no row: behind a purge there may be many dead ones.
	ping = `SELECT current_setting('transaction_read_only')::boolean FROM (SELECT 1) one LEFT JOIN (SELECT 1 FROM {{table}} LIMIT 0) t ON true`

	// impatient bounds waits for row locks; patient puts back what the application had set, of which the store knows nothing.
	impatient = `SELECT set_config('idem.lock_timeout', current_setting('lock_timeout'), true), set_config('lock_timeout', $1::text, true)`
	patient   = `SELECT set_config('lock_timeout', current_setting('idem.lock_timeout'), true)`

	boundIdle = `SELECT set_config('idle_in_transaction_session_timeout', $1::text, true)`

	tryHold = `SELECT pg_try_advisory_xact_lock($1::bigint) AND ($2::bigint IS NULL OR pg_try_advisory_xact_lock($2::bigint))`
	hold    = `SELECT pg_advisory_xact_lock($1::bigint)`
)

// statements are rendered for one table.
type statements struct {
	insertClaim, insertTaken, takeOver, giveUpRequestID, find, look, worked string
	complete, release, fence, extend, purge, draw, ping                     string
	search                                                                  map[idem.State]string
}

func (n names) statements() statements {
	return statements{
		insertClaim: n.render(insertClaim), insertTaken: n.render(insertTaken), takeOver: n.render(takeOver), giveUpRequestID: n.render(giveUpRequestID),
		find: n.render(find), look: n.render(look), worked: n.render(worked), complete: n.render(complete), release: n.render(release),
		fence: n.render(fence), extend: n.render(extend), purge: n.render(purge), draw: n.render(draw), ping: n.render(ping),
		search: n.searches(),
	}
}
