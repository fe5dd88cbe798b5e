-- Creates a log on an operator's request: an empty one, or one that continues from a snapshot of
-- another store.
--
-- KEYS  head, log, snapshot, previous snapshot, the staged snapshot (see stage.lua)
-- ARGV  1 semantics   2 log id   3 'replace' or ''   4 number of entries before   5 the chain there
--       6 the last stamp   7 the snapshot's id or ''   8 its length, 0 for none
--       9 how long to keep the keys (ms)
-- Returns 1, or 0 if there is a log and it may not be replaced, or the snapshot is incomplete.
if ARGV[3] ~= 'replace' and redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local length = tonumber(ARGV[8])
if length > 0 and redis.call('STRLEN', KEYS[5]) ~= length then return 0 end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
local time = redis.call('TIME')
local expires_at = math.floor(time[1] * 1000 + time[2] / 1000) + tonumber(ARGV[9])
-- With a snapshot the log starts at offset 1, so that a reader at offset 0 counts as trimmed and
-- gets the snapshot.
local offset = 0
if length > 0 then offset = 1 end
write_head(KEYS[1], {entries = tonumber(ARGV[4]), last_stamp = tonumber(ARGV[6]), bytes = offset,
  trimmed = offset, snapshot_at = offset, snapshot_length = length, expires_at = expires_at,
  snapshot_requested_at = 0, unused = 0, semantics = tonumber(ARGV[1]), loss_recorded = 1,
  chain = ARGV[5], run_id = string.rep(' ', 40), log_id = ARGV[2]})
redis.call('HSET', KEYS[1], 'sm', ARGV[7])
redis.call('SET', KEYS[2], ARGV[5])
if length > 0 then redis.call('RENAME', KEYS[5], KEYS[3]) end
for i = 1, 3 do redis.call('PEXPIREAT', KEYS[i], expires_at) end
return 1
