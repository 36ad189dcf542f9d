-- Takes over entries whose process is silent.
-- KEYS[1] stream  ARGV[1] group  [2] consumer  [3] milliseconds of silence  [4] cursor  [5] at most so many
-- Returns the next cursor and a list of {id, deliveries, fields, or an empty list where the entry was trimmed}: that one is acknowledged here.

local found = redis.call('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], 'COUNT', ARGV[5], 'JUSTID')
local taken = {}
for _, id in ipairs(found[2]) do
  local pending = redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1)
  local deliveries = pending[1] and pending[1][4] + 1 or 1
  local entry = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id, 'RETRYCOUNT', deliveries)[1]
  if not entry then redis.call('XACK', KEYS[1], ARGV[1], id) end
  table.insert(taken, {id, deliveries, entry and entry[2] or {}})
end
-- Redis 7 has removed trimmed ones from the pending list by itself, and says which.
for _, id in ipairs(found[3] or {}) do table.insert(taken, {id, 1, {}}) end
return {found[1], taken}
