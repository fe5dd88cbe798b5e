-- Stores a snapshot, keeps the one before it, and drops the records that the one before it covers.
--
-- KEYS  head, log, snapshot, previous snapshot, the staged snapshot (see stage.lua)
-- ARGV  1 log id   2 number of entries that it covers   3 the chain there   4 the offset there
--       5 its id   6 its length   7 its bytes, or '' if it was staged
-- Returns 1, or 0 if the snapshot is not on this log, is not newer, or is incomplete.
local fields = redis.call('HMGET', KEYS[1], 'h', 'sm')
if not fields[1] or #fields[1] ~= HEAD_LENGTH then return 0 end
local head = unpack_head(fields[1])
local at, length = tonumber(ARGV[4]), tonumber(ARGV[6])
if head.log_id ~= ARGV[1] or tonumber(ARGV[2]) > head.entries then return 0 end
if at > head.bytes or at < head.trimmed then return 0 end
if head.snapshot_length > 0 and at <= head.snapshot_at then return 0 end
if redis.call('GETRANGE', KEYS[2], at - head.trimmed, at - head.trimmed + 15) ~= ARGV[3] then
  return 0
end
if ARGV[7] == '' and redis.call('STRLEN', KEYS[5]) ~= length then return 0 end
-- The present snapshot becomes the previous one, so that readers in the middle of it can finish. If
-- it was deleted or overwritten it is not kept, and no record is dropped.
if head.snapshot_length > 0 and string_length(KEYS[3]) == head.snapshot_length then
  redis.call('RENAME', KEYS[3], KEYS[4])
  redis.call('HSET', KEYS[1], 'pm', fields[2])
  if head.snapshot_at > head.trimmed then
    local kept = redis.call('GETRANGE', KEYS[2], head.snapshot_at - head.trimmed, -1)
    redis.call('SET', KEYS[2], kept)
    head.trimmed = head.snapshot_at
  end
end
if ARGV[7] == '' then
  redis.call('RENAME', KEYS[5], KEYS[3])
else
  redis.call('SET', KEYS[3], ARGV[7])
end
head.snapshot_at = at
head.snapshot_length = length
write_head(KEYS[1], head)
redis.call('HSET', KEYS[1], 'sm', ARGV[5])
for i = 1, 4 do redis.call('PEXPIREAT', KEYS[i], head.expires_at) end
return 1
