-- Makes the claim's record succeeded; writes a forgotten record again.
-- ARGV[10] attempt  [11] status  [12] '1' where the result is kept, else ''
-- ARGV[13] milliseconds to keep it, 0: as long as the record  [14] the result
-- Returns 'ok', also to the repetition, which changes nothing; 'lost', or 'format' where the record is of a newer one.

local record, unreadable = load()
if unreadable then return 'format' end
local attempt = tonumber(ARGV[10])
if record then
  if not held(record, attempt) then return primarys('lost') end
  if record.state == 'succeeded' then return 'ok' end
  if record.state ~= 'processing' then return primarys('lost') end
elseif request.owner == '' then
  return primarys('lost')
else
  identify(attempt)
end
succeeded(ARGV[11], ARGV[12], ARGV[13], ARGV[14])
return 'ok'
