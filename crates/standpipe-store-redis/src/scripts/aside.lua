-- Puts a log that cannot be used out of the way; it is kept for a week.
--
-- KEYS  head, log, snapshot, previous snapshot, and their names aside
-- ARGV  1 id of the log, or nothing if it has none that can be read
local id = redis.call('HGET', KEYS[1], 'i')
if (id or '') ~= ARGV[1] then return 0 end
for i = 1, 4 do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    redis.call('RENAME', KEYS[i], KEYS[i + 4])
    redis.call('PEXPIRE', KEYS[i + 4], 604800000)
  end
end
return 1
