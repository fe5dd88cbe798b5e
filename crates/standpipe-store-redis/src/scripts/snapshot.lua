-- Keeps a snapshot, and lets go of entries behind the previous one.
--
-- KEYS  head, log, snapshot, previous snapshot, the snapshot to come if it was sent in pieces
-- ARGV  1 id of the log   2 how many entries lie before it   3 the chain there   4 its bytes' place
--       5 its mark        6 its length                       7 its bytes, or nothing if in pieces
local head = redis.call('HMGET', KEYS[1], 'i', 'n', 'o', 'b', 'so', 'sl', 'sm', 'x')
if head[1] ~= ARGV[1] then return 0 end
local o, b, so, sl = tonumber(head[3]), tonumber(head[4]), tonumber(head[5]), tonumber(head[6])
local at = tonumber(ARGV[4])
if tonumber(ARGV[2]) > tonumber(head[2]) or at > o or at < b then return 0 end
if sl > 0 and at <= so then return 0 end
if redis.call('GETRANGE', KEYS[2], at - b, at - b + 15) ~= ARGV[3] then return 0 end
if ARGV[7] == '' and redis.call('STRLEN', KEYS[5]) ~= tonumber(ARGV[6]) then return 0 end
if sl > 0 then
  redis.call('RENAME', KEYS[3], KEYS[4])
  redis.call('HSET', KEYS[1], 'pm', head[7])
  if so > b then
    redis.call('SET', KEYS[2], redis.call('GETRANGE', KEYS[2], so - b, -1))
    redis.call('HSET', KEYS[1], 'b', so)
  end
end
if ARGV[7] == '' then
  redis.call('RENAME', KEYS[5], KEYS[3])
else
  redis.call('SET', KEYS[3], ARGV[7])
end
redis.call('HSET', KEYS[1], 'so', at, 'sl', ARGV[6], 'sm', ARGV[5])
for i = 1, 4 do redis.call('PEXPIREAT', KEYS[i], head[8]) end
return 1
