-- A piece of a log or of one of its two snapshots, as it lies there.
--
-- KEYS  head, log, snapshot, previous snapshot
-- ARGV  1 id of the log   2 "log", or the mark of a snapshot   3 from which byte   4 before which
-- Answers the bytes, and for a log the place they begin at; nothing if what is meant is gone.
local head = redis.call('HMGET', KEYS[1], 'i', 'b', 'sm', 'pm')
if head[1] ~= ARGV[1] then return false end
local from, upto = tonumber(ARGV[3]), tonumber(ARGV[4])
if ARGV[2] == 'log' then
  local b = tonumber(head[2])
  if from < b then return false end
  return redis.call('GETRANGE', KEYS[2], from - b + 16, upto - b + 15)
end
if ARGV[2] == head[3] then return redis.call('GETRANGE', KEYS[3], from, upto - 1) end
if ARGV[2] == head[4] then return redis.call('GETRANGE', KEYS[4], from, upto - 1) end
return false
