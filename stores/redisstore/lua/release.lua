-- Ends the claim without success.
-- ARGV[12] attempt  [13] 'failed', 'cancelled', or 'processing' where the outcome is unknown: the payload stays bound
-- Returns 'ok', also to the repetition that finds the record as the first call left it; 'lost', or 'format' where the record is of a newer one.

local record, unreadable = load()
if unreadable then return 'format' end
local attempt, state = tonumber(ARGV[12]), ARGV[13]
if not record then return primarys('lost') end
if record.state == state and record.attempt == attempt and record.owner == '' then return primarys('ok') end
if record.state ~= 'processing' or not held(record, attempt) then return primarys('lost') end

redis.call('HSET', KEYS[1], 'state', state, 'owner', '', 'lease', integer(now()))
if state ~= 'processing' then redis.call('HSET', KEYS[1], 'fingerprint', '') end
keep()
return 'ok'
