//! The same ledger on Redis, as people write it: a script that trims a sorted set, sums in a hash,
//! and stamps with the server's clock; a second one that settles.

use redis::{Client, Connection, Script};

use super::{TOKENS, USED};

const RESERVE: &str = r"
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
local old = string.format('%.0f', now - 60000000)
local aged = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', old)
if #aged > 0 then
  local tokens = 0
  for _, member in ipairs(aged) do
    tokens = tokens + tonumber(string.match(member, ':(%d+)$'))
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', old)
  redis.call('HINCRBY', KEYS[2], 'tokens', -tokens)
end
local totals = redis.call('HMGET', KEYS[2], 'tokens', 'flying', 'next')
local tokens, flying = tonumber(totals[1] or 0), tonumber(totals[2] or 0)
local cost = tonumber(ARGV[2])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) or tokens + cost > tonumber(ARGV[4])
    or flying >= tonumber(ARGV[5]) then
  return false
end
local lease = redis.call('HINCRBY', KEYS[2], 'next', 1)
local member = ARGV[1] .. ':' .. lease .. ':' .. cost
redis.call('ZADD', KEYS[1], now, member)
redis.call('HSET', KEYS[2], 'tokens', tokens + cost, 'flying', flying + 1)
redis.call('HSET', KEYS[3], lease, now .. ' ' .. member)
redis.call('PEXPIRE', KEYS[1], 120000)
redis.call('PEXPIRE', KEYS[2], 120000)
redis.call('PEXPIRE', KEYS[3], 120000)
return lease
";

const COMMIT: &str = r"
local lease = redis.call('HGET', KEYS[3], ARGV[1])
if not lease then return 0 end
redis.call('HDEL', KEYS[3], ARGV[1])
local at, head, cost = string.match(lease, '^(%d+) (.+:)(%d+)$')
local used = tonumber(ARGV[2])
if redis.call('ZREM', KEYS[1], head .. cost) == 1 then
  redis.call('ZADD', KEYS[1], at, head .. used)
  redis.call('HINCRBY', KEYS[2], 'tokens', used - tonumber(cost))
end
redis.call('HINCRBY', KEYS[2], 'flying', -1)
return 1
";

const KEYS: [&str; 3] = ["{bench}:window", "{bench}:totals", "{bench}:leases"];

pub(super) fn pairs(url: &str) -> Result<impl FnMut(), String> {
    let wrong = |error: redis::RedisError| format!("Redis: {error}");
    let client = Client::open(url).map_err(wrong)?;
    let mut connection = client.get_connection().map_err(wrong)?;
    let (reserve, commit) = (Script::new(RESERVE), Script::new(COMMIT));
    Ok(move || {
        let settled = pair(&mut connection, &reserve, &commit);
        assert!(matches!(settled, Ok(1)), "Redis: {settled:?}");
    })
}

fn pair(connection: &mut Connection, reserve: &Script, commit: &Script) -> redis::RedisResult<u64> {
    let mut ask = reserve.prepare_invoke();
    for key in KEYS {
        ask.key(key);
    }
    ask.arg("bench").arg(TOKENS).arg(1_000_000_000_u64).arg(1_000_000_000_000_u64).arg(1_000);
    let lease: u64 = ask.invoke(connection)?;
    let mut settle = commit.prepare_invoke();
    for key in KEYS {
        settle.key(key);
    }
    settle.arg(lease).arg(USED).invoke(connection)
}
