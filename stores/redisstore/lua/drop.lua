-- Removes the record, and its result beside it, if it is still as the caller saw it. Tokens stay.
-- ARGV[2] the owner seen; of the rest up to [11] only the format counts  [12] the attempt seen  [13] the state seen
-- Returns 1, or 0 where the record is another by now, of a newer format, or gone: the repetition of a call that removed it finds it gone.

local record = load()
if not record or record.state ~= ARGV[13] or record.attempt ~= tonumber(ARGV[12]) or record.owner ~= request.owner then
  return primarys(0)
end
redis.call('DEL', KEYS[1], KEYS[2])
return 1
