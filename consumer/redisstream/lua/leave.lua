-- Hands over what an ending consumer has not done: each entry looks silent for so long that others take it when its rest is over. Then removes the
-- consumer, and others that have not been seen for long, where they have nothing pending: a consumer's entries go with it. One that lives after all is
-- made again by its next read. Returns the ids of entries that nobody has any more, for they were trimmed.
-- KEYS[1] stream  ARGV[1] group  [2] consumer  [3] milliseconds that are long  [4...] of each entry: id, deliveries, milliseconds of silence

local gone = {}
for i = 4, #ARGV, 3 do
  if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2]) == 1 then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'IDLE', ARGV[i + 2], 'RETRYCOUNT', ARGV[i + 1], 'JUSTID')
  end
  if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1) + #redis.call('XRANGE', KEYS[1], ARGV[i], ARGV[i]) == 0 then
    table.insert(gone, ARGV[i])
  end
end
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local consumer = {}
  for i = 1, #flat, 2 do consumer[flat[i]] = flat[i + 1] end
  if consumer.pending == 0 and (consumer.name == ARGV[2] or consumer.idle > tonumber(ARGV[3])) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer.name)
  end
end
return gone
