//! Every bound on reading a response, each with the reason for its value.
//!
//! Responses are untrusted input: the reader drops what lies beyond a bound and never allocates
//! for it.

use std::time::Duration;

/// Most headers read. Real responses have about thirty.
pub const HEADERS: usize = 256;
/// Most bytes of a header value. A longer value does not describe a limit.
pub const VALUE: usize = 1_024;
/// Most bytes read of an error body. Real ones have a few hundred.
pub const ERROR_BODY: usize = 64 * 1_024;
/// Most bytes of one stream event. The reader skips a larger event.
pub const EVENT: usize = 1_024 * 1_024;
/// Most limits reported for one response.
pub const LIMITS: usize = 32;
/// Most anomalies reported for one response.
pub const ANOMALIES: usize = 16;
/// Most characters kept of a provider's error message.
pub const MESSAGE: usize = 200;
/// Most characters kept of a rejected value and of a limit's name.
pub const SHORT: usize = 64;
/// The largest amount accepted. The greatest known limits are far below.
pub const AMOUNT: u64 = 1_000_000_000_000;
/// The longest wait accepted: a weekly limit, plus a day for clock differences.
pub const WAIT: Duration = Duration::from_secs(8 * 86_400);

/// The longest wait accepted for a terminal refusal: monthly and yearly budgets.
pub const TERMINAL_WAIT: Duration = Duration::from_secs(400 * 86_400);
/// The largest difference accepted between the response's `date` header and the time it was
/// received. It covers any time-zone mistake and any drifting clock; a date further off belongs to
/// a cached response or an unset clock.
pub const SKEW_MS: i64 = 2 * 86_400_000;
/// The start of 2020. A local clock before it was never set, so the reader ignores it.
pub const CLOCK_SET_MS: i64 = 1_577_836_800_000;
