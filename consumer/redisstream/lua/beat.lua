-- Says that this consumer is alive and still has these entries in hand. One that another has taken stays there.
-- KEYS[1] stream  ARGV[1] group  [2] consumer  [3...] ids

for i = 3, #ARGV do
  if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2]) == 1 then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'JUSTID')
  end
end
return redis.status_reply('OK')
