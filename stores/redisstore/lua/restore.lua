-- Writes a success that the ledger vouches for, over whatever the record says.
-- ARGV[12] attempt  [13] status  [14] '1' where the result is kept, else ''
-- ARGV[15] milliseconds to keep it, 0: as long as the record  [16] the result
-- Returns 'ok', or 'format' where the record is of a newer one, which is left alone.

local _, unreadable = load()
if unreadable then return 'format' end
identify(tonumber(ARGV[12]))
redis.call('DEL', KEYS[2])
succeeded(ARGV[13], ARGV[14], ARGV[15], ARGV[16])
return 'ok'
