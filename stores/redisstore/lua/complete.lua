-- Makes the claim's record succeeded; writes a forgotten record again, save that of an exclusive claim.
-- ARGV[12] attempt  [13] status  [14] '1' where the result is kept, else ''
-- ARGV[15] milliseconds to keep it, 0: as long as the record  [16] the result
-- Returns 'ok', also to the repetition, which changes nothing; 'lost', or 'format' where the record is of a newer one.

local record, unreadable = load()
if unreadable then return 'format' end
local attempt = tonumber(ARGV[12])
if record then
  if not held(record, attempt) then return primarys('lost') end
  if record.state == 'succeeded' then return 'ok' end
  if record.state ~= 'processing' then return primarys('lost') end
elseif rewritable() then
  identify(attempt)
else
  return primarys('lost')
end
succeeded(ARGV[13], ARGV[14], ARGV[15], ARGV[16])
return 'ok'
