-- The last number that Fence gave out, in one row.
CREATE TABLE IF NOT EXISTS "{{table}}_fence" (
    one  INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS "{{table}}_processing"
    ON "{{table}}" (updated_at) WHERE status = 'processing';

CREATE INDEX IF NOT EXISTS "{{table}}_failed"
    ON "{{table}}" (updated_at) WHERE status = 'failed';
