CREATE SEQUENCE IF NOT EXISTS {{fence}} AS bigint NO CYCLE;

CREATE INDEX IF NOT EXISTS {{failed_index}} ON {{table}} (created_at)
    WHERE status = 'failed';

-- After a purge a vacuum would give the end of the file back, under a lock that claims wait for.
ALTER TABLE {{table}} SET (vacuum_truncate = false, toast.vacuum_truncate = false);
