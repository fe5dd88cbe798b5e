//! Usage in the journal: calls, units, refusals and waits, by agent, model and mode.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use standpipe::observe::Timestamp;
use standpipe::observe::journal::{Event, EventData, EventKind, Journal, Usage};
use standpipe::{
    Lease, Limit, Pool, PoolConfig, Priority, Reply, Request, Rule, Settings, Span, Standpipe,
};
use standpipe::{Throttle, Unit};

use crate::support::{Hand, LONG, at_once, parallel, until};

/// A state directory of its own, gone at the end.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-usage-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn tap(&self) -> Standpipe {
        let builder = Standpipe::builder().settings(Settings::default()).agent("tests");
        builder.home(&self.0).open().unwrap()
    }

    /// Returns what closed taps wrote.
    fn lines(&self) -> Vec<Usage> {
        let events = Journal::at(&self.0).events(None, Some(EventKind::Usage));
        let usage = |what| match what {
            EventData::Usage(usage) => usage,
            other => panic!("{other:?}"),
        };
        events.map(|event| usage(event.what)).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn pool(tap: &Standpipe, enforce: bool) -> Pool {
    let pool = tap.pool("my/api").unwrap();
    let rule = Rule::Window { unit: Unit::Tokens, amount: 1_000, period: Span::secs(3_600) };
    let mut config = PoolConfig::new(vec![Limit::new(rule)]);
    config.enforce = enforce;
    pool.change(config).blocking().unwrap();
    pool
}

fn call(tokens: u64) -> Request {
    Request::by("blog").unit("tokens", tokens).timeout(Duration::ZERO)
}

fn sum(lines: &[Usage], figure: impl Fn(&Usage) -> u64) -> u64 {
    lines.iter().map(figure).sum()
}

fn units(lines: &[Usage]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (unit, amount) in lines.iter().flat_map(|line| &line.units) {
        *all.entry(unit.clone()).or_default() += amount;
    }
    all
}

#[test]
fn calls_count_when_they_are_admitted_and_units_when_they_end() {
    let home = Home::new();
    let tap = home.tap();
    let pool = pool(&tap, true);
    let first = pool.reserve(call(100)).blocking().unwrap();
    let again = call(10).retry_of(first.id().clone());
    first.commit([(Unit::Tokens, 70)]).blocking().unwrap();
    drop(pool.reserve(again).blocking().unwrap());
    pool.reserve(call(500)).blocking().unwrap().cancel().blocking().unwrap();
    assert!(pool.reserve(call(999)).blocking().is_err(), "what is not admitted is no call");
    drop((pool, tap));
    let lines = home.lines();
    assert!(lines.iter().all(|line| line.agent == "blog" && line.enforced), "{lines:?}");
    assert_eq!(sum(&lines, |line| line.calls), 3);
    assert_eq!(sum(&lines, |line| line.seconds().map(|(_, calls)| calls).sum()), 3);
    assert_eq!(sum(&lines, |line| line.retries), 1);
    assert_eq!(sum(&lines, |line| line.cancelled), 1);
    let used = [("requests".to_owned(), 2), ("tokens".to_owned(), 80)];
    assert_eq!(
        units(&lines),
        BTreeMap::from(used),
        "a figure, and an estimate where there is none"
    );
}

#[test]
fn a_call_that_the_provider_did_not_serve_used_its_request() {
    let home = Home::new();
    let tap = home.tap();
    let pool = pool(&tap, false);
    let reply = Reply::new(200).body(*br#"{"usage":{"total_tokens":9}}"#);
    pool.reserve(call(100)).blocking().unwrap().answered(reply).blocking().unwrap();
    pool.reserve(call(100)).blocking().unwrap().answered(Reply::new(429)).blocking().unwrap();
    pool.reserve(call(100)).blocking().unwrap().answered(Reply::new(400)).blocking().unwrap();
    pool.reserve(call(100)).blocking().unwrap().throttled(Throttle::default()).blocking().unwrap();
    pool.throttle(&Throttle::default().agent("blog")).blocking().unwrap();
    pool.observe_reply(&Reply::new(429), None).blocking().unwrap();
    drop((pool, tap));
    let lines = home.lines();
    assert!(lines.iter().all(|line| !line.enforced), "shadow mode: {lines:?}");
    assert_eq!(sum(&lines, |line| line.calls), 4);
    assert_eq!(sum(&lines, |line| line.refused), 4);
    let unnamed = lines.iter().filter(|line| line.agent == "other");
    assert_eq!(unnamed.map(|line| line.refused).sum::<u64>(), 1);
    assert_eq!(units(&lines)["requests"], 4);
}

#[test]
fn a_lease_is_counted_by_the_process_that_settles_it() {
    let home = Home::new();
    let tap = home.tap();
    let lease = pool(&tap, true).reserve(call(100).model("m")).blocking().unwrap();
    let id = lease.keep(Duration::from_secs(600)).blocking().unwrap();
    drop(tap);
    assert_eq!(units(&home.lines()), BTreeMap::new(), "nothing is known yet");
    let tap = home.tap();
    let handle = tap.lease(&id).unwrap();
    handle.progress([(Unit::Tokens, 20)]).blocking().unwrap();
    handle.commit([(Unit::Tokens, 60)]).blocking().unwrap();
    assert!(handle.commit([(Unit::Tokens, 60)]).blocking().is_err());
    drop((handle, tap));
    let lines = home.lines();
    assert_eq!(sum(&lines, |line| line.calls), 1);
    assert!(lines.iter().all(|line| line.model.as_deref() == Some("m")), "{lines:?}");
    assert_eq!(units(&lines)["tokens"], 60);
}

#[test]
fn a_repeated_id_is_one_call() {
    let home = Home::new();
    let tap = home.tap();
    let pool = pool(&tap, true);
    let first = pool.reserve(call(100).id("k")).blocking().unwrap();
    let second = pool.reserve(call(100).id("k")).blocking().unwrap();
    assert_eq!(first.id(), second.id());
    first.commit([]).blocking().unwrap();
    drop(second);
    assert!(pool.reserve(call(100).id("k")).blocking().unwrap().is_settled());
    drop((pool, tap));
    let lines = home.lines();
    assert_eq!((sum(&lines, |line| line.calls), units(&lines)["tokens"]), (1, 100));
}

#[test]
fn waits_are_counted_whatever_their_outcome() {
    let home = Home::new();
    let tap = home.tap();
    let pool = tap.pool("my/slots").unwrap();
    pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).blocking().unwrap();
    let held = pool.reserve(Request::by("holder")).blocking().unwrap();
    let late = Request::by("blog").timeout(Duration::from_millis(20));
    assert!(pool.reserve(late).blocking().is_err());
    drop((held, pool, tap));
    let lines = home.lines();
    let waited = lines.iter().find(|line| line.agent == "blog").unwrap();
    assert!(waited.waited_ms > 0 && waited.calls == 0, "{waited:?}");
    assert_eq!(waited.waits.iter().sum::<u64>(), 1, "{waited:?}");
    assert_eq!(waited.refusals, BTreeMap::from([("deadline".to_owned(), 1)]));
    let holder = lines.iter().find(|line| line.agent == "holder").unwrap();
    assert_eq!((&holder.waits[..], holder.waited_ms), (&[1][..], 0), "admitted at once");
}

#[test]
fn a_call_that_waited_and_was_admitted_is_one_wait() {
    let home = Home::new();
    let tap = home.tap();
    let pool = tap.pool("my/slots").unwrap();
    pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).blocking().unwrap();
    let held = pool.reserve(Request::by("holder")).blocking().unwrap();
    let waiting = Waits::begin(&pool, Request::by("blog").timeout(Duration::from_secs(60)));
    held.commit([]).blocking().unwrap();
    drop(waiting.end());
    drop((pool, tap));
    let lines = home.lines();
    let waits = |agent: &str| {
        let its = lines.iter().filter(|line| line.agent == agent);
        its.fold((0, 0, 0), |(calls, waits, refused), line| {
            let all = line.waits.iter().sum::<u64>();
            (calls + line.calls, waits + all, refused + line.refusals.len())
        })
    };
    assert_eq!((waits("holder"), waits("blog")), ((1, 1, 0), (1, 1, 0)), "{lines:?}");
}

/// A call that waits on a thread of its own.
struct Waits(std::thread::JoinHandle<Lease>);

impl Waits {
    /// Returns when the call is queued.
    fn begin(pool: &Pool, request: Request) -> Self {
        let asks = pool.clone();
        let thread = std::thread::spawn(move || asks.reserve(request).blocking().unwrap());
        while pool.status().blocking().unwrap().waiting == 0 {
            std::thread::yield_now();
        }
        Self(thread)
    }

    fn end(self) -> Lease {
        self.0.join().unwrap()
    }
}

#[test]
fn refusals_count_by_reason_and_tier_also_of_calls_that_never_wait() {
    let home = Home::new();
    let tap = home.tap();
    let pool = pool(&tap, true);
    pool.reserve(call(900).priority(Priority::Critical))
        .blocking()
        .unwrap()
        .commit([])
        .blocking()
        .unwrap();
    for _ in 0..3 {
        assert!(pool.reserve(call(200)).blocking().is_err());
    }
    let low = call(200).priority(Priority::Background);
    assert!(pool.reserve(low).blocking().is_err());
    assert!(pool.reserve(call(1_001)).blocking().is_err());
    drop((pool, tap));
    let lines = home.lines();
    let denied = |tier: &str, reason: &str| {
        let its = lines.iter().filter(|line| line.priority.as_deref() == Some(tier));
        its.map(|line| line.refusals.get(reason).copied().unwrap_or(0)).sum::<u64>()
    };
    assert_eq!((denied("standard", "limit"), denied("standard", "never")), (3, 1), "{lines:?}");
    assert_eq!(denied("background", "limit"), 1, "{lines:?}");
    let critical = lines.iter().filter(|line| line.priority.as_deref() == Some("critical"));
    assert_eq!(critical.map(|line| (line.calls, line.units["tokens"])).next(), Some((1, 900)));
    let waits = lines.iter().flat_map(|line| &line.waits).sum::<u64>();
    assert_eq!(waits, 1, "calls that were refused at once did not wait");
}

#[test]
fn a_call_on_two_pools_is_admitted_once_and_waits_on_each_for_itself() {
    let home = Home::new();
    let tap = home.tap();
    let [first, last] = ["t/a", "t/b"].map(|name| tap.pool(name).unwrap());
    for pool in [&first, &last] {
        pool.limit(vec![parallel(1)]).blocking().unwrap();
    }
    let held = [&first, &last].map(|pool| pool.reserve(at_once()).blocking().unwrap());
    let began = Instant::now();
    let mut call = Hand::new(last.reserve(Request::by("both").also("t/a").timeout(LONG)));
    assert!(call.poll().is_pending());
    until("the call has waited on the first pool", || began.elapsed().as_millis() > 20);
    let [on_first, on_last] = held;
    on_first.cancel().blocking().unwrap();
    while last.status().blocking().unwrap().waiting == 0 {
        call.wait();
        assert!(call.poll().is_pending());
    }
    on_last.cancel().blocking().unwrap();
    let lease = call.run().unwrap();
    let waited = u64::try_from(lease.waited().as_millis()).unwrap();
    drop(lease);
    drop((first, last, tap));
    let waits = Journal::at(&home.0).events(None, Some(EventKind::Wait));
    let mut ends = Vec::new();
    let mut all = 0;
    for event in waits {
        let EventData::Wait { ended, next, waited_ms, .. } = event.what else { panic!() };
        all += waited_ms;
        ends.push((event.pool, ended, next));
    }
    let end = |pool: &str, ended: &str, next: Option<&str>| {
        (pool.to_owned(), ended.to_owned(), next.map(ToOwned::to_owned))
    };
    assert_eq!(ends, [end("t/a", "continued", Some("t/b")), end("t/b", "admitted", None)]);
    assert!(all <= waited, "{all} of {waited} ms");
    let lines: Vec<_> = home.lines().into_iter().filter(|line| line.agent == "both").collect();
    assert!(sum(&lines, |line| line.waited_ms) <= waited, "{lines:?}");
    let named: Vec<_> = lines.iter().filter(|line| !line.part).map(|line| line.calls).collect();
    assert_eq!((named, sum(&lines, |line| line.calls)), (vec![1], 2));
}

#[test]
fn the_log_of_throttled_agents_is_audited_only_by_name() {
    let home = Home::new();
    let lines = ["standpipe/board", "t/a"].map(|pool| {
        let (lease, agent, why) = ("l".to_owned(), "picard".to_owned(), "expired".to_owned());
        let what = EventData::Reclaim { lease, agent, why };
        let event = Event { at: Timestamp::now(), pool: pool.to_owned(), what };
        serde_json::to_string(&event).unwrap() + "\n"
    });
    std::fs::create_dir_all(&home.0).unwrap();
    std::fs::write(home.0.join("journal.jsonl"), lines.concat()).unwrap();
    let tap = home.tap();
    let names = |pool: Option<&str>| {
        let pool = pool.map(|name| name.parse().unwrap());
        let audit = tap.audit(pool.as_ref(), Duration::from_secs(60)).unwrap();
        audit.pools.iter().map(|pool| pool.pool.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(None), ["t/a"]);
    assert_eq!(names(Some("standpipe/board")), ["standpipe/board"]);
}
