//! What agents used is written down: calls, units, refusals, waits, by agent, model and mode.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests assert, too")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use standpipe::journal::{Journal, Kind, Usage, What};
use standpipe::{Limit, Pool, PoolConfig, Reply, Request, Rule, Settings, Span, Standpipe};
use standpipe::{Throttle, Unit};

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

    /// What was written, by everybody who is done.
    fn lines(&self) -> Vec<Usage> {
        let events = Journal::at(&self.0).events(None, Some(Kind::Usage));
        let usage = |what| match what {
            What::Usage(usage) => usage,
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
    pool.change(config).unwrap();
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
    first.commit([(Unit::Tokens, 70)]).unwrap();
    drop(pool.reserve(again).blocking().unwrap());
    pool.reserve(call(500)).blocking().unwrap().cancel().unwrap();
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
    pool.reserve(call(100)).blocking().unwrap().answered(&reply).unwrap();
    pool.reserve(call(100)).blocking().unwrap().answered(&Reply::new(429)).unwrap();
    pool.reserve(call(100)).blocking().unwrap().answered(&Reply::new(400)).unwrap();
    pool.reserve(call(100)).blocking().unwrap().throttled(Throttle::default()).unwrap();
    pool.throttle(&Throttle::default().agent("blog")).unwrap();
    pool.heard(&Reply::new(429), None).unwrap();
    drop((pool, tap));
    let lines = home.lines();
    assert!(lines.iter().all(|line| !line.enforced), "shadow mode: {lines:?}");
    assert_eq!(sum(&lines, |line| line.calls), 4);
    assert_eq!(sum(&lines, |line| line.refused), 4);
    let nobody = lines.iter().filter(|line| line.agent == "other");
    assert_eq!(nobody.map(|line| line.refused).sum::<u64>(), 1);
    assert_eq!(units(&lines)["requests"], 4);
}

#[test]
fn what_another_process_settles_is_counted_there() {
    let home = Home::new();
    let tap = home.tap();
    let lease = pool(&tap, true).reserve(call(100).model("m")).blocking().unwrap();
    let id = lease.keep(Duration::from_secs(600)).unwrap();
    drop(tap);
    assert_eq!(units(&home.lines()), BTreeMap::new(), "nothing is known yet");
    let tap = home.tap();
    let handle = tap.lease(&id).unwrap();
    handle.progress([(Unit::Tokens, 20)]).unwrap();
    handle.commit([(Unit::Tokens, 60)]).unwrap();
    assert!(handle.commit([(Unit::Tokens, 60)]).is_err());
    drop((handle, tap));
    let lines = home.lines();
    assert_eq!(sum(&lines, |line| line.calls), 1);
    assert!(lines.iter().all(|line| line.model.as_deref() == Some("m")), "{lines:?}");
    assert_eq!(units(&lines)["tokens"], 60);
}

#[test]
fn an_id_that_is_asked_twice_is_one_call() {
    let home = Home::new();
    let tap = home.tap();
    let pool = pool(&tap, true);
    let first = pool.reserve(call(100).id("k")).blocking().unwrap();
    let second = pool.reserve(call(100).id("k")).blocking().unwrap();
    assert_eq!(first.id(), second.id());
    first.commit([]).unwrap();
    drop(second);
    assert!(pool.reserve(call(100).id("k")).blocking().unwrap().is_settled());
    drop((pool, tap));
    let lines = home.lines();
    assert_eq!((sum(&lines, |line| line.calls), units(&lines)["tokens"]), (1, 100));
}

#[test]
fn waits_are_counted_whatever_comes_of_them() {
    let home = Home::new();
    let tap = home.tap();
    let pool = tap.pool("my/slots").unwrap();
    pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).unwrap();
    let held = pool.reserve(Request::by("holder")).blocking().unwrap();
    let late = Request::by("blog").timeout(Duration::from_millis(20));
    assert!(pool.reserve(late).blocking().is_err());
    drop((held, pool, tap));
    let lines = home.lines();
    let waited = lines.iter().find(|line| line.agent == "blog").unwrap();
    assert!(waited.waited_ms > 0 && waited.calls == 0, "{waited:?}");
}
