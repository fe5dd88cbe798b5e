//! Pools with a past: full windows, and sessions that have come and gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use redis::{Client, cmd};
use standpipe_core::{
    Action, Amounts, Answer, Commit, Configure, Decision, Event, Instant, Key, Outcome, PoolConfig,
    Source, Unit,
};
use standpipe_store::participant::random_session;
use standpipe_store::{Log, LogRead, Participant, PoolName, Replica, StoreError, entry};
use standpipe_store_redis::{Options, RedisLog, RedisStore};

use super::FULL;
use super::work::{TOKENS, USED, limits};
use crate::pool::call;

/// How many events go into one step.
const TOGETHER: usize = 200;
const MINUTE: u64 = 60_000_000;

/// Admissions of the last minute, evenly: the time is given, from a minute ago until now.
pub(super) fn window(url: &str, pool: &str) -> Result<(), String> {
    let begin = wall_micros() - MINUTE;
    let passed = Arc::new(AtomicU64::new(0));
    let clock = {
        let passed = Arc::clone(&passed);
        Arc::new(move || Instant(begin + passed.load(Ordering::Relaxed)))
    };
    let store = store(url)?.with_clock(clock);
    let mut member = configured(&store, pool)?;
    let wrong = |error: StoreError| error.to_string();
    let steps = FULL.div_ceil(TOGETHER);
    let ask = call("bench", TOKENS);
    for _ in 0..steps {
        passed.fetch_add(MINUTE / steps as u64, Ordering::Relaxed);
        let reserves = vec![Action::from(ask.clone()); TOGETHER];
        let outcomes = member.submit(reserves).map_err(wrong)?;
        let commits: Vec<Action> = leases(&outcomes).map(commit).collect();
        if commits.len() != TOGETHER {
            return Err("not everything was admitted while the window was filled".to_owned());
        }
        member.submit(commits).map_err(wrong)?;
    }
    Ok(())
}

/// The same for the minimal script.
pub(super) fn sorted_set(url: &str, key: &str) -> Result<(), String> {
    let wrong = |error: redis::RedisError| format!("Redis: {error}");
    let mut connection = Client::open(url).and_then(|client| client.get_connection());
    let connection = connection.as_mut().map_err(|error| format!("Redis: {error}"))?;
    let begin = wall_micros() - MINUTE;
    let pace = MINUTE / FULL as u64;
    let numbers: Vec<u64> = (0..FULL as u64).collect();
    for some in numbers.chunks(TOGETHER) {
        let mut add = cmd("ZADD");
        add.arg(key);
        for number in some {
            add.arg(begin + number * pace).arg(format!("filled-{number}"));
        }
        add.exec(connection).map_err(wrong)?;
    }
    Ok(())
}

/// So many sessions that each reserve once and are then seen to be dead.
pub(super) fn dead_sessions(url: &str, pool: &str, count: usize) -> Result<(), String> {
    let store = store(url)?;
    let mut undertaker = configured(&store, pool)?;
    let mut log = store.pool_log(&name(pool)?);
    let mut reader = Replica::new();
    let wrong = |error: StoreError| error.to_string();
    let ask = call("bench", TOKENS);
    for _ in 0..count.div_ceil(TOGETHER) {
        let sessions: Vec<u64> = (0..TOGETHER).map(|_| random_session()).collect();
        let first = |session: &u64| {
            let key = Key { session: *session, number: 1 };
            entry::body(&Event { key, action: Action::from(ask.clone()) })
        };
        let bodies: Vec<Vec<u8>> = sessions.iter().map(first).collect();
        reader.catch_up(&mut log, |_, _, _| ()).map_err(wrong)?;
        match log.append(reader.position(), &bodies).map_err(wrong)? {
            LogRead::Tail(_) => {}
            LogRead::Forked => return Err("the pool forked while it was filled".to_owned()),
        }
        let ends = sessions.into_iter().map(|session| Action::SessionEnded { session });
        undertaker.submit(ends.collect()).map_err(wrong)?;
    }
    Ok(())
}

pub(super) fn store(url: &str) -> Result<RedisStore, String> {
    let address = url.parse().map_err(|_| format!("`{url}` is no address"))?;
    Ok(RedisStore::new(address, Options::default()))
}

pub(super) fn name(pool: &str) -> Result<PoolName, String> {
    pool.parse().map_err(|_| format!("`{pool}` is no name"))
}

pub(super) fn configured(store: &RedisStore, pool: &str) -> Result<Participant<RedisLog>, String> {
    let mut member = Participant::new(store.pool_log(&name(pool)?), random_session);
    let configure = Configure { source: Source::Code, config: PoolConfig::new(limits()) };
    let configured = member.submit(vec![Action::Configure(Box::new(configure))]);
    configured.map_err(|error| error.to_string())?;
    Ok(member)
}

/// The leases of those outcomes that admit.
pub(super) fn leases(outcomes: &[Outcome]) -> impl Iterator<Item = Key> {
    outcomes.iter().filter_map(|outcome| match &outcome.answer {
        Answer::Decided(Decision::Admit(grant)) => Some(grant.lease),
        _ => None,
    })
}

pub(super) fn commit(lease: Key) -> Action {
    let used = Amounts::new([(Unit::Tokens, USED)]).unwrap_or_default();
    Action::Commit(Commit { lease, used, progress: false, refused: false })
}

fn wall_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
