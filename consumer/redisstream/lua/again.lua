-- Delivers an entry again that this consumer still has.
-- KEYS[1] stream  ARGV[1] group  [2] consumer  [3] id  [4] deliveries, this one included
-- Returns 'lost' where another one has it, or has acknowledged it; 'gone' where nobody has it and it was trimmed, or went with its stream; otherwise 'ours'
-- and the fields.

local found = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1)
if found.err and not string.find(found.err, 'NOGROUP', 1, true) then return found end
local pending = found[1]
if pending and pending[2] == ARGV[2] then
  local entry = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'RETRYCOUNT', ARGV[4])[1]
  if entry then return {'ours', entry[2]} end
  redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
  return {'gone', {}}
end
-- Redis 7 drops a trimmed entry from the pending list as the heartbeat claims it.
if not pending and #redis.call('XRANGE', KEYS[1], ARGV[3], ARGV[3]) == 0 then return {'gone', {}} end
return {'lost', {}}
