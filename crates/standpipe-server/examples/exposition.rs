//! Makes a few calls of every kind on a ledger of its own and prints what `/metrics` says of them.
//! The deploy suite gives it to `promtool`, and looks up in it every name that alerts and dashboard
//! use.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;
use std::time::{Duration, SystemTime};

use standpipe::observe::journal::{EventKind, Journal};
use standpipe::{Request, Settings, Standpipe, Throttle, Unit};
use standpipe_server::metrics::{JournalCounters, ProcessInfo, StoreLatency, text};

const POOLS: &str = r#"
[pool."my/api"]
requests = "100/min"
tokens = "10k/min"
parallel = 2

[pool."my/paid"]
usd = "20/d"
price = { input_tokens = 3.0 }

[agent.release]
priority = "critical"
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let home = std::env::temp_dir().join(format!("standpipe-exposition-{}", std::process::id()));
    let settings = Settings::parse(POOLS, None, 0)?;
    let tap = Standpipe::builder().settings(settings).agent("blog").home(&home).open()?;
    let (api, paid) = (tap.pool("my/api")?, tap.pool("my/paid")?);
    let by = |agent: &str| Request::by(agent).unit("tokens", 500).timeout(Duration::ZERO);
    let call = || by("blog");
    let first = api.reserve(by("release")).blocking()?;
    first.commit([(Unit::Tokens, 420)]).blocking()?;
    let held = (api.reserve(call()).blocking()?, api.reserve(call()).blocking()?);
    // The third is refused: two calls at a time are what there is.
    let refused = api.reserve(call()).blocking().is_err();
    paid.reserve(Request::by("blog").unit("input_tokens", 9_000))
        .blocking()?
        .commit([])
        .blocking()?;
    api.throttle(&Throttle::default().agent("blog")).blocking()?;
    let snapshot = tap.snapshot(&[api, paid]).blocking()?;
    drop((held, tap));
    let (mut counters, store) = (JournalCounters::new(), StoreLatency::new());
    for kind in [None, Some(EventKind::Usage)] {
        Journal::at(&home).events(None, kind).for_each(|event| counters.add(&event));
    }
    store.took(Duration::from_micros(300));
    let about = ProcessInfo {
        version: env!("CARGO_PKG_VERSION"),
        started: SystemTime::now(),
        connections: 1,
        streams: 0,
        waiting_http: usize::from(!refused),
        store_up: true,
        snapshot_age: Duration::ZERO,
    };
    print!("{}", text(&snapshot, &counters, &store, &about));
    std::fs::remove_dir_all(&home)?;
    Ok(())
}
