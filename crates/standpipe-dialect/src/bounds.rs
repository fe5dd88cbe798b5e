//! Every bound of reading an answer in one place, with the reason for the number.
//!
//! Answers come from outside: what lies beyond a bound is left out, never grown for.

use std::time::Duration;

/// Headers looked at. Real answers have some thirty.
pub const HEADERS: usize = 256;
/// Bytes of a header's value; longer ones are not about limits.
pub const VALUE: usize = 1_024;
/// Bytes of an error body that are looked at. Real ones have a few hundred.
pub const ERROR_BODY: usize = 64 * 1_024;
/// Bytes of one event of a stream; larger ones are passed over.
pub const EVENT: usize = 1_024 * 1_024;
/// Limits told of by one answer.
pub const LIMITS: usize = 32;
/// Doubts told of by one answer.
pub const DOUBTS: usize = 16;
/// Characters of a provider's words that are kept.
pub const MESSAGE: usize = 200;
/// Characters of a value that was not believed, and of the name of a limit.
pub const SHORT: usize = 64;
/// The largest figure that is believed; the greatest limits known are far below.
pub const FIGURE: u64 = 1_000_000_000_000;
/// The longest wait that is believed: a weekly limit, and a day for clocks.
pub const WAIT: Duration = Duration::from_secs(8 * 86_400);

/// The longest stop with a known end that is believed: the provider's months and years of budget.
pub const STOP: Duration = Duration::from_secs(400 * 86_400);
/// How far the answer's own `date` may be from the time it was received. Any time zone taken for
/// another, and any drifting clock, is within it; what is further off was not written just now.
pub const SKEW_MS: i64 = 2 * 86_400_000;
/// The beginning of 2020: a local clock before it was never set, and says nothing.
pub const CLOCK_SET_MS: i64 = 1_577_836_800_000;
