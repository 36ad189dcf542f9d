-- Prelude of claim and spend, after record.lua: idem.Judge, rule by rule in its order, and the claim that follows from it.

local function differ(a, b) return a ~= '' and b ~= '' and a ~= b end

local function judge(record)
  if not record then return 'won' end
  if record.state == 'processing' and record.owner == request.owner then return 'won' end
  if record.subject ~= request.subject and not request.shared then return 'foreign' end
  if record.state == 'failed' then return 'won' end
  if record.state == 'cancelled' then return 'withdrawn' end
  if differ(record.fingerprint, request.fingerprint) then return 'mismatch' end
  if record.state == 'succeeded' then return 'done' end
  if record.state == 'processing' and record.lease > now() then return 'busy' end
  return 'won'
end

-- Writes the claim and returns its attempt. An owner that is in the record already gave this command before and lost the reply.
local function claim(record)
  if not record then
    processing(1, request.fingerprint)
    return '1'
  end
  if record.state == 'processing' and record.owner == request.owner then return primarys(integer(record.attempt)) end
  local fingerprint = request.fingerprint
  if fingerprint == '' and record.state == 'processing' then fingerprint = record.fingerprint end
  processing(record.attempt + 1, fingerprint)
  return integer(record.attempt + 1)
end

local function answer(outcome, record)
  if outcome == 'won' then return {outcome, claim(record)} end
  if outcome == 'foreign' then return primarys({outcome}) end
  if outcome == 'done' then return {outcome, describe(record)} end
  return primarys({outcome, describe(record)})
end
