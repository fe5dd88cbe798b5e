//! Helpers of the tests: read a response in one line, and short accessors for the answer.

pub(crate) mod streams;

use std::time::Duration;

use standpipe_dialect::{
    AnomalyReason, Answer, Dialect, Kind, LimitSeen, Refused, Response, Verdict,
};

/// The time at which responses are received: 2026-10-21T07:28:00Z.
pub(crate) const NOW: u64 = 1_792_567_680_000;

pub(crate) fn read(dialect: Dialect, status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    dialect.read(&Response { status, headers, body: body.as_bytes(), received: NOW })
}

pub(crate) fn refused(answer: &Answer) -> &Refused {
    match &answer.verdict {
        Verdict::Refused(refused) => refused,
        other => panic!("{other:?}"),
    }
}

/// The kind of a refusal and its wait in milliseconds.
pub(crate) fn kind_and_wait(answer: &Answer) -> (Kind, Option<u128>) {
    let refused = refused(answer);
    (refused.kind, refused.wait.map(|wait| wait.as_millis()))
}

/// Unit and period, in seconds, of the exceeded limit.
pub(crate) fn exceeded(answer: &Answer) -> (Option<&str>, Option<u64>) {
    let refused = refused(answer);
    (refused.unit.as_deref(), refused.period.map(|period| period.as_secs()))
}

pub(crate) fn seen<'a>(answer: &'a Answer, unit: &str, name: Option<&str>) -> &'a LimitSeen {
    let is = |seen: &&LimitSeen| seen.unit == unit && seen.name.as_deref() == name;
    answer.limits.iter().find(is).unwrap_or_else(|| panic!("{unit} in {:?}", answer.limits))
}

/// Limit, remaining, and reset in milliseconds.
pub(crate) fn amounts(seen: &LimitSeen) -> (Option<u64>, Option<u64>, Option<u128>) {
    (seen.limit, seen.remaining, seen.reset_in.map(|reset| reset.as_millis()))
}

pub(crate) fn reasons(answer: &Answer) -> Vec<AnomalyReason> {
    answer.anomalies.iter().map(|anomaly| anomaly.why).collect()
}

pub(crate) const OK: Verdict = Verdict::Ok;
pub(crate) const AGAIN: Verdict = Verdict::Failed { transient: true };
pub(crate) const NEVER: Verdict = Verdict::Failed { transient: false };

pub(crate) const fn secs(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}
