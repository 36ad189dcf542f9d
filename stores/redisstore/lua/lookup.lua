-- Reads the record. Of ARGV only the format counts.
-- Returns {'found', the record as describe gives it}, {'absent'} or {'format'} where the record is of a newer one.

local record, unreadable = load()
if unreadable then return {'format'} end
if not record then return primarys({'absent'}) end
if record.state == 'succeeded' then return {'found', describe(record)} end
return primarys({'found', describe(record)})
