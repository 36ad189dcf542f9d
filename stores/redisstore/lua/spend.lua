-- Compares and deletes a token and claims the record that it permits to claim.
-- KEYS[3] the token, a string: its request id
-- ARGV[12] the request id that the token must hold
-- Returns what claim returns, or {'unknown'} where there is neither record nor token, and no ledger that would decide.

local record, unreadable = load()
if unreadable then return {'format'} end
local known = redis.call('GET', KEYS[3]) == ARGV[12]
if not record and not known and request.ledger == '' then return primarys({'unknown'}) end

local outcome = judge(record)
-- Written before the token is deleted: where Redis has no memory left the write fails, and the token must then still be there.
local reply = answer(outcome, record)
-- Whatever the record says, the token was used, lest it permit a claim after the record is forgotten. Another subject cannot use it up.
if known and outcome ~= 'foreign' then redis.call('DEL', KEYS[3]) end
return reply
