//! The whole text: of real calls, and of more names than the bounds allow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use standpipe::observe::Timestamp;
use standpipe::observe::journal::{Event, EventData, EventKind, Journal};
use standpipe::{Limit, Request, Rule, Settings, Snapshot, Span, Standpipe, Throttle, Unit};

use super::*;

/// A state directory of its own, gone at the end.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-metrics-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn tap(&self) -> Standpipe {
        let builder = Standpipe::builder().settings(Settings::default()).agent("tests");
        builder.home(&self.0).open().unwrap()
    }

    /// Everything that processes which are done have written.
    fn counters(&self) -> JournalCounters {
        let mut counters = JournalCounters::new();
        for kind in [None, Some(EventKind::Usage)] {
            Journal::at(&self.0).events(None, kind).for_each(|event| counters.add(&event));
        }
        counters
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn about() -> ProcessInfo {
    ProcessInfo {
        version: "1.2.3",
        started: SystemTime::UNIX_EPOCH + Duration::from_millis(1_500),
        connections: 3,
        streams: 2,
        waiting_http: 1,
        store_up: true,
        snapshot_age: Duration::ZERO,
    }
}

fn nothing() -> Snapshot {
    let tap = Standpipe::builder().settings(Settings::default());
    let tap = tap.store(standpipe::StoreUrl::Memory).open().unwrap();
    tap.snapshot(&[]).blocking().unwrap()
}

/// Reads the text as strictly as Prometheus does. Answers every sample by its name and labels.
fn samples(text: &str) -> BTreeMap<&str, &str> {
    let (mut all, mut families, mut now) = (BTreeMap::new(), BTreeSet::new(), "");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            now = rest.split(' ').next().unwrap();
            assert!(families.insert(now), "{now} begins twice");
            assert!(rest.ends_with('.'), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!((name, kind == "counter"), (now, now.ends_with("_total")), "{line}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        assert!(name.starts_with(now), "{line} among {now}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert_eq!(all.insert(series, value), None, "{series} is there twice");
    }
    all
}

fn event(what: EventData) -> Event {
    Event { at: Timestamp { millis: 0 }, pool: "a/b".to_owned(), what }
}

/// A line of the journal about what an agent used.
fn used(pool: &str, agent: &str) -> Event {
    let line = format!(
        "{{\"at\":\"2026-01-01T00:00:00.000Z\",\"pool\":\"{pool}\",\"kind\":\"usage\",\
         \"agent\":\"{agent}\",\"priority\":\"background\",\"enforced\":true,\
         \"from\":\"2026-01-01T00:00:00.000Z\",\"calls\":2,\"retries\":1,\"waited_ms\":1500,\
         \"refusals\":{{\"pause\":3,\"made up\":1}},\"waits\":[1,0,0,1],\
         \"units\":{{\"usd\":250000,\"tokens\":70}}}}"
    );
    serde_json::from_str(&line).unwrap()
}

#[test]
fn calls_that_were_made_by_the_library_are_counted() {
    let home = Home::new();
    let tap = home.tap();
    let pool = tap.pool("my/api").unwrap();
    let minute = Rule::Window { unit: Unit::Requests, amount: 100, period: Span::secs(60) };
    pool.limit(vec![Limit::new(minute), Limit::new(Rule::Parallel { amount: 1 })])
        .blocking()
        .unwrap();
    let held = pool.reserve(Request::by("blog")).blocking().unwrap();
    let hasty = Request::by("data").timeout(Duration::ZERO);
    assert!(pool.reserve(hasty).blocking().is_err());
    pool.throttle(&Throttle::default().agent("data")).blocking().unwrap();
    let snapshot = tap.snapshot(std::slice::from_ref(&pool)).blocking().unwrap();
    drop((held, pool, tap));
    let text = text(&snapshot, &home.counters(), &StoreLatency::new(), &about());
    let samples = samples(&text);
    let blog = "pool=\"my/api\",agent=\"blog\",priority=\"standard\"";
    let data = blog.replace("blog", "data");
    let requests = "pool=\"my/api\",limit=\"requests per 1min\",unit=\"requests\"";
    for (series, value) in [
        (format!("agent_admitted_total{{{blog}}}"), "1"),
        (format!("agent_admitted_total{{{data}}}"), "0"),
        (format!("agent_wait_seconds_bucket{{{blog},le=\"0.1\"}}"), "1"),
        (format!("agent_wait_seconds_count{{{blog}}}"), "1"),
        (format!("agent_refused_total{{{data},reason=\"limit\"}}"), "1"),
        (format!("agent_in_flight{{{blog}}}"), "1"),
        ("agent_throttled_total{pool=\"my/api\",agent=\"data\",kind=\"quota\"}".to_owned(), "1"),
        ("throttled_total{pool=\"my/api\",kind=\"quota\"}".to_owned(), "1"),
        ("throttled_total{pool=\"my/api\",kind=\"overload\"}".to_owned(), "0"),
        ("in_flight{pool=\"my/api\"}".to_owned(), "1"),
        ("paused{pool=\"my/api\"}".to_owned(), "1"),
        ("pauses_total{pool=\"my/api\"}".to_owned(), "1"),
        ("stops_total{pool=\"my/api\"}".to_owned(), "0"),
        (format!("limit_stated{{{requests}}}"), "100"),
        (format!("limit_used{{{requests}}}"), "1"),
        ("zone{pool=\"my/api\",zone=\"green\"}".to_owned(), "1"),
        ("zone{pool=\"my/api\",zone=\"red\"}".to_owned(), "0"),
        ("terminal{pool=\"my/api\"}".to_owned(), "0"),
        ("build_info{version=\"1.2.3\"}".to_owned(), "1"),
        ("start_time_seconds".to_owned(), "1.5"),
        ("http_waiting".to_owned(), "1"),
    ] {
        let found = samples.get(format!("standpipe_{series}").as_str());
        assert_eq!(found, Some(&value), "{series} in {text}");
    }
}

#[test]
fn every_kind_of_line_finds_its_counter() {
    let mut counters = JournalCounters::new();
    counters.add(&used("a/b", "blog"));
    counters.add(&used("a/b", "blog"));
    let until = Timestamp { millis: 0 };
    for what in [
        EventData::Pause { until, for_ms: 1, by: None },
        EventData::Stop { until: None },
        EventData::SessionEnd { session: 1 },
        EventData::Promote { agent: "blog".to_owned() },
        EventData::Store { what: "away".to_owned() },
        EventData::Lost { lines: 7 },
        EventData::Outside { limit: "usd per 1day".to_owned(), units: 1_500_000, total: 9 },
        EventData::Reclaim {
            lease: String::new(),
            agent: String::new(),
            why: "expired".to_owned(),
        },
        EventData::Throttle {
            agent: None,
            lease: None,
            about: "invented".to_owned(),
            retry_after_ms: None,
            said: None,
        },
    ] {
        counters.add(&event(what));
    }
    let store = StoreLatency::new();
    store.took(Duration::from_micros(300));
    store.failed();
    store.failed_by(&standpipe::StoreError::transient("away"));
    let text = text(&nothing(), &counters, &store, &about());
    let samples = samples(&text);
    let blog = "pool=\"a/b\",agent=\"blog\",priority=\"background\"";
    for (series, value) in [
        (format!("agent_admitted_total{{{blog}}}"), "4"),
        (format!("agent_retries_total{{{blog}}}"), "2"),
        (format!("agent_units_total{{{blog},unit=\"usd\"}}"), "0.5"),
        (format!("agent_units_total{{{blog},unit=\"tokens\"}}"), "140"),
        (format!("agent_refused_total{{{blog},reason=\"pause\"}}"), "6"),
        (format!("agent_refused_total{{{blog},reason=\"other\"}}"), "2"),
        (format!("agent_wait_seconds_bucket{{{blog},le=\"1\"}}"), "2"),
        (format!("agent_wait_seconds_bucket{{{blog},le=\"+Inf\"}}"), "4"),
        (format!("agent_wait_seconds_sum{{{blog}}}"), "3"),
        ("pauses_total{pool=\"a/b\"}".to_owned(), "1"),
        ("stops_total{pool=\"a/b\"}".to_owned(), "1"),
        ("sessions_ended_total{pool=\"a/b\"}".to_owned(), "1"),
        ("promoted_total{pool=\"a/b\"}".to_owned(), "1"),
        ("store_notices_total{pool=\"a/b\"}".to_owned(), "1"),
        ("reclaimed_total{pool=\"a/b\",why=\"expired\"}".to_owned(), "1"),
        ("throttled_total{pool=\"a/b\",kind=\"other\"}".to_owned(), "1"),
        ("outside_units_total{pool=\"a/b\",limit=\"usd per 1day\",unit=\"usd\"}".to_owned(), "1.5"),
        ("journal_lost_lines_total".to_owned(), "7"),
        ("journal_lines_total{kind=\"usage\"}".to_owned(), "2"),
        ("store_step_seconds_bucket{le=\"0.00025\"}".to_owned(), "0"),
        ("store_step_seconds_bucket{le=\"0.0005\"}".to_owned(), "1"),
        ("store_errors_total{kind=\"transient\"}".to_owned(), "1"),
        ("store_errors_total{kind=\"other\"}".to_owned(), "1"),
    ] {
        let found = samples.get(format!("standpipe_{series}").as_str());
        assert_eq!(found, Some(&value), "{series} in {text}");
    }
}

#[test]
fn ten_thousand_agents_make_no_more_text_than_a_hundred() {
    let of = |agents: usize| {
        let mut counters = JournalCounters::new();
        for number in 0..agents {
            counters.add(&used("a/b", &format!("agent-{number:05}")));
        }
        text(&nothing(), &counters, &StoreLatency::new(), &about())
    };
    let (few, many) = (of(101), of(10_000));
    assert_eq!(few.lines().count(), many.lines().count());
    assert!(many.len() < 400_000, "{} bytes", many.len());
    let admitted: u64 = samples(&many)
        .iter()
        .filter(|(series, _)| series.starts_with("standpipe_agent_admitted_total"))
        .map(|(_, value)| value.parse::<u64>().unwrap())
        .sum();
    assert_eq!(admitted, 20_000, "every agent is in the sum");
    let other = "standpipe_agent_admitted_total{pool=\"a/b\",agent=\"other\",\
                 priority=\"background\"}";
    assert_eq!(samples(&many)[other], "19800");
}

#[test]
fn pools_names_and_words_are_bounded_too() {
    let mut counters = JournalCounters::new();
    for pool in 0..2_000 {
        for agent in 0..20 {
            counters.add(&used(&format!("p/{pool}"), &format!("agent-{agent}")));
        }
        let limit = format!("requests per {pool}min");
        counters.add(&event(EventData::Outside { limit, units: 1, total: 1 }));
    }
    counters.add(&used(&"p".repeat(10_000), "blog"));
    let text = text(&nothing(), &counters, &StoreLatency::new(), &about());
    let samples = samples(&text);
    let count = |start: &str| samples.keys().filter(|series| series.starts_with(start)).count();
    assert_eq!(count("standpipe_pauses_total"), 256);
    let agents = count("standpipe_agent_admitted_total");
    assert!((2_048..2_048 + 257).contains(&agents), "{agents}");
    assert_eq!(count("standpipe_outside_units_total{pool=\"a/b\""), 16);
    assert!(text.lines().all(|line| line.len() < 1_000));
    let admitted: u64 = samples
        .iter()
        .filter(|(series, _)| series.starts_with("standpipe_agent_admitted_total"))
        .map(|(_, value)| value.parse::<u64>().unwrap())
        .sum();
    assert_eq!(admitted, 80_002);
}

/// `store reset` removes the series of a pool, also if some of its events are read later. A pool
/// that is created after the snapshot keeps what it counted.
#[test]
fn a_pool_that_was_reset_has_no_lines() {
    let home = Home::new();
    let tap = home.tap();
    let pool = tap.pool("a/b").unwrap();
    pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).blocking().unwrap();
    let (there, gone) = (tap.snapshot(&[pool]).blocking().unwrap(), nothing());
    let mut counters = JournalCounters::new();
    let mut admitted = |snapshot: &Snapshot, event: Option<Event>| {
        event.iter().for_each(|event| counters.add(event));
        counters.forget_reset(snapshot);
        let text = text(snapshot, &counters, &StoreLatency::new(), &about());
        let series = "standpipe_agent_admitted_total{pool=\"a/b\",agent=\"blog\",\
                      priority=\"background\"}";
        samples(&text).get(series).map(|count| count.parse::<u64>().unwrap())
    };
    let event = || Some(used("a/b", "blog"));
    assert_eq!(admitted(&gone, event()), None, "not yet in the snapshot");
    assert_eq!(admitted(&there, event()), Some(4), "and nothing is missing");
    assert_eq!(admitted(&gone, None), None, "reset");
    assert_eq!(admitted(&gone, event()), None, "an event from before");
    assert_eq!(admitted(&gone, None), None);
    assert_eq!(admitted(&there, event()), Some(2), "used again, it counts from 0");
}

#[test]
fn agents_of_a_crowded_pool_are_summed_up() {
    let home = Home::new();
    let tap = home.tap();
    let pool = tap.pool("my/api").unwrap();
    pool.limit(vec![Limit::new(Rule::Parallel { amount: 500 })]).blocking().unwrap();
    let ask = |number: u32| pool.reserve(Request::by(format!("agent-{number}"))).blocking();
    let held: Vec<_> = (0..130).map(|number| ask(number).unwrap()).collect();
    let snapshot = tap.snapshot(std::slice::from_ref(&pool)).blocking().unwrap();
    let text = text(&snapshot, &JournalCounters::new(), &StoreLatency::new(), &about());
    let samples = samples(&text);
    let apart = samples.keys().filter(|series| series.starts_with("standpipe_agent_in_flight"));
    assert_eq!(apart.count(), 101);
    let other = "standpipe_agent_in_flight{pool=\"my/api\",agent=\"other\",priority=\"standard\"}";
    assert_eq!(samples[other], "30");
    drop((held, pool, tap));
}
