-- Begins a log on purpose: an empty one, or one that goes on from a snapshot made elsewhere.
--
-- KEYS  head, log, snapshot, previous snapshot, the snapshot that was sent in pieces
-- ARGV  1 semantics   2 id   3 "replace" or nothing   4 how many entries   5 the chain there
--       6 the stamp   7 the snapshot's mark, or nothing   8 its length   9 for how long it is kept
if ARGV[3] ~= 'replace' and redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local length = tonumber(ARGV[8])
if length > 0 and redis.call('STRLEN', KEYS[5]) ~= length then return 0 end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
local time = redis.call('TIME')
local ends = math.floor(time[1] * 1000 + time[2] / 1000) + tonumber(ARGV[9])
-- Whoever begins at the start is given the snapshot: nothing before it is kept.
local place = 0
if length > 0 then place = 1 end
write_head(KEYS[1], {n = tonumber(ARGV[4]), t = tonumber(ARGV[6]), o = place, b = place, so = place,
  sl = length, x = ends, w = 0, rt = 0, v = tonumber(ARGV[1]), f = 1, c = ARGV[5],
  r = string.rep(' ', 40), i = ARGV[2]})
redis.call('HSET', KEYS[1], 'sm', ARGV[7])
redis.call('SET', KEYS[2], ARGV[5])
if length > 0 then redis.call('RENAME', KEYS[5], KEYS[3]) end
for i = 1, 3 do redis.call('PEXPIREAT', KEYS[i], ends) end
return 1
