CREATE TABLE IF NOT EXISTS {{table}} (
    tenant         text COLLATE "C" NOT NULL,
    biz_type       text COLLATE "C" NOT NULL,
    biz_key        text COLLATE "C" NOT NULL,
    status         text COLLATE "C" NOT NULL,
    attempt        integer NOT NULL,
    owner          text COLLATE "C" NOT NULL,
    subject        text COLLATE "C" NOT NULL,
    request_id     text COLLATE "C",
    fingerprint    bytea,
    result_status  integer,
    result_headers text,
    result_body    bytea,
    error          text,
    format         smallint NOT NULL,
    lease_until    timestamptz NOT NULL,
    result_until   timestamptz,
    expires_at     timestamptz NOT NULL,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    PRIMARY KEY (tenant, biz_type, biz_key)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX IF NOT EXISTS {{request_id_index}} ON {{table}} (tenant, biz_type, subject, request_id)
    WHERE request_id IS NOT NULL;

CREATE INDEX IF NOT EXISTS {{processing_index}} ON {{table}} (created_at)
    WHERE status = 'processing';

CREATE INDEX IF NOT EXISTS {{expiry_index}} ON {{table}} (expires_at)
    WHERE status IN ('succeeded', 'failed', 'cancelled');
