-- Writes a dead letter and acknowledges the entry: the letter first, for a script that fails midway takes nothing back. The repetition, which finds the
-- entry acknowledged, writes no second one; where the entry or the whole stream is gone, this letter is all that is left of it.
-- KEYS[1] stream  [2] stream of dead letters  ARGV[1] group  [2] id  [3] longest length, about, 0: any  [4...] fields of the letter

local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)
if pending.err and not string.find(pending.err, 'NOGROUP', 1, true) then return pending end
if #pending == 0 and #redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2]) == 1 then
  return redis.status_reply('OK')
end
local add = {'XADD', KEYS[2]}
if ARGV[3] ~= '0' then
  for _, word in ipairs({'MAXLEN', '~', ARGV[3]}) do table.insert(add, word) end
end
table.insert(add, '*')
for i = 4, #ARGV do table.insert(add, ARGV[i]) end
redis.call(unpack(add))
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
return redis.status_reply('OK')
