//! Standpipe's pair on the embedded store: a member on a file, and the library that people use.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use standpipe::{Request, Settings, Standpipe, StoreUrl};
use standpipe_core::{
    Action, Amounts, Answer, Commit, Configure, Decision, Instant, Key, Limit, PoolConfig, Reserve,
    Rule, Source, Span, Unit, bounds,
};
use standpipe_store::{Participant, PoolName, Store};
use standpipe_store_file::{FileLog, FileStore, Options, Time};

use super::{TOKENS, USED};
use crate::pool::call;

/// A pool with two windows and `parallel`, as the peers have.
pub(super) fn plain(directory: &Path) -> Result<impl FnMut(), String> {
    let store = FileStore::open(directory).map_err(|error| error.to_string())?;
    let mut member = member_of(&store, limits(Span::secs(60)))?;
    let ask = call("bench", TOKENS);
    Ok(move || pair(&mut member, &ask))
}

/// The same with a million entries in all slices of the window, and 32 agents.
pub(super) fn full(directory: &Path) -> Result<impl FnMut(), String> {
    let ahead = Arc::new(AtomicU64::new(0));
    let clock = {
        let ahead = Arc::clone(&ahead);
        move || Instant(boot_micros() + ahead.load(Ordering::Relaxed))
    };
    let time = Time::machine(Arc::new(clock.clone()), Arc::new(clock), 1);
    let options = Options { time, ..Options::default() };
    let opened = FileStore::open_with(directory, options);
    let store = opened.map_err(|error| error.to_string())?;
    let period = Span::secs(600);
    let mut member = member_of(&store, limits(period))?;
    let asks: Vec<Reserve> = (0..AGENTS).map(|n| call(&format!("agent-{n}"), TOKENS)).collect();
    fill(&mut member, &asks, &ahead, period)?;
    let mut turn = 0;
    Ok(move || {
        turn = (turn + 1) % AGENTS;
        pair(&mut member, &asks[turn]);
    })
}

const AGENTS: usize = 32;
const ENTRIES: usize = 1_000_000;
/// How many events go into one step while the window is filled.
const TOGETHER: usize = 256;

fn fill(
    member: &mut Participant<FileLog>,
    asks: &[Reserve],
    ahead: &AtomicU64,
    period: Span,
) -> Result<(), String> {
    let steps = ENTRIES.div_ceil(TOGETHER);
    let pace = period.0 / steps as u64;
    let wrong = |error: standpipe_store::StoreError| error.to_string();
    for _ in 0..steps {
        ahead.fetch_add(pace, Ordering::Relaxed);
        let reserves = asks.iter().cycle().take(TOGETHER).cloned().map(Action::from).collect();
        let outcomes = member.submit(reserves).map_err(wrong)?;
        let leases = outcomes.iter().filter_map(|outcome| lease_of(&outcome.answer));
        let commits: Vec<Action> = leases.map(commit).collect();
        if commits.len() != TOGETHER {
            return Err("not everything was admitted while the window was filled".to_owned());
        }
        member.submit(commits).map_err(wrong)?;
    }
    let facts = member.replica().state().facts();
    let entries = facts.units.iter().map(|unit| unit.history.charges().len());
    match (facts.agents.len(), entries.max().unwrap_or(0)) {
        (AGENTS, 500..) => Ok(()),
        (agents, entries) => Err(format!("only {agents} agents and {entries} slices")),
    }
}

/// Through the library, with everything that people get by it.
pub(super) fn library(directory: &Path) -> Result<impl FnMut(), String> {
    let pool = pool_at(directory, limits(Span::secs(60)))?;
    let ask = Request::by("bench").unit("tokens", TOKENS).timeout(Duration::ZERO);
    Ok(move || {
        let lease = pool.reserve(ask.clone()).blocking();
        let settled = lease.and_then(|lease| lease.commit([(Unit::Tokens, USED)]).blocking());
        assert!(settled.is_ok(), "Standpipe: {settled:?}");
    })
}

/// A pool of the library, with these limits.
pub(crate) fn pool_at(directory: &Path, limits: Vec<Limit>) -> Result<standpipe::Pool, String> {
    let wrong = |error: standpipe::Error| error.to_string();
    let url = StoreUrl::File(Some(directory.to_owned()));
    let opened = Standpipe::builder().settings(Settings::default()).store(url).open();
    let pool = opened.and_then(|tap| tap.pool("bench/pool")).map_err(wrong)?;
    pool.limit(limits).blocking().map_err(wrong)?;
    Ok(pool)
}

fn limits(period: Span) -> Vec<Limit> {
    vec![
        Limit::new(Rule::Window { unit: Unit::Requests, amount: 1_000_000_000, period }),
        Limit::new(Rule::Window { unit: Unit::Tokens, amount: bounds::AMOUNT, period }),
        Limit::new(Rule::Parallel { amount: 1_000 }),
    ]
}

/// This process on the pool, with these limits.
pub(crate) fn member_of(
    store: &FileStore,
    limits: Vec<Limit>,
) -> Result<Participant<FileLog>, String> {
    let pool: PoolName = "bench/pool".parse().map_err(|_| "no such name")?;
    let sessions = store.clone();
    let begin = move || {
        let begun = sessions.begin_session();
        begun.unwrap_or_else(|_| standpipe_store::participant::random_session())
    };
    let mut member = Participant::new(store.pool_log(&pool), begin);
    let configure = Configure { source: Source::Code, config: PoolConfig::new(limits) };
    let configured = member.submit(vec![Action::Configure(Box::new(configure))]);
    configured.map_err(|error| error.to_string())?;
    Ok(member)
}

fn pair(member: &mut Participant<FileLog>, ask: &Reserve) {
    let outcomes = member.submit(vec![Action::from(ask.clone())]);
    let admitted = outcomes.map(|outcomes| lease_of(&outcomes[0].answer));
    let settled = match admitted {
        Ok(Some(lease)) => member.submit(vec![commit(lease)]),
        Ok(None) => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    assert!(settled.as_ref().is_ok_and(|outcomes| outcomes.len() == 1), "Standpipe: {settled:?}");
}

fn lease_of(answer: &Answer) -> Option<Key> {
    match answer {
        Answer::Decided(Decision::Admit(grant)) => Some(grant.lease),
        _ => None,
    }
}

/// The end of a call that cost what was thought.
pub(crate) fn commit_nothing(lease: Key) -> Action {
    settle(lease, Amounts::default())
}

fn commit(lease: Key) -> Action {
    settle(lease, Amounts::new([(Unit::Tokens, USED)]).unwrap_or_default())
}

fn settle(lease: Key, used: Amounts) -> Action {
    Action::Commit(Commit { lease, used, progress: false, refused: false })
}

fn boot_micros() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}
