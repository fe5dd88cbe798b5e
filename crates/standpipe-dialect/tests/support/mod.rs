//! What the tests share: an answer in one line, and short words for what it means.

use std::time::Duration;

use standpipe_dialect::{Answer, Dialect, Kind, LimitSeen, Refused, Response, Verdict, Why};

/// When answers are received here: 2026-10-21T07:28:00Z.
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
pub(crate) fn told(answer: &Answer) -> (Kind, Option<u128>) {
    let refused = refused(answer);
    (refused.kind, refused.wait.map(|wait| wait.as_millis()))
}

/// What was hit: the unit and the period in seconds.
pub(crate) fn hit(answer: &Answer) -> (Option<&str>, Option<u64>) {
    let refused = refused(answer);
    (refused.unit.as_deref(), refused.period.map(|period| period.as_secs()))
}

pub(crate) fn seen<'a>(answer: &'a Answer, unit: &str, name: Option<&str>) -> &'a LimitSeen {
    let is = |seen: &&LimitSeen| seen.unit == unit && seen.name.as_deref() == name;
    answer.limits.iter().find(is).unwrap_or_else(|| panic!("{unit} in {:?}", answer.limits))
}

/// Limit, what remains, and the reset in milliseconds.
pub(crate) fn figures(seen: &LimitSeen) -> (Option<u64>, Option<u64>, Option<u128>) {
    (seen.limit, seen.remaining, seen.reset_in.map(|reset| reset.as_millis()))
}

pub(crate) fn whys(answer: &Answer) -> Vec<Why> {
    answer.doubts.iter().map(|doubt| doubt.why).collect()
}

pub(crate) const OK: Verdict = Verdict::Ok;
pub(crate) const AGAIN: Verdict = Verdict::NotOurs { transient: true };
pub(crate) const NEVER: Verdict = Verdict::NotOurs { transient: false };

pub(crate) const fn secs(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}
