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
-- Returns the packed result if the caller has read everything before. Otherwise {'ok', packed result,
-- id of the latest snapshot, records, snapshot}; the records have the chain before them, unless
-- there are none, and the id is '' if the caller's position is not before that snapshot. Or it
-- returns one of these words and the time; then nothing is appended:
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
--
-- A command costs more than all arithmetic here, and so do a function, a table and a reply of
-- several parts. A step of a caller that has read everything makes four commands: HGET, TIME,
-- APPEND, HSET.
local NO_PREAMBLE, REJOIN_PAUSE, STATE_LOST = 0, 1, 2
local FIRST_ENTRY = 5
local UNKNOWN_RUN_ID = '                                        '
local MAX_LOG_BYTES = 16777216
local MIN_TAIL_BYTES = 4096
local URGENT_TAIL_BYTES = 4194304
local SNAPSHOT_RETRY_MICROS = 1000000
local call, pack = redis.call, struct.pack
local given_time, position, from, kept_ms, remembered_until, max_bytes, semantics, preamble,
  chain_at_position = struct.unpack('<I8I8I8I8I8I4I4I1c16', ARGV[1])
local run_id = ARGV[2]
local packed_head = call('HGET', KEYS[1], 'h')
local time = call('TIME')
local now = given_time - 1
if given_time == 0 then now = time[1] * 1000000 + time[2] end

-- The head, in locals and not in a table. See head.lua.
local entries, last_stamp, bytes, trimmed, snapshot_at, snapshot_length, expires_at,
  snapshot_requested_at, unused, log_semantics, loss_recorded, chain, log_run_id, log_id
local created = false
if not packed_head then
  -- Keys without a head are the rest of a damaged log, or somebody else's: never overwrite them.
  for i = 2, 4 do
    if string_length(KEYS[i]) ~= 0 then return {'broken', now} end
  end
  if ARGV[4] == '' then return {'missing', now} end
  entries, last_stamp, bytes, trimmed, snapshot_at, snapshot_length = 0, 0, 0, 0, 0, 0
  expires_at, snapshot_requested_at, unused, log_semantics, loss_recorded = 0, 0, 0, semantics, 0
  chain, log_run_id, log_id = '0000000000000000', run_id, ARGV[4]
  call('SET', KEYS[2], chain)
  created = true
else
  if #packed_head ~= HEAD_LENGTH then return {'broken', now} end
  entries, last_stamp, bytes, trimmed, snapshot_at, snapshot_length, expires_at,
    snapshot_requested_at, unused, log_semantics, loss_recorded, chain, log_run_id, log_id =
    struct.unpack(LAYOUT, packed_head)
  if preamble == STATE_LOST and loss_recorded == 1 then return {'accounted', now} end
  if preamble == NO_PREAMBLE and ARGV[3] ~= '' and ARGV[3] ~= log_id and loss_recorded == 0
    and remembered_until > time[1] * 1000 then
    -- A machine that did not know the pool created this log after the remembered one was lost.
    return {'another', now}
  end
end
if log_semantics ~= semantics then return {'semantics', log_semantics, last_stamp, now} end
local writes = created or #ARGV >= FIRST_ENTRY
-- A log whose length does not match the head was deleted, cut or written to by somebody else. An
-- append returns the length, see below. A log that is no string raises WRONGTYPE.
if not writes and string_length(KEYS[2]) ~= bytes - trimmed + 16 then return {'broken', now} end
-- The server's clock may be set back; stamps never go back.
if now < last_stamp then now = last_stamp end

-- Read what follows the caller's position, and check the position against the chain. Start with the
-- snapshot if the records before it are gone, or if snapshot and the records behind it are shorter
-- than all records since the position.
if position > entries or from > bytes then return {'forked', now} end
local read_everything = from == bytes
local with_snapshot = 0
local snapshot_id, records, snapshot = '', '', ''
if read_everything then
  if chain_at_position ~= chain then return {'forked', now} end
else
  local was_trimmed = from < trimmed
  if from < snapshot_at then snapshot_id = call('HGET', KEYS[1], 'sm') or '' end
  if snapshot_length > 0
    and (was_trimmed or bytes - from > snapshot_length + bytes - snapshot_at) then
    if not was_trimmed then
      local found = call('GETRANGE', KEYS[2], from - trimmed, from - trimmed + 15)
      if #found < 16 then return {'broken', now} end
      if found ~= chain_at_position then return {'forked', now} end
    end
    from = snapshot_at
    with_snapshot = 1
  end
  if from < trimmed then return {'broken', now} end
  if from < bytes then
    local upto = math.min(bytes, from + max_bytes)
    records = call('GETRANGE', KEYS[2], from - trimmed, upto - trimmed + 15)
    if #records < upto - from + 16 then return {'broken', now} end
    if with_snapshot == 0 and string.sub(records, 1, 16) ~= chain_at_position then
      return {'forked', now}
    end
  end
  if with_snapshot == 1 and snapshot_length + #records <= max_bytes then
    if string_length(KEYS[3]) ~= snapshot_length then return {'broken', now} end
    snapshot = call('GET', KEYS[3])
  end
end

local snapshot_due = 0
if writes then
  local server_changed = log_run_id ~= run_id and run_id ~= UNKNOWN_RUN_ID
  if preamble == REJOIN_PAUSE and not server_changed then return {'accounted', now} end
  -- Every change of server may have lost entries, however soon it follows the last one.
  if preamble == NO_PREAMBLE and server_changed and log_run_id ~= UNKNOWN_RUN_ID then
    return {'changed', now}
  end
  if bytes - trimmed > MAX_LOG_BYTES then return {'full', now} end
  if server_changed then log_run_id = run_id end
  if preamble == STATE_LOST then loss_recorded = 1 end
  local stamp = pack('<I8', now)
  local added = ''
  if #ARGV == FIRST_ENTRY then
    chain = string.sub(redis.sha1hex(chain .. stamp .. ARGV[FIRST_ENTRY]), 1, 16)
    added = ARGV[FIRST_ENTRY] .. stamp .. chain
  else
    local all = {}
    for i = FIRST_ENTRY, #ARGV do
      chain = string.sub(redis.sha1hex(chain .. stamp .. ARGV[i]), 1, 16)
      all[#all + 1] = ARGV[i] .. stamp .. chain
    end
    added = table.concat(all)
  end
  entries = entries + #ARGV - FIRST_ENTRY + 1
  bytes = bytes + #added
  last_stamp = now
  local length = call('APPEND', KEYS[2], added)
  if length ~= bytes - trimmed + 16 then
    -- Leave a damaged log as it was found, so that its length still shows the damage.
    if length == #added then
      call('DEL', KEYS[2])
    else
      call('SET', KEYS[2], call('GETRANGE', KEYS[2], 0, length - #added - 1), 'KEEPTTL')
    end
    return {'broken', now}
  end
  -- Ask one appender at a time for a snapshot. Ask another after a second, or at once if the first
  -- seems to have died and the log grows fast.
  local tail = bytes - snapshot_at
  local urgent = tail > URGENT_TAIL_BYTES and tail > 4 * snapshot_length
  if tail > MIN_TAIL_BYTES and tail > snapshot_length and (snapshot_requested_at == 0
    or now - snapshot_requested_at > SNAPSHOT_RETRY_MICROS or urgent) then
    snapshot_due = 1
    snapshot_requested_at = now
  end
  -- Extend the expiry only when an eighth of the time has passed, because it takes four commands.
  -- Never shorten it: another program may need the log for longer.
  local kept_until = math.floor(time[1] * 1000 + time[2] / 1000) + kept_ms
  local extended = kept_until - expires_at > kept_ms / 8
  if extended then expires_at = kept_until end
  call('HSET', KEYS[1], 'h', pack(LAYOUT, entries, last_stamp, bytes, trimmed, snapshot_at,
    snapshot_length, expires_at, snapshot_requested_at, unused, log_semantics, loss_recorded,
    chain, log_run_id, log_id))
  if extended then
    for i = 1, 4 do call('PEXPIREAT', KEYS[i], expires_at) end
  end
end
local result = pack('<I8I8I8I8I8I8I1I1c16c14', entries, now, bytes, expires_at, from,
  snapshot_length, snapshot_due, with_snapshot, chain, log_id)
if read_everything then return result end
return {'ok', result, snapshot_id, records, snapshot}
