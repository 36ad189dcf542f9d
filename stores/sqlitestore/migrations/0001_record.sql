-- One row for each key. Times are integer microseconds since 1970 by the clock of the process that wrote them.
CREATE TABLE IF NOT EXISTS "{{table}}" (
    tenant         TEXT    NOT NULL,
    biz_type       TEXT    NOT NULL,
    biz_key        TEXT    NOT NULL,
    format         INTEGER NOT NULL,
    status         TEXT    NOT NULL,
    attempt        INTEGER NOT NULL,
    owner          TEXT,             -- NULL after a release and where the outcome is unknown
    subject        TEXT    NOT NULL,
    request_id     TEXT,
    fingerprint    BLOB,             -- of the running or successful payload
    result_status  INTEGER,
    result_headers TEXT,             -- JSON, pairs in the order in which they were written; NULL: header and body are not kept
    result_body    BLOB,
    result_until   INTEGER,          -- header and body are replayed until then; NULL: as long as the row is here
    error          TEXT,             -- why the last attempt ended, for people
    lease_until    INTEGER,          -- while processing
    expires_at     INTEGER NOT NULL, -- a finished row may be purged from then on
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, biz_type, biz_key)
) STRICT;

CREATE UNIQUE INDEX IF NOT EXISTS "{{table}}_request_id"
    ON "{{table}}" (tenant, biz_type, subject, request_id) WHERE request_id IS NOT NULL;

CREATE INDEX IF NOT EXISTS "{{table}}_finished"
    ON "{{table}}" (expires_at) WHERE status <> 'processing';

CREATE INDEX IF NOT EXISTS "{{table}}_result_until"
    ON "{{table}}" (result_until) WHERE result_until IS NOT NULL;
