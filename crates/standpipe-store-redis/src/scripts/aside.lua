-- Puts a log that cannot be used out of the way; it is kept for a week.
--
-- KEYS  head, log, snapshot, previous snapshot, and their names aside
-- ARGV  1 the head as the caller saw it, or nothing: if it is another by now, somebody was faster
if (redis.call('HGET', KEYS[1], 'h') or '') ~= ARGV[1] then return 0 end
for i = 1, 4 do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    redis.call('RENAME', KEYS[i], KEYS[i + 4])
    redis.call('PEXPIRE', KEYS[i + 4], 604800000)
  end
end
return 1
