-- The head of a pool's log, prepended to every script that reads or writes it.
--
-- The head is field h of a hash, packed into one string because every step reads and writes it.
-- Fields sm and pm of the same hash hold the ids of the latest and the previous snapshot. This file
-- defines the layout; head.rs decodes it outside of scripts. The fields in order:
--
--   entries                number of entries ever appended
--   last_stamp             stamp of the last entry, in microseconds
--   bytes                  bytes ever appended: the offset of the log's end
--   trimmed                bytes dropped from the front: the offset of the first kept record
--   snapshot_at            offset that the latest snapshot covers
--   snapshot_length        its length, 0 if there is none
--   expires_at             when the keys expire, in milliseconds
--   snapshot_requested_at  when an appender was last asked for a snapshot
--   unused                 kept so that the layout does not change
--   semantics              the semantics of the programs that write the log
--   loss_recorded          1 once the loss of an earlier log is recorded in this one, or if an
--                          operator created it: then nobody has to record a loss
--   chain                  hash chain at the end of the log, 16 hexadecimal digits
--   run_id                 run id of the server that took the last append, or 40 spaces
--   log_id                 random id of the log, 14 hexadecimal digits
local LAYOUT = '<I8I8I8I8I8I8I8I8I8I4I1c16c40c14'
local HEAD_LENGTH = 147

-- Returns the length of a string, or -1 if the key holds another type, which Standpipe never
-- writes. For any other error, a missing right for example, it calls again to raise the error.
local function string_length(key)
  local length = redis.pcall('STRLEN', key)
  if type(length) ~= 'table' then return length end
  if string.find(length.err, 'WRONGTYPE', 1, true) then return -1 end
  return redis.call('STRLEN', key)
end
