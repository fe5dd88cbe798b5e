//! Faults that other limiters have had, by name: for each, the test that shows ours has not.
//!
//! Where it says something, a naive limiter of a few lines shows the fault first. Which fault is
//! which is told in `docs/faults.md`.

#[cfg(test)]
#[expect(dead_code, reason = "each test binary uses its own part of what they share")]
mod support;

#[cfg(test)]
#[path = "faults/naive.rs"]
mod naive;

#[cfg(test)]
#[path = "faults/over.rs"]
mod over;

#[cfg(test)]
#[path = "faults/refund.rs"]
mod refund;

#[cfg(test)]
#[path = "faults/lost.rs"]
mod lost;

#[cfg(test)]
#[path = "faults/order.rs"]
mod order;
