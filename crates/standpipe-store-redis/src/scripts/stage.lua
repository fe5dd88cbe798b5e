-- Takes a piece of a snapshot that is too large for one call.
--
-- KEYS  the snapshot to come      ARGV  1 where the piece begins   2 the piece
if ARGV[1] == '0' then redis.call('DEL', KEYS[1]) end
redis.call('SETRANGE', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], 60000)
return redis.call('STRLEN', KEYS[1])
