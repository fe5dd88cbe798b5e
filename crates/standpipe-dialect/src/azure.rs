//! OpenAI's models at Azure: the same headers with other clocks, and sentences instead of codes.

use crate::answer::{Kind, ResetMeans, Verdict};
use crate::fault::Fault;
use crate::openai;
use crate::reading::Reading;
use crate::rows::{Clock, Row};
use crate::status::HINTS;

/// -1, -1 and 0 are sent where nothing is known.
const ROWS: [Row; 2] = [row("-requests", "requests"), row("-tokens", "tokens")];

const fn row(after: &'static str, unit: &'static str) -> Row {
    Row::new("x-ratelimit-", after, unit, Clock::Go).means(ResetMeans::Full).minus_is_unknown()
}

/// Said when the region is short of capacity, whatever one's own quota.
const CAPACITY: &[&str] = &["high demand", "at capacity", "no capacity", "temporarily unable"];

pub(crate) fn see_limits(reading: &mut Reading<'_>) {
    reading.see_rows(&ROWS);
}

pub(crate) fn judge(reading: &mut Reading<'_>, fault: &Fault) -> Option<Verdict> {
    if let Some(verdict) = openai::by_code(reading, HINTS, fault) {
        return Some(verdict);
    }
    let refuses = matches!(reading.status, 429 | 503);
    (refuses && fault.says(CAPACITY)).then(|| reading.refusal(Kind::Overload, HINTS, fault))
}
