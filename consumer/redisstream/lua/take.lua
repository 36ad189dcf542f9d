-- Takes over entries whose process is silent. Not by XAUTOCLAIM: from Redis 7 on that also drops what was trimmed in the hands of the living.
-- KEYS[1] stream  ARGV[1] group  [2] consumer  [3] milliseconds of silence  [4] at most so many
-- Returns a list of {id, deliveries, fields, or an empty list where the entry was trimmed}: that one is acknowledged here.

local taken = {}
for _, silent in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[3], '-', '+', ARGV[4])) do
  local id, deliveries = silent[1], silent[4] + 1
  local entry = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id, 'RETRYCOUNT', deliveries)[1]
  if not entry then redis.call('XACK', KEYS[1], ARGV[1], id) end
  table.insert(taken, {id, deliveries, entry and entry[2] or {}})
end
return taken
