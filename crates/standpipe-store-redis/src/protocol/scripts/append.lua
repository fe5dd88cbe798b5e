-- One step: appends entries to a pool's log and returns the records since the caller's position.
-- Without entries it is a read and writes nothing, unless it creates the log.
--
-- KEYS  head, log, snapshot, previous snapshot (all with one hash tag)
-- ARGV  1 packed: 0 to stamp with this server's clock, or 1 + microseconds to stamp with (tests);
--         the caller's position as a number of entries and as a byte offset; how long the keys are
--         kept without an append (ms); when the log that the caller's machine remembers expires
--         (ms); the most bytes to return; semantics; the preamble that the first of the entries is
--         (0 none, 1 rejoin pause, 2 state lost); the chain at the caller's position
--       2 the run id of the server that the caller is connected to, 40 characters, or 40 spaces if
--         it does not know it
--       3 the id of the log that the caller's machine remembers, or ''
--       4 the id of a new log, if the caller wants one created, or ''
--       5 and on: entries
--
-- Returns {'ok', packed result, id of the latest snapshot, records, snapshot}, or one of these
-- words and the time; then nothing is appended:
--   missing    there is no log, and the caller did not ask to create one
--   forked     the caller's position is not on this log
--   broken     the keys do not fit together
--   full       the log reached its size limit
--   changed    another server process took the last append: send a rejoin pause first
--   another    the log is not the one the caller's machine remembers: record the loss first
--   accounted  the preamble is not needed (any more): send the entries without it
--   semantics  the log was written with other semantics: {'semantics', which, last stamp, time}
--
-- The log string is the chain before the first kept record, then the records, each of which ends
-- with its chain. So the 16 bytes before any offset are the chain at that offset.
local NO_PREAMBLE, REJOIN_PAUSE, STATE_LOST = 0, 1, 2
local FIRST_ENTRY = 5
local UNKNOWN_RUN_ID = string.rep(' ', 40)
local MAX_LOG_BYTES = 16777216
local MIN_TAIL_BYTES = 4096
local URGENT_TAIL_BYTES = 4194304
local SNAPSHOT_RETRY_MICROS = 1000000
local given_time, position, from, kept_ms, remembered_until, max_bytes, semantics, preamble,
  chain_at_position = struct.unpack('<I8I8I8I8I8I4I4I1c16', ARGV[1])
local run_id = ARGV[2]
local fields = redis.call('HMGET', KEYS[1], 'h', 'sm')
local time = redis.call('TIME')
local now = given_time - 1
if given_time == 0 then now = time[1] * 1000000 + time[2] end

local head
local created = false
if not fields[1] then
  -- Keys without a head are the rest of a damaged log, or somebody else's: never overwrite them.
  for i = 2, 4 do
    if string_length(KEYS[i]) ~= 0 then return {'broken', now} end
  end
  if ARGV[4] == '' then return {'missing', now} end
  head = {entries = 0, last_stamp = 0, bytes = 0, trimmed = 0, snapshot_at = 0,
    snapshot_length = 0, expires_at = 0, snapshot_requested_at = 0, unused = 0,
    semantics = semantics, loss_recorded = 0, chain = '0000000000000000', run_id = run_id,
    log_id = ARGV[4]}
  if preamble == STATE_LOST then head.loss_recorded = 1 end
  redis.call('SET', KEYS[2], head.chain)
  created = true
else
  if #fields[1] ~= HEAD_LENGTH then return {'broken', now} end
  head = unpack_head(fields[1])
  if preamble == STATE_LOST and head.loss_recorded == 1 then return {'accounted', now} end
  if preamble == NO_PREAMBLE and ARGV[3] ~= '' and ARGV[3] ~= head.log_id
    and head.loss_recorded == 0 and remembered_until > time[1] * 1000 then
    -- A machine that did not know the pool created this log after the remembered one was lost.
    return {'another', now}
  end
end
if head.semantics ~= semantics then return {'semantics', head.semantics, head.last_stamp, now} end
-- A log whose length does not match the head was deleted, cut, written to by somebody else, or is
-- no string. Appending to it would hide the damage.
if string_length(KEYS[2]) ~= head.bytes - head.trimmed + 16 then return {'broken', now} end
-- The server's clock may be set back; stamps never go back.
if now < head.last_stamp then now = head.last_stamp end

-- Check the caller's position against the chain.
if position > head.entries or from > head.bytes then return {'forked', now} end
local was_trimmed = from < head.trimmed
if from == head.bytes then
  if chain_at_position ~= head.chain then return {'forked', now} end
elseif not was_trimmed then
  local found = redis.call('GETRANGE', KEYS[2], from - head.trimmed, from - head.trimmed + 15)
  if #found < 16 then return {'broken', now} end
  if found ~= chain_at_position then return {'forked', now} end
end

-- Read what follows. Start with the snapshot if the records before it are gone, or if snapshot and
-- the records behind it are shorter than all records since the position.
local with_snapshot = 0
if head.snapshot_length > 0 and (was_trimmed
  or head.bytes - from > head.snapshot_length + head.bytes - head.snapshot_at) then
  from = head.snapshot_at
  with_snapshot = 1
end
local records = ''
if from < head.bytes then
  local upto = math.min(head.bytes, from + max_bytes)
  records = redis.call('GETRANGE', KEYS[2], from - head.trimmed + 16, upto - head.trimmed + 15)
  if #records < upto - from then return {'broken', now} end
end
local snapshot = ''
if with_snapshot == 1 and head.snapshot_length + #records <= max_bytes then
  if string_length(KEYS[3]) ~= head.snapshot_length then return {'broken', now} end
  snapshot = redis.call('GET', KEYS[3])
end

local snapshot_due = 0
if #ARGV >= FIRST_ENTRY or created then
  local server_changed = head.run_id ~= run_id and run_id ~= UNKNOWN_RUN_ID
  if preamble == REJOIN_PAUSE and not server_changed then return {'accounted', now} end
  -- Every change of server may have lost entries, however soon it follows the last one.
  if preamble == NO_PREAMBLE and server_changed and head.run_id ~= UNKNOWN_RUN_ID then
    return {'changed', now}
  end
  if head.bytes - head.trimmed > MAX_LOG_BYTES then return {'full', now} end
  if server_changed then head.run_id = run_id end
  if preamble == STATE_LOST then head.loss_recorded = 1 end
  local stamp = struct.pack('<I8', now)
  local appended = {}
  for i = FIRST_ENTRY, #ARGV do
    head.chain = string.sub(redis.sha1hex(head.chain .. stamp .. ARGV[i]), 1, 16)
    appended[#appended + 1] = ARGV[i] .. stamp .. head.chain
  end
  local bytes = table.concat(appended)
  redis.call('APPEND', KEYS[2], bytes)
  head.entries = head.entries + #appended
  head.bytes = head.bytes + #bytes
  head.last_stamp = now
  -- Ask one appender at a time for a snapshot. Ask another after a second, or at once if the first
  -- seems to have died and the log grows fast.
  local tail = head.bytes - head.snapshot_at
  local urgent = tail > URGENT_TAIL_BYTES and tail > 4 * head.snapshot_length
  if tail > MIN_TAIL_BYTES and tail > head.snapshot_length and (head.snapshot_requested_at == 0
    or now - head.snapshot_requested_at > SNAPSHOT_RETRY_MICROS or urgent) then
    snapshot_due = 1
    head.snapshot_requested_at = now
  end
  -- Extend the expiry only when an eighth of the time has passed, because it takes four commands.
  -- Never shorten it: another program may need the log for longer.
  local expires_at = math.floor(time[1] * 1000 + time[2] / 1000) + kept_ms
  local extended = expires_at - head.expires_at > kept_ms / 8
  if extended then head.expires_at = expires_at end
  write_head(KEYS[1], head)
  if extended then
    for i = 1, 4 do redis.call('PEXPIREAT', KEYS[i], expires_at) end
  end
end
return {'ok',
  struct.pack('<I8I8I8I8I8I8I1I1c16c14', head.entries, now, head.bytes, head.expires_at, from,
    head.snapshot_length, snapshot_due, with_snapshot, head.chain, head.log_id),
  fields[2] or '', records, snapshot}
