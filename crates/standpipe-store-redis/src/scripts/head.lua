-- A pool's head: field h of a hash, packed, because it is read and written in every step; sm and pm
-- are the marks of the latest snapshot and of the one before.
--
-- n entries, t stamp of the last, o their bytes, b bytes let go of, so/sl the snapshot's place and
-- length, x when the keys expire (ms), w when a snapshot was last asked for, rt when the server
-- process last changed, v semantics, f whether its beginning is accounted for, c chain, r the
-- server process of the last append, i the log's id.
local LAYOUT = '<I8I8I8I8I8I8I8I8I8I4I1c16c40c14'
local LENGTH = 147

local function read_head(packed)
  local h = {}
  h.n, h.t, h.o, h.b, h.so, h.sl, h.x, h.w, h.rt, h.v, h.f, h.c, h.r, h.i =
    struct.unpack(LAYOUT, packed)
  return h
end

local function write_head(key, h)
  redis.call('HSET', key, 'h', struct.pack(LAYOUT,
    h.n, h.t, h.o, h.b, h.so, h.sl, h.x, h.w, h.rt, h.v, h.f, h.c, h.r, h.i))
end
