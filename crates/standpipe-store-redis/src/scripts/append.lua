-- Appends entries to a pool's log and answers what came since the caller's position: one step.
--
-- KEYS  head, log, snapshot, previous snapshot (all of one hash tag)
-- ARGV  1 packed: 0 for this server's own time, or 1 and microseconds; the caller's position, how
--         many entries and how many bytes lie before it; for how many milliseconds of silence the
--         keys are kept; when the log that the caller's machine remembers would have expired (ms);
--         the most bytes to answer; semantics; what the first of the entries account for, 0
--         nothing, 1 a change of server, 2 that the log was lost; the chain at the position
--       2 which server process the caller speaks to, 40 characters; blank: it does not know
--       3 the id of the log that the caller's machine remembers, or nothing
--       4 the id of a new log, if one may be begun, or nothing
--       5 and on: entries
--
-- The log is the chain before its first entry, then the entries, each followed by its chain: so the
-- 16 bytes before any place in it are the chain there.
local NOTHING, SERVER, LOSS = 0, 1, 2
local FIRST = 5
local BLANK = string.rep(' ', 40)
local given, number, from, lasts, remembered, most, semantics, account, chain_there =
  struct.unpack('<I8I8I8I8I8I4I4I1c16', ARGV[1])
local server = ARGV[2]
local fields = redis.call('HMGET', KEYS[1], 'h', 'sm')
local time = redis.call('TIME')
local now = given - 1
if given == 0 then now = time[1] * 1000000 + time[2] end

local h
local new = false
if not fields[1] then
  -- What is left of a log without its head, or is somebody else's, is not written over.
  for i = 2, 4 do
    if redis.call('STRLEN', KEYS[i]) > 0 then return {'broken', now} end
  end
  if ARGV[4] == '' then return {'missing', now} end
  h = {n = 0, t = 0, o = 0, b = 0, so = 0, sl = 0, x = 0, w = 0, rt = 0, v = semantics, f = 0,
    c = '0000000000000000', r = server, i = ARGV[4]}
  if account == LOSS then h.f = 1 end
  redis.call('SET', KEYS[2], h.c)
  new = true
else
  if #fields[1] ~= LENGTH then return {'broken', now} end
  h = read_head(fields[1])
  if account == LOSS and h.f == 1 then return {'accounted', now} end
  if account == NOTHING and ARGV[3] ~= '' and ARGV[3] ~= h.i and h.f == 0
    and remembered > time[1] * 1000 then
    -- Begun anew by somebody who did not know that there was one.
    return {'another', now}
  end
end
if h.v ~= semantics then return {'semantics', h.v, h.t, now} end
if now < h.t then now = h.t end

-- Where the caller is.
if number > h.n or from > h.o then return {'forked', now} end
local trimmed = from < h.b
if from == h.o then
  if chain_there ~= h.c then return {'forked', now} end
elseif not trimmed then
  local there = redis.call('GETRANGE', KEYS[2], from - h.b, from - h.b + 15)
  if #there < 16 then return {'broken', now} end
  if there ~= chain_there then return {'forked', now} end
end
local jump = 0
if h.sl > 0 and (trimmed or h.o - from > h.sl + h.o - h.so) then
  from = h.so
  jump = 1
end
local tail = ''
if from < h.o then
  local upto = math.min(h.o, from + most)
  tail = redis.call('GETRANGE', KEYS[2], from - h.b + 16, upto - h.b + 15)
  if #tail < upto - from then return {'broken', now} end
end
local snapshot = ''
if jump == 1 and h.sl + #tail <= most then
  snapshot = redis.call('GET', KEYS[3])
  if not snapshot or #snapshot ~= h.sl then return {'broken', now} end
end

local due = 0
if #ARGV >= FIRST or new then
  local changed = h.r ~= server and server ~= BLANK
  if account == SERVER and not changed then return {'accounted', now} end
  -- Something between that leads to ever other servers does not make a pool pause for ever.
  local lately = now - h.rt < 60000000
  if account == NOTHING and changed and h.r ~= BLANK and not lately then
    return {'changed', now}
  end
  if h.o - h.b > 16777216 then return {'full', now} end
  if changed then
    if h.r ~= BLANK then h.rt = now end
    h.r = server
  end
  if account == LOSS then h.f = 1 end
  local stamp = struct.pack('<I8', now)
  local entries = {}
  for i = FIRST, #ARGV do
    h.c = string.sub(redis.sha1hex(h.c .. stamp .. ARGV[i]), 1, 16)
    entries[#entries + 1] = ARGV[i] .. stamp .. h.c
  end
  local bytes = table.concat(entries)
  if redis.call('APPEND', KEYS[2], bytes) ~= h.o - h.b + 16 + #bytes then
    return {'broken', now}
  end
  h.n = h.n + #entries
  h.o = h.o + #bytes
  h.t = now
  -- One of a crowd is enough, unless it seems to have died and the log grows fast.
  local since = h.o - h.so
  local urgent = since > 4194304 and since > 4 * h.sl
  if since > 4096 and since > h.sl and (h.w == 0 or now - h.w > 1000000 or urgent) then
    due = 1
    h.w = now
  end
  -- The end is pushed on only now and then, and never drawn in.
  local ends = math.floor(time[1] * 1000 + time[2] / 1000) + lasts
  local pushed = ends - h.x > lasts / 8
  if pushed then h.x = ends end
  write_head(KEYS[1], h)
  if pushed then
    for i = 1, 4 do redis.call('PEXPIREAT', KEYS[i], ends) end
  end
end
return {'ok',
  struct.pack('<I8I8I8I8I8I8I1I1c16c14', h.n, now, h.o, h.x, from, h.sl, due, jump, h.c, h.i),
  fields[2] or '', tail, snapshot}
