//! Faults that other limiters have had, by name: for each, the test that shows ours has not.
//!
//! Where it says something, a naive limiter of a few lines shows the fault first. Which fault is
//! which is told in `docs/faults.md`.

#![cfg(test)]

#[expect(dead_code, reason = "each test binary uses its own part of what they share")]
mod support;

#[path = "faults/naive.rs"]
mod naive;

#[path = "faults/over.rs"]
mod over;

#[path = "faults/refund.rs"]
mod refund;

#[path = "faults/lost.rs"]
mod lost;

#[path = "faults/order.rs"]
mod order;
