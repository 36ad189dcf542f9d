-- Writes a success that the ledger vouches for, over whatever the record says.
-- ARGV[10] attempt  [11] status  [12] '1' where the result is kept, else ''
-- ARGV[13] milliseconds to keep it, 0: as long as the record  [14] the result
-- Returns 'ok', or 'format' where the record is of a newer one, which is left alone.

local _, unreadable = load()
if unreadable then return 'format' end
identify(tonumber(ARGV[10]))
redis.call('DEL', KEYS[2])
succeeded(ARGV[11], ARGV[12], ARGV[13], ARGV[14])
return 'ok'
