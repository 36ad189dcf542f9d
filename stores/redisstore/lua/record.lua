-- Prelude of the scripts that work on a record: reads and writes it. A script that follows names its own keys and arguments after these.
-- KEYS[1] the record, a hash
-- KEYS[2] the kept result, a string, where it has a shorter life than the record
-- ARGV[1] the format that the caller knows
-- ARGV[2] owner  [3] subject  [4] request id  [5] fingerprint
-- ARGV[6] lease in microseconds  [7] retention in milliseconds
-- ARGV[8] ledger  [9] '1' where another subject's record may answer, else ''
--
-- Numbers are written by %.0f: Lua's own way keeps 14 digits. Text is compared as bytes. '' stands for what there is not.

local request = {
  format = ARGV[1], owner = ARGV[2], subject = ARGV[3], id = ARGV[4], fingerprint = ARGV[5],
  lease = tonumber(ARGV[6]), retention = tonumber(ARGV[7]), ledger = ARGV[8], shared = ARGV[9] == '1',
}

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function integer(number) return string.format('%.0f', number) end

-- Returns the record, nil where there is none, or nil and true where this format cannot read it.
local function load()
  local f = redis.call('HMGET', KEYS[1],
    'format', 'state', 'attempt', 'owner', 'subject', 'request_id', 'fingerprint', 'lease', 'status', 'kept')
  local format = tonumber(f[1] or nil)
  if not format then return nil, redis.call('EXISTS', KEYS[1]) == 1 end
  if format > tonumber(request.format) then return nil, true end
  return {
    state = f[2] or '', attempt = tonumber(f[3] or '0'), owner = f[4] or '', subject = f[5] or '', id = f[6] or '',
    fingerprint = f[7] or '', lease = tonumber(f[8] or '0'), status = f[9] or '0', kept = f[10] == '1',
  }
end

-- The record and what it kept live for the retention from now; a renewed token may have given them longer. One millisecond
-- more, since Redis counts from the start of the running one.
local function keep()
  local retention = request.retention + 1
  if redis.call('PTTL', KEYS[1]) < retention then redis.call('PEXPIRE', KEYS[1], integer(retention)) end
end

local function lease() return integer(now + request.lease) end

local function processing(attempt, fingerprint)
  redis.call('HSET', KEYS[1], 'format', request.format, 'state', 'processing', 'attempt', integer(attempt),
    'owner', request.owner, 'subject', request.subject, 'request_id', request.id, 'fingerprint', fingerprint,
    'lease', lease(), 'ledger', request.ledger)
  keep()
end

-- result: status, kept ('1' or ''), milliseconds to keep it (0: as long as the record), the result itself.
local function succeeded(attempt, fingerprint, result)
  redis.call('HSET', KEYS[1], 'format', request.format, 'state', 'succeeded', 'attempt', integer(attempt),
    'owner', request.owner, 'subject', request.subject, 'request_id', request.id, 'fingerprint', fingerprint,
    'ledger', request.ledger, 'status', result[1], 'kept', result[2])
  redis.call('HDEL', KEYS[1], 'lease', 'result')
  redis.call('DEL', KEYS[2])
  keep()
  if result[2] ~= '1' then return end
  local life = math.min(tonumber(result[3]), request.retention)
  if life > 0 then
    redis.call('SET', KEYS[2], result[4], 'PX', integer(life))
  else
    redis.call('HSET', KEYS[1], 'result', result[4])
  end
end

local function held(record, attempt)
  return record.owner == request.owner and record.attempt == attempt
end

-- What a script returns of a record: state, attempt, owner, subject, request id, fingerprint,
-- microseconds of lease left (0 or less where it ran out), status, kept ('1' or ''), the result.
local function describe(record)
  local left, kept, result = 0, '', false
  if record.state == 'processing' and record.lease > 0 then left = record.lease - now end
  if record.state == 'succeeded' and record.kept then
    result = redis.call('HGET', KEYS[1], 'result') or redis.call('GET', KEYS[2])
    if result then kept = '1' end
  end
  return record.state, integer(record.attempt), record.owner, record.subject, record.id, record.fingerprint,
    integer(left), record.status, kept, result or ''
end
