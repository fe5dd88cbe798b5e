//! The workers' side: reserves through the library, and the least a script can do.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{Client, Script};
use standpipe::{Limit, Pool, Request, Rule, Settings, Standpipe, Unit};
use standpipe_core::{Span, bounds};

use crate::worker::{next_line, send_line, send_round, serve, serve_part};

/// What a call takes, and what it turns out to have used.
pub(super) const TOKENS: u64 = 1_200;
pub(super) const USED: u64 = 800;

/// How many tasks or threads one process has that is many workers.
pub(super) const TOGETHER: usize = 100;

/// The ttl of leases that are not settled: the ledger holds no more than 4,096 at a time.
const LET_GO: Duration = Duration::from_millis(100);

/// A sliding window that also writes and trims: what people write first, and the least there is.
const MINIMAL: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 60000000)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('PEXPIRE', KEYS[1], 60000)
return 1
";

/// Runs for the parent process. The place is a URL, a pool or key, and a directory.
pub(crate) fn run(kind: &str, place: &str) -> Result<(), String> {
    let words: Vec<&str> = place.splitn(3, ' ').collect();
    let [url, name, home] = words[..] else { return Err(format!("`{place}` is no place")) };
    if kind == "redis-script" {
        return serve(minimal(url, name)?, 1);
    }
    let pool = pool_at(url, name, home)?;
    match kind {
        "redis-reserve" => serve_part(move || reserve_of_pair(&pool)),
        "redis-pair" => serve(move || pair(&pool), 1),
        "redis-let-go" => serve(move || let_go(&pool), 1),
        "redis-tasks" => tasks(&pool),
        "redis-threads" => threads(&pool),
        other => Err(format!("there is nothing of `{other}`")),
    }
}

/// A pool of the library with two windows that are never full.
pub(super) fn pool_at(url: &str, name: &str, home: &str) -> Result<Pool, String> {
    let wrong = |error: standpipe::Error| error.to_string();
    let url = url.parse().map_err(|_| format!("`{url}` is no store"))?;
    let tap = Standpipe::builder().settings(Settings::default()).store(url).home(home).open();
    let pool = tap.and_then(|tap| tap.pool(name)).map_err(wrong)?;
    pool.limit(limits()).blocking().map_err(wrong)?;
    Ok(pool)
}

pub(super) fn limits() -> Vec<Limit> {
    let period = Span::secs(60);
    vec![
        Limit::new(Rule::Window { unit: Unit::Requests, amount: 1_000_000_000, period }),
        Limit::new(Rule::Window { unit: Unit::Tokens, amount: bounds::AMOUNT, period }),
    ]
}

fn ask() -> Request {
    Request::by("bench").unit("tokens", TOKENS)
}

pub(super) fn pair(pool: &Pool) {
    let lease = pool.reserve(ask()).blocking();
    let settled = lease.and_then(|lease| lease.commit([(Unit::Tokens, USED)]).blocking());
    assert!(settled.is_ok(), "Standpipe: {settled:?}");
}

/// Of a pair only how long the reserve took.
pub(super) fn reserve_of_pair(pool: &Pool) -> Duration {
    let began = Instant::now();
    let lease = pool.reserve(ask()).blocking();
    let took = began.elapsed();
    let settled = lease.and_then(|lease| lease.commit([(Unit::Tokens, USED)]).blocking());
    assert!(settled.is_ok(), "Standpipe: {settled:?}");
    took
}

/// A reserve that nothing follows: its lease lives by itself, and ends soon.
fn let_go(pool: &Pool) {
    let lease = pool.reserve(ask().ttl(LET_GO)).blocking();
    assert!(lease.is_ok(), "Standpipe: {lease:?}");
    let _ = lease.map(ManuallyDrop::new);
}

fn minimal(url: &str, key: &str) -> Result<impl FnMut(), String> {
    let wrong = |error: redis::RedisError| format!("Redis: {error}");
    let client = Client::open(url).map_err(wrong)?;
    let mut connection = client.get_connection().map_err(wrong)?;
    let script = Script::new(MINIMAL);
    let (process, mut number) = (std::process::id(), 0_u64);
    Ok(move || {
        number += 1;
        let mut call = script.key(key);
        call.arg(1_000_000_000).arg(format!("{process}-{number}"));
        let admitted: redis::RedisResult<u64> = call.invoke(&mut connection);
        assert!(matches!(admitted, Ok(1)), "Redis: {admitted:?}");
    })
}

/// Tasks of one thread, in tight loops of pairs.
fn tasks(pool: &Pool) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    together(pool, |until| {
        runtime.block_on(async {
            let tasks: Vec<_> = (0..TOGETHER)
                .map(|_| {
                    let pool = pool.clone();
                    tokio::spawn(async move { awaited_pairs(&pool, until).await })
                })
                .collect();
            let mut took = Vec::new();
            for task in tasks {
                took.extend(task.await.unwrap_or_default());
            }
            took
        })
    })
}

async fn awaited_pairs(pool: &Pool, until: Instant) -> Vec<u128> {
    let mut took = Vec::new();
    let mut before = Instant::now();
    while before < until {
        let settled = match pool.reserve(ask()).await {
            Ok(lease) => lease.commit([(Unit::Tokens, USED)]).await,
            Err(error) => Err(error),
        };
        assert!(settled.is_ok(), "Standpipe: {settled:?}");
        let after = Instant::now();
        took.push((after - before).as_nanos());
        before = after;
        // As a real call would: the others have their turn.
        tokio::task::yield_now().await;
    }
    took
}

/// The same from threads that block.
fn threads(pool: &Pool) -> Result<(), String> {
    let pool = Arc::new(pool.clone());
    together(&Arc::clone(&pool), |until| {
        let threads: Vec<_> = (0..TOGETHER)
            .map(|_| {
                let pool = Arc::clone(&pool);
                std::thread::spawn(move || blocked_pairs(&pool, until))
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

fn blocked_pairs(pool: &Pool, until: Instant) -> Vec<u128> {
    let mut took = Vec::new();
    let mut before = Instant::now();
    while before < until {
        pair(pool);
        let after = Instant::now();
        took.push((after - before).as_nanos());
        before = after;
    }
    took
}

/// Rounds in which many work at once.
fn together(pool: &Pool, mut round: impl FnMut(Instant) -> Vec<u128>) -> Result<(), String> {
    pair(pool);
    send_line("ready")?;
    while let Some(millis) = next_line() {
        let began = Instant::now();
        let took = round(began + Duration::from_millis(millis.parse().unwrap_or(0)));
        send_round(took.len() as u64, began.elapsed(), took)?;
    }
    Ok(())
}
