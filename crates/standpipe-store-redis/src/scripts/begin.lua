-- Begins a log on purpose: an empty one, or one that goes on from a snapshot made elsewhere.
--
-- KEYS  head, log, snapshot, previous snapshot, the snapshot that was sent in pieces
-- ARGV  1 semantics   2 id   3 "replace" or nothing   4 how many entries   5 the chain there
--       6 the stamp   7 the snapshot's mark, or nothing   8 its length   9 for how long it is kept
if ARGV[3] ~= 'replace' and redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if ARGV[7] ~= '' and redis.call('STRLEN', KEYS[5]) ~= tonumber(ARGV[8]) then return 0 end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
local time = redis.call('TIME')
local ends = math.floor(time[1] * 1000 + time[2] / 1000) + tonumber(ARGV[9])
redis.call('HSET', KEYS[1], 'n', ARGV[4], 'c', ARGV[5], 't', ARGV[6], 'o', 1, 'b', 1, 'so', 1,
  'sl', ARGV[8], 'sm', ARGV[7], 'r', '', 'v', ARGV[1], 'i', ARGV[2], 'f', '1', 'x', ends, 'w', 0)
redis.call('SET', KEYS[2], ARGV[5])
if ARGV[7] ~= '' then redis.call('RENAME', KEYS[5], KEYS[3]) end
if ARGV[4] == '0' then redis.call('HSET', KEYS[1], 'o', 0, 'b', 0, 'so', 0) end
for i = 1, 3 do redis.call('PEXPIREAT', KEYS[i], ends) end
return 1
