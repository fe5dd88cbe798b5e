-- Keeps a snapshot, and lets go of entries behind the previous one.
--
-- KEYS  head, log, snapshot, previous snapshot, the snapshot to come if it was sent in pieces
-- ARGV  1 id of the log   2 how many entries lie before it   3 the chain there   4 its bytes' place
--       5 its mark        6 its length                       7 its bytes, or nothing if in pieces
local fields = redis.call('HMGET', KEYS[1], 'h', 'sm')
if not fields[1] or #fields[1] ~= LENGTH then return 0 end
local h = read_head(fields[1])
local at, length = tonumber(ARGV[4]), tonumber(ARGV[6])
if h.i ~= ARGV[1] or tonumber(ARGV[2]) > h.n or at > h.o or at < h.b then return 0 end
if h.sl > 0 and at <= h.so then return 0 end
if redis.call('GETRANGE', KEYS[2], at - h.b, at - h.b + 15) ~= ARGV[3] then return 0 end
if ARGV[7] == '' and redis.call('STRLEN', KEYS[5]) ~= length then return 0 end
if h.sl > 0 then
  redis.call('RENAME', KEYS[3], KEYS[4])
  redis.call('HSET', KEYS[1], 'pm', fields[2])
  if h.so > h.b then
    redis.call('SET', KEYS[2], redis.call('GETRANGE', KEYS[2], h.so - h.b, -1))
    h.b = h.so
  end
end
if ARGV[7] == '' then
  redis.call('RENAME', KEYS[5], KEYS[3])
else
  redis.call('SET', KEYS[3], ARGV[7])
end
h.so = at
h.sl = length
write_head(KEYS[1], h)
redis.call('HSET', KEYS[1], 'sm', ARGV[5])
for i = 1, 4 do redis.call('PEXPIREAT', KEYS[i], h.x) end
return 1
