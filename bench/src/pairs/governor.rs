//! The floor: a limiter that knows only its own process, without windows, leases or other people.

use std::hint::black_box;
use std::num::NonZeroU32;

use governor::{Quota, RateLimiter};

pub(super) fn pairs() -> Result<impl FnMut(), String> {
    let most = NonZeroU32::new(1_000_000_000).ok_or("nothing")?;
    let limiter = RateLimiter::direct(Quota::per_second(most).allow_burst(most));
    // One check; it has no second half.
    Ok(move || drop(black_box(limiter.check())))
}
