//! Faults that other limiters have had, by name: for each, the test that shows ours has not.
//!
//! Where it says something, a naive limiter of a few lines shows the fault first. Which fault is
//! which is listed in `docs/faults.md`.

mod lost;
mod naive;
mod order;
mod over;
mod refund;
