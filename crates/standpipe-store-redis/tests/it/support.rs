//! What the tests of the Redis store share: members on a pool, what they ask, and what must hold
//! of the answers.

pub(crate) mod crew;
pub(crate) mod fake;
pub(crate) mod meter;
pub(crate) mod worker;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as Local};

use standpipe_core::{
    Action, AgentName, Amounts, Answer, Commit, Configure, Decision, Instant, Key, Limit, Outcome,
    PoolConfig, Reserve, Rule, Source, Span, State, Unit,
};
use standpipe_servers::Server;
use standpipe_store::layout::encode_state;
use standpipe_store::{Log, Participant, PoolName, Replica, Store, StoreError, hash};
use standpipe_store_redis::{Options, RedisLog, RedisStore};

/// How long a test waits for what must come: for ever, but for a test that fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const HOUR: Span = Span::secs(3_600);

pub(crate) fn pool() -> PoolName {
    "test/pool".parse().unwrap()
}

/// A key of the pool, by its last part.
pub(crate) fn key(part: &str) -> String {
    format!("standpipe:{{{}}}:{part}", pool())
}

/// The store at this address, as a process of a machine that remembers nothing.
pub(crate) fn store(url: &str) -> RedisStore {
    store_with(url, Options::default())
}

pub(crate) fn store_with(url: &str, options: Options) -> RedisStore {
    RedisStore::new(url.parse().unwrap(), options)
}

pub(crate) fn member(store: &RedisStore) -> Participant<RedisLog> {
    member_of(store, &pool())
}

pub(crate) fn member_of(store: &RedisStore, pool: &PoolName) -> Participant<RedisLog> {
    let sessions = store.clone();
    Participant::new(store.pool_log(pool), move || sessions.begin_session().unwrap())
}

/// The messages of a store, one a line.
pub(crate) fn texts(store: &RedisStore) -> String {
    let texts: Vec<String> = store.take_messages().into_iter().map(|news| news.text).collect();
    texts.join("\n")
}

pub(crate) fn parallel(amount: u64) -> Limit {
    Limit::new(Rule::Parallel { amount })
}

pub(crate) fn requests(amount: u64, period: Span) -> Limit {
    Limit::new(Rule::Window { unit: Unit::Requests, amount, period })
}

/// A configuration in which nothing is learned for longer than a test lasts.
pub(crate) fn configure(limits: Vec<Limit>) -> Action {
    let mut config = PoolConfig::new(limits);
    config.lease_ttl = Span::secs(1);
    Action::Configure(Box::new(Configure { source: Source::Code, config }))
}

pub(crate) fn call(patience: Span) -> Reserve {
    let agent = AgentName::new("test").unwrap();
    Reserve { patience, ..Reserve::new(agent, Amounts::cost([]).unwrap()) }
}

pub(crate) fn reserve() -> Action {
    Action::from(call(Span::ZERO))
}

pub(crate) fn commit(lease: Key) -> Action {
    Action::Commit(Commit { lease, used: Amounts::default(), progress: false, refused: false })
}

pub(crate) const fn beat() -> Action {
    Action::Heartbeat { lease: None, ttl: None }
}

/// Sends, and sends again while the store is away.
pub(crate) fn insist<L: Log>(member: &mut Participant<L>, actions: Vec<Action>) -> Vec<Outcome> {
    let mut result = member.submit(actions);
    let began = Local::now();
    while let Err(error) = result {
        assert!(error.is_transient() && began.elapsed() < LONG, "{error}");
        std::thread::sleep(Duration::from_millis(1));
        result = member.resend();
    }
    result.unwrap()
}

/// Reads, and reads again while the store is away.
pub(crate) fn catch_up<L: Log>(member: &mut Participant<L>) {
    until("the store can be read", || match member.refresh() {
        Ok(()) => true,
        Err(error) => {
            assert!(error.is_transient(), "{error}");
            false
        }
    });
}

/// Asks once, without waiting.
pub(crate) fn ask<L: Log>(member: &mut Participant<L>) -> Decision {
    decision(&insist(member, vec![reserve()])[0])
}

pub(crate) fn decision(outcome: &Outcome) -> Decision {
    match &outcome.answer {
        Answer::Decided(decision) => decision.clone(),
        other => panic!("{other:?}"),
    }
}

pub(crate) const fn admitted(decision: &Decision) -> Option<Key> {
    match decision {
        Decision::Admit(grant) => Some(grant.lease),
        _ => None,
    }
}

/// Asks until it is refused. Answers what it was given, at most so many.
pub(crate) fn take_all<L: Log>(member: &mut Participant<L>, most: usize) -> Vec<Key> {
    (0..most).map_while(|_| admitted(&ask(member))).collect()
}

/// Asks with patience and claims until it is admitted; none when it was not in time.
pub(crate) fn wait_for<L: Log>(
    member: &mut Participant<L>,
    store: &RedisStore,
    mut call: Reserve,
) -> Option<Key> {
    loop {
        let outcome = &insist(member, vec![Action::from(call.clone())])[0];
        match decision(outcome) {
            Decision::Admit(grant) => return Some(grant.lease),
            Decision::Refuse(_) => return None,
            Decision::Wait(hold) => {
                call.ticket = Some(hold.ticket);
                let now = member.replica().now();
                let until = hold.refusal.until.map_or(Span::secs(1), |until| until.since(now));
                store.wait_for_wake(Duration::from_micros(until.0.clamp(1, 250_000)));
            }
        }
    }
}

/// When a lease that is in flight was admitted, by the server's clock.
pub(crate) fn admitted_at<L: Log>(member: &Participant<L>, lease: Key) -> Instant {
    let leases = &member.replica().state().facts().leases;
    leases.get(&lease).map_or_else(|| member.replica().now(), |lease| lease.started)
}

/// The pool as somebody new reads it.
pub(crate) fn read_anew(store: &RedisStore) -> Replica {
    let mut replica = Replica::new();
    replica.catch_up(&mut store.pool_log(&pool()), |_, _, _| ()).unwrap();
    replica.state().check().unwrap();
    replica
}

pub(crate) fn state_bytes(state: &State) -> Vec<u8> {
    encode_state(state.facts())
}

pub(crate) fn state_hash(state: &State) -> u64 {
    hash(0, &state_bytes(state))
}

/// What counts on a window, given by its place in the configuration.
pub(crate) fn used(state: &State, limit: usize) -> u64 {
    state.figures(state.clock()).get(limit).map_or(0, |usage| usage.used)
}

/// No stretch of one period has more admissions than `limit`, by the server's stamps.
#[track_caller]
pub(crate) fn assert_never_over(stamps: &[u64], limit: usize, period: Span) {
    let most = most_within(stamps, period);
    assert!(most <= limit, "{most} of {limit} within {} µs", period.0);
}

/// The most admissions in any stretch of one period.
pub(crate) fn most_within(stamps: &[u64], period: Span) -> usize {
    let mut stamps = stamps.to_vec();
    stamps.sort_unstable();
    let mut first = 0;
    let counts = stamps.iter().enumerate().map(|(last, stamp)| {
        while stamp - stamps[first] >= period.0 {
            first += 1;
        }
        last + 1 - first
    });
    counts.max().unwrap_or_default()
}

/// All of a window can be had again, in one call; and all slots at once, and no more of either.
#[track_caller]
pub(crate) fn assert_whole(store: &RedisStore) {
    let mut member = member(store);
    catch_up(&mut member);
    let config = member.replica().state().facts().config.clone().unwrap();
    let mut all = call(Span::secs(60));
    let rates = config.limits.iter().filter_map(|limit| match &limit.rule {
        Rule::Window { unit, amount, .. } => Some((unit.clone(), *amount)),
        Rule::Bucket { unit, burst, .. } => Some((unit.clone(), *burst)),
        Rule::Parallel { .. } => None,
    });
    all.cost = Amounts::cost(rates).unwrap();
    let lease = wait_for(&mut member, store, all).unwrap();
    insist(&mut member, vec![Action::Cancel { lease }]);
    for limit in &config.limits {
        let Rule::Parallel { amount } = limit.rule else { continue };
        let amount = usize::try_from(amount).unwrap();
        let mut nothing = call(Span::ZERO);
        nothing.cost = Amounts::new([(Unit::Requests, 0)]).unwrap();
        let asks = vec![Action::from(nothing); amount + 1];
        let outcomes = insist(&mut member, asks);
        let given: Vec<Key> = outcomes.iter().filter_map(|o| admitted(&decision(o))).collect();
        assert_eq!(given.len(), amount, "slots that can be had");
        insist(&mut member, given.into_iter().map(|lease| Action::Cancel { lease }).collect());
    }
    let end = read_anew(store);
    assert_eq!(end.state().facts().leases.len(), 0, "in flight");
    assert_eq!(end.state().facts().tickets.len(), 0, "waiting");
}

/// Waits for what must come.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Local::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "it never came about that {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The server's own clock, in microseconds.
pub(crate) fn server_time(server: &Server) -> u64 {
    let text = server.run(&["TIME"]);
    let (seconds, micros) = text.split_once('\n').unwrap();
    seconds.parse::<u64>().unwrap() * 1_000_000 + micros.parse::<u64>().unwrap()
}

/// Waits until so much time has passed at the server.
pub(crate) fn pass(server: &Server, span: Span) {
    let end = server_time(server) + span.0;
    until("the server's clock goes on", || server_time(server) >= end);
}

/// What went wrong, which must be so.
#[track_caller]
pub(crate) fn failed<T>(result: Result<T, StoreError>) -> StoreError {
    match result {
        Ok(_) => panic!("this should have failed"),
        Err(error) => error,
    }
}

/// A directory of a test's own, removed with it.
pub(crate) struct Scratch(pub(crate) std::path::PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-redis-{}-{count}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How many times as much is to be done.
pub(crate) fn more() -> usize {
    if std::env::var_os("STANDPIPE_LONG").is_some() { 10 } else { 1 }
}
