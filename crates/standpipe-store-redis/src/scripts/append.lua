-- Appends entries to a pool's log and answers what came since the caller's position: one step.
--
-- KEYS  head, log, snapshot, previous snapshot (all of one hash tag)
-- ARGV  1 the time in microseconds, or nothing: this server's own
--       2 which server process the caller speaks to, or nothing
--       3 semantics          4 the caller's position: how many entries
--       5 its chain          6 its place in bytes
--       7 most bytes to answer
--       8 for how many milliseconds of silence the keys are kept
--       9 the id of a new log, if one may be begun
--      10 what the first of the entries account for: "" nothing, "server" a change of server,
--         "loss" that the log was lost
--      11 the id of the log that the caller's machine remembers, if any
--      12 when that would have expired, in milliseconds
--      13 and on: entries
--
-- The head is a hash: n entries, c chain, t stamp of the last, o their bytes, b bytes let go of,
-- so/sl/sm the snapshot's place, length and mark, r server process, v semantics, i id, f whether
-- its beginning is accounted for, x when the keys expire, w when a snapshot was last asked for.
-- The log is the chain before its first entry, then the entries, each followed by its chain: so the
-- 16 bytes before any place in it are the chain there.
local head = redis.call('HMGET', KEYS[1],
  'n', 'c', 't', 'o', 'b', 'so', 'sl', 'sm', 'r', 'v', 'i', 'f', 'x', 'w')
local time = redis.call('TIME')
local now = tonumber(ARGV[1])
if not now then now = time[1] * 1000000 + time[2] end
local new = false
if not head[1] then
  -- What is left of a log without its head, or is somebody else's, is not written over.
  for i = 2, 4 do
    if redis.call('STRLEN', KEYS[i]) > 0 then return {'broken', now} end
  end
  if ARGV[9] == '' then return {'missing', now} end
  local started = '0000000000000000'
  head = {0, started, 0, 0, 0, 0, 0, '', ARGV[2], ARGV[3], ARGV[9], '', 0, 0}
  if ARGV[10] == 'loss' then head[12] = '1' end
  redis.call('SET', KEYS[2], started)
  new = true
elseif ARGV[10] == 'loss' and head[12] ~= '' then
  return {'accounted', now}
elseif ARGV[10] == '' and ARGV[11] ~= '' and ARGV[11] ~= head[11] and head[12] == ''
  and tonumber(ARGV[12]) > time[1] * 1000 then
  -- Begun anew by somebody who did not know that there was one.
  return {'another', now}
end
if head[10] ~= ARGV[3] then return {'semantics', tonumber(head[10]), tonumber(head[3]), now} end
local n, chain, o, b = tonumber(head[1]), head[2], tonumber(head[4]), tonumber(head[5])
local so, sl = tonumber(head[6]), tonumber(head[7])
if now < tonumber(head[3]) then now = tonumber(head[3]) end

-- Where the caller is.
local from = tonumber(ARGV[6])
if tonumber(ARGV[4]) > n or from > o then return {'forked', now} end
local trimmed = from < b
if from == o then
  if ARGV[5] ~= chain then return {'forked', now} end
elseif not trimmed then
  local there = redis.call('GETRANGE', KEYS[2], from - b, from - b + 15)
  if #there < 16 then return {'broken', now} end
  if there ~= ARGV[5] then return {'forked', now} end
end
local jump = 0
if sl > 0 and (trimmed or o - from > sl + o - so) then
  from = so
  jump = 1
end
local tail = ''
if from < o then
  local upto = math.min(o, from + tonumber(ARGV[7]))
  tail = redis.call('GETRANGE', KEYS[2], from - b + 16, upto - b + 15)
  if #tail < upto - from then return {'broken', now} end
end

local snapshot = ''
if jump == 1 and sl + #tail <= tonumber(ARGV[7]) then
  snapshot = redis.call('GET', KEYS[3])
  if not snapshot or #snapshot ~= sl then return {'broken', now} end
end

local due = 0
if #ARGV > 12 or new then
  local changed = head[9] ~= ARGV[2] and ARGV[2] ~= ''
  if ARGV[10] == 'server' and not changed then return {'accounted', now} end
  if ARGV[10] == '' and changed and head[9] ~= '' then return {'changed', now} end
  if o - b > 16777216 then return {'full', now} end
  local stamp = struct.pack('<I8', now)
  local entries = {}
  for i = 13, #ARGV do
    chain = string.sub(redis.sha1hex(chain .. stamp .. ARGV[i]), 1, 16)
    entries[#entries + 1] = ARGV[i]
    entries[#entries + 1] = stamp
    entries[#entries + 1] = chain
  end
  local bytes = table.concat(entries)
  if redis.call('APPEND', KEYS[2], bytes) ~= o - b + 16 + #bytes then return {'broken', now} end
  n = n + #ARGV - 12
  o = o + #bytes
  local since = o - so
  -- One of a crowd is enough, unless it seems to have died and the log grows fast.
  local asked = tonumber(head[14])
  local urgent = since > 4194304 and since > 4 * sl
  if since > 4096 and since > sl and (asked == 0 or now - asked > 1000000 or urgent) then
    due = 1
  end
  if new then
    redis.call('HSET', KEYS[1], 'n', n, 'c', chain, 't', now, 'o', o, 'b', 0, 'so', 0, 'sl', 0,
      'sm', '', 'r', ARGV[2], 'v', ARGV[3], 'i', ARGV[9], 'f', head[12], 'x', 0, 'w', 0)
  else
    redis.call('HSET', KEYS[1], 'n', n, 'c', chain, 't', now, 'o', o)
    if due == 1 then redis.call('HSET', KEYS[1], 'w', now) end
    if changed then redis.call('HSET', KEYS[1], 'r', ARGV[2]) end
    if ARGV[10] == 'loss' then
      head[12] = '1'
      redis.call('HSET', KEYS[1], 'f', '1')
    end
  end
  -- Pushed on only now and then, and never drawn in.
  local lasts = tonumber(ARGV[8])
  local ends = math.floor(time[1] * 1000 + time[2] / 1000) + lasts
  if ends - tonumber(head[13]) > lasts / 8 then
    head[13] = ends
    redis.call('HSET', KEYS[1], 'x', ends)
    for i = 1, 4 do redis.call('PEXPIREAT', KEYS[i], ends) end
  end
end
return {'ok', n, chain, now, o, head[8], due, tonumber(head[13]), head[11], jump, from, sl, tail,
  snapshot}
