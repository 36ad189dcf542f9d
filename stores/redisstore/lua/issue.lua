-- Stores a token and lets the record of its request id, if there is one, outlive it. Stands alone, without a prelude.
-- KEYS[1] the record  [2] the token
-- ARGV[1] request id  [2] the token's life in milliseconds  [3] milliseconds that the record lives at least
-- Returns 1. A repetition stores the same token again; its record, if it was spent meanwhile, answers first.

redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
