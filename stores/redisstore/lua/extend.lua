-- Renews the lease to its full length from now; writes a forgotten record again, save that of an exclusive claim.
-- ARGV[12] attempt
-- Returns 1, or 0 where the claim is lost. A record of a newer format is lost: this claim wrote an older one.

local record, unreadable = load()
if unreadable then return 0 end
local attempt = tonumber(ARGV[12])
if not record and rewritable() then
  processing(attempt, request.fingerprint)
  return 1
end
if not record or record.state ~= 'processing' or not held(record, attempt) then return primarys(0) end
redis.call('HSET', KEYS[1], 'lease', lease())
keep()
return 1
