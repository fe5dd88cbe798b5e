-- A piece of a log or of one of its two snapshots, as it lies there.
--
-- KEYS  head, log, snapshot, previous snapshot
-- ARGV  1 id of the log   2 "log", or the mark of a snapshot   3 from which byte   4 before which
-- Answers the bytes; nothing if what is meant is gone.
local fields = redis.call('HMGET', KEYS[1], 'h', 'sm', 'pm')
if not fields[1] or #fields[1] ~= LENGTH then return false end
local h = read_head(fields[1])
if h.i ~= ARGV[1] then return false end
local from, upto = tonumber(ARGV[3]), tonumber(ARGV[4])
if ARGV[2] == 'log' then
  if from < h.b then return false end
  return redis.call('GETRANGE', KEYS[2], from - h.b + 16, upto - h.b + 15)
end
if ARGV[2] == fields[2] then return redis.call('GETRANGE', KEYS[3], from, upto - 1) end
if ARGV[2] == fields[3] then return redis.call('GETRANGE', KEYS[4], from, upto - 1) end
return false
