-- The head as a table, prepended after head.lua to the scripts that are not called in every step.
local function unpack_head(packed)
  local head = {}
  head.entries, head.last_stamp, head.bytes, head.trimmed, head.snapshot_at, head.snapshot_length,
    head.expires_at, head.snapshot_requested_at, head.unused, head.semantics, head.loss_recorded,
    head.chain, head.run_id, head.log_id = struct.unpack(LAYOUT, packed)
  return head
end

local function write_head(key, head)
  redis.call('HSET', key, 'h', struct.pack(LAYOUT,
    head.entries, head.last_stamp, head.bytes, head.trimmed, head.snapshot_at,
    head.snapshot_length, head.expires_at, head.snapshot_requested_at, head.unused,
    head.semantics, head.loss_recorded, head.chain, head.run_id, head.log_id))
end
