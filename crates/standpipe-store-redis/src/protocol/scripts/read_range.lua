-- Returns a range of bytes of a log or of one of its two snapshots.
--
-- KEYS  head, log, snapshot, previous snapshot
-- ARGV  1 log id   2 'log', or the id of a snapshot   3 first byte   4 end (exclusive)
-- Returns the bytes, or nil if the log was replaced, or the range or the snapshot was dropped.
local fields = redis.call('HMGET', KEYS[1], 'h', 'sm', 'pm')
if not fields[1] or #fields[1] ~= HEAD_LENGTH then return false end
local head = unpack_head(fields[1])
if head.log_id ~= ARGV[1] then return false end
local from, upto = tonumber(ARGV[3]), tonumber(ARGV[4])
if ARGV[2] == 'log' then
  if from < head.trimmed then return false end
  return redis.call('GETRANGE', KEYS[2], from - head.trimmed + 16, upto - head.trimmed + 15)
end
if ARGV[2] == fields[2] then return redis.call('GETRANGE', KEYS[3], from, upto - 1) end
if ARGV[2] == fields[3] then return redis.call('GETRANGE', KEYS[4], from, upto - 1) end
return false
