//! Questions about a daemon and its pools that the tests of the server and those of the command
//! line ask alike.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Answer, Daemon, Home};

/// How long anything a test waits for may take. Far above what it needs: only what never comes
/// fails by it.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// Asks until it is so.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < BOUND, "never so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until so many calls wait on a pool, as the library sees it. Returns the pool.
#[track_caller]
pub(crate) fn until_waiting(home: &Home, pool: &str, many: u64) -> Value {
    until(&format!("{many} wait on {pool}"), || {
        let status = home.status(pool);
        (status["waiting"] == many).then_some(status)
    })
}

/// The agents that wait on a pool, in order.
pub(crate) fn line_of(status: &Value) -> Vec<String> {
    let tickets = status["tickets"].as_array().unwrap().iter();
    tickets.map(|ticket| ticket["agent"].as_str().unwrap().to_owned()).collect()
}

/// How a limit of a pool stands.
#[track_caller]
pub(crate) fn limit<'a>(status: &'a Value, unit: &str) -> &'a Value {
    let mut all = status["limits"].as_array().unwrap().iter();
    all.find(|limit| limit["unit"] == unit).unwrap_or_else(|| panic!("no {unit} in {status}"))
}

/// The lease that an answer names.
#[track_caller]
pub(crate) fn lease(answer: &Answer) -> String {
    answer.json()["lease"].as_str().unwrap_or_else(|| panic!("no lease: {answer:?}")).to_owned()
}

/// All files under the state directory, with what they hold.
pub(crate) fn files(home: &Home) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut left = vec![home.path.join("state")];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            left.extend(entries.map(|entry| entry.unwrap().path()));
        } else if path.is_file()
            // It may have gone round meanwhile.
            && let Ok(bytes) = std::fs::read(&path)
        {
            found.push((path, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    found
}

/// Takes the one slot of `my/slots` for a long time. Answers the lease.
#[track_caller]
pub(crate) fn take_the_slot(daemon: &Daemon) -> String {
    let limits = serde_json::json!({"parallel": 1});
    let ask = serde_json::json!({
        "pool": "my/slots", "agent": "holder", "limits": limits, "ttl_ms": 3_600_000,
        "timeout_ms": 0
    });
    lease(&daemon.reserve(&ask))
}

/// A call of an agent for that slot.
pub(crate) fn wants_the_slot(agent: &str) -> Value {
    serde_json::json!({"pool": "my/slots", "agent": agent, "timeout_ms": 600_000})
}
