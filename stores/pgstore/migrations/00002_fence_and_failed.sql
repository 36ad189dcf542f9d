CREATE SEQUENCE IF NOT EXISTS {{fence}} AS bigint NO CYCLE;

CREATE INDEX IF NOT EXISTS {{failed_index}} ON {{table}} (created_at)
    WHERE status = 'failed';
