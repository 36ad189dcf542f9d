-- Prelude of the scripts that work on a record: reads and writes it. A script that follows names its own keys and arguments after these.
-- KEYS[1] the record, a hash
-- KEYS[2] the kept result, a string, where it has a shorter life than the record
-- ARGV[1] the format that the caller knows
-- ARGV[2] owner  [3] subject  [4] request id  [5] fingerprint
-- ARGV[6] lease in microseconds  [7] milliseconds that the record lives from now, at least
-- ARGV[8] ledger  [9] '1' where another subject's record may answer, else ''
-- ARGV[10] the key's parts as key.go writes them  [11] '1' where a record that vanished is lost, else ''
--
-- Numbers are written by %.0f: Lua's own way keeps 14 digits. Text is compared as bytes. '' stands for what there is not.
-- Every command costs the server a microsecond or two, so that none is given twice.

local request = {
  owner = ARGV[2], subject = ARGV[3], fingerprint = ARGV[5], ledger = ARGV[8], shared = ARGV[9] == '1', exclusive = ARGV[11] == '1',
}
local fresh, clock = false, nil

-- Passes on an answer that writes nothing and is not a success, which is final. A primary that was demoted serves what it last knew to connections that it
-- keeps, and would say that a claim is lost or a token unknown. This deletes nothing, but it refuses it as a write, READONLY, and the client goes to the
-- primary of now. Not before another write: after its first one a script is no longer stopped where memory is short.
local function primarys(answer)
  redis.call('HDEL', KEYS[1], '')
  return answer
end

local function integer(number) return string.format('%.0f', number) end

local function now()
  if not clock then
    local time = redis.call('TIME')
    clock = time[1] * 1000000 + time[2]
  end
  return clock
end

-- Returns the record, nil where there is none, or nil and true where this format cannot read it.
local function load()
  local f = redis.call('HMGET', KEYS[1],
    'format', 'state', 'attempt', 'owner', 'subject', 'request_id', 'fingerprint', 'lease', 'status', 'kept')
  local format = tonumber(f[1] or nil)
  if not format then
    fresh = redis.call('EXISTS', KEYS[1]) == 0
    return nil, not fresh
  end
  if format > tonumber(ARGV[1]) then return nil, true end
  return {
    state = f[2] or '', attempt = tonumber(f[3] or '0'), owner = f[4] or '', subject = f[5] or '', id = f[6] or '',
    fingerprint = f[7] or '', lease = tonumber(f[8] or '0'), status = f[9] or '0', kept = f[10] == '1',
  }
end

-- The record lives for the retention from now; a renewed token may have given it longer.
local function keep()
  if fresh or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[7]) then redis.call('PEXPIRE', KEYS[1], ARGV[7]) end
end

local function lease() return integer(now() + tonumber(ARGV[6])) end

local function processing(attempt, fingerprint)
  redis.call('HSET', KEYS[1], 'format', ARGV[1], 'state', 'processing', 'attempt', integer(attempt),
    'owner', ARGV[2], 'subject', ARGV[3], 'request_id', ARGV[4], 'fingerprint', fingerprint, 'lease', lease(), 'ledger', ARGV[8], 'key', ARGV[10])
  keep()
end

-- Writes whose record it is, as the caller says: for a success that finds none, or none to be believed.
local function identify(attempt)
  redis.call('HSET', KEYS[1], 'format', ARGV[1], 'attempt', integer(attempt),
    'owner', ARGV[2], 'subject', ARGV[3], 'request_id', ARGV[4], 'fingerprint', ARGV[5], 'ledger', ARGV[8], 'key', ARGV[10])
end

-- The result is kept in the record or, for so many milliseconds (0: as long as the record), beside it.
local function succeeded(status, kept, life, result)
  local beside = math.min(tonumber(life), tonumber(ARGV[7]))
  local within = result
  if beside > 0 then within = '' end
  redis.call('HSET', KEYS[1], 'state', 'succeeded', 'lease', '0', 'status', status, 'kept', kept, 'result', within)
  if beside > 0 then redis.call('SET', KEYS[2], result, 'PX', integer(beside)) end
  keep()
end

-- Whether this claim may write a record that is not there: with an owner, and where it cannot be somebody else's by now.
local function rewritable() return request.owner ~= '' and not request.exclusive end

-- Nobody holds a record without an owner.
local function held(record, attempt)
  return request.owner ~= '' and record.owner == request.owner and record.attempt == attempt
end

-- What a script returns of a record: state, attempt, owner, subject, request id, fingerprint,
-- microseconds of lease left (0 or less where it ran out), status, kept ('1' or ''), the result,
-- milliseconds that it is still kept (0: as long as the record).
local function describe(record)
  local left, kept, result, life = 0, '', false, 0
  if record.state == 'processing' and record.lease > 0 then left = record.lease - now() end
  if record.state == 'succeeded' and record.kept then
    result = redis.call('HGET', KEYS[1], 'result')
    if not result or result == '' then
      result = redis.call('GET', KEYS[2])
      if result then life = math.max(redis.call('PTTL', KEYS[2]), 1) end
    end
    if result then kept = '1' end
  end
  return record.state, integer(record.attempt), record.owner, record.subject, record.id, record.fingerprint,
    integer(left), record.status, kept, result or '', integer(life)
end
