-- Claims the record. KEYS and ARGV: see record.lua; none of its own.
-- Returns {'won', attempt}, {'busy' | 'done' | 'mismatch' | 'withdrawn', the record as describe gives it}, {'foreign'}
-- or {'format'} where the record is of a newer one.

local record, unreadable = load()
if unreadable then return {'format'} end
return answer(judge(record), record)
