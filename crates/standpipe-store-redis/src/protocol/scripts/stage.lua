-- Stores one chunk of a snapshot that is too large for one call. snapshot.lua or create.lua renames
-- the staged key when it is complete; an abandoned one expires after a minute.
--
-- KEYS  1 the staged snapshot      ARGV  1 offset of the chunk   2 the chunk
if ARGV[1] == '0' then redis.call('DEL', KEYS[1]) end
redis.call('SETRANGE', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], 60000)
return redis.call('STRLEN', KEYS[1])
