-- Renames the keys of a log that cannot be used, so that a new one can be created. A key that
-- Standpipe wrote expires after a week; a key of another type is somebody else's and does not.
--
-- KEYS  head, log, snapshot, previous snapshot, and a new name for each
-- ARGV  1 the packed head as the caller read it before it found the damage; '' if there was none or
--         the key is no hash. If the head is another one now, somebody else replaced the log.
-- Returns 1 if a key was renamed, else 0.
local packed = redis.pcall('HGET', KEYS[1], 'h')
local wrong_type = type(packed) == 'table'
if wrong_type then
  if not string.find(packed.err, 'WRONGTYPE', 1, true) then return packed end
  packed = false
end
if (packed or '') ~= ARGV[1] then return 0 end
local renamed = 0
for i = 1, 4 do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    local ours = not wrong_type
    if i > 1 then ours = string_length(KEYS[i]) >= 0 end
    redis.call('RENAME', KEYS[i], KEYS[i + 4])
    if ours then redis.call('PEXPIRE', KEYS[i + 4], 604800000) end
    renamed = 1
  end
end
return renamed
