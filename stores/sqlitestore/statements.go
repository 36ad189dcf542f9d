package sqlitestore

import "github.com/idemkit/idem"

// statements are the store's, with the table's name in them.
type statements struct {
	lock, find, claim, giveUp, extend, complete, release, purge, erase, draw, ping string
	abandoned                                                                      string
	search                                                                         map[idem.State]string
}

const recordColumns = `biz_key, format, status, attempt, owner, subject, request_id, fingerprint, error,
	result_status, result_headers, result_body, result_until, lease_until`

func (o Options) statements() statements {
	return statements{
		lock: o.named(`UPDATE "{{table}}" SET attempt = attempt WHERE 0`),

		// One statement, and so one state of the table: the record under the key and the one that bears the request id.
		find: o.named(`SELECT ` + recordColumns + ` FROM "{{table}}" WHERE tenant = ?1 AND biz_type = ?2 AND biz_key = ?3
			UNION ALL SELECT ` + recordColumns + ` FROM "{{table}}"
			WHERE tenant = ?1 AND biz_type = ?2 AND subject = ?4 AND request_id = ?5 AND biz_key <> ?3`),

		claim: o.named(`INSERT INTO "{{table}}" (tenant, biz_type, biz_key, format, status, attempt, owner, subject, request_id, fingerprint,
				lease_until, expires_at, created_at, updated_at)
			VALUES (?, ?, ?, ?, 'processing', ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (tenant, biz_type, biz_key) DO UPDATE SET format = excluded.format, status = excluded.status,
				attempt = excluded.attempt, owner = excluded.owner, subject = excluded.subject, request_id = excluded.request_id,
				fingerprint = excluded.fingerprint, lease_until = excluded.lease_until,
				expires_at = max(expires_at, excluded.expires_at), updated_at = excluded.updated_at`),

		giveUp: o.named(`UPDATE "{{table}}" SET request_id = NULL, updated_at = ?6
			WHERE tenant = ?1 AND biz_type = ?2 AND subject = ?4 AND request_id = ?5 AND biz_key <> ?3 AND status = 'failed'`),

		extend: o.named(`UPDATE "{{table}}" SET lease_until = ?, expires_at = max(expires_at, ?), updated_at = ? ` + held),

		complete: o.named(`UPDATE "{{table}}" SET status = 'succeeded', result_status = ?, result_headers = ?, result_body = ?,
			result_until = ?, error = NULL, lease_until = NULL, expires_at = max(expires_at, ?), updated_at = ? ` + held),

		release: o.named(`UPDATE "{{table}}" SET status = ?1, owner = NULL, error = ?2, lease_until = ?3, expires_at = max(expires_at, ?4), updated_at = ?5,
			fingerprint = CASE ?1 WHEN 'processing' THEN fingerprint END ` + heldNumbered),

		purge: o.named(purge), abandoned: o.named(abandoned), search: o.searches(), draw: o.named(draw),

		erase: o.named(`UPDATE "{{table}}" SET result_headers = NULL, result_body = NULL, result_until = NULL
			WHERE rowid IN (SELECT rowid FROM "{{table}}" WHERE result_until <= ? AND format <= ? ORDER BY result_until LIMIT ?)`),

		ping: o.named(`SELECT 1 FROM "{{table}}" LIMIT 1`),
	}
}

// The fence: a write of a claim finds its record only while owner and attempt both stand in it.
const (
	held = `WHERE tenant = ? AND biz_type = ? AND biz_key = ? AND owner = ? AND attempt = ?
		AND status = 'processing' AND format <= ?`
	heldNumbered = `WHERE tenant = ?6 AND biz_type = ?7 AND biz_key = ?8 AND owner = ?9 AND attempt = ?10
		AND status = 'processing' AND format <= ?11`
)
