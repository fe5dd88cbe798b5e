//! Calls that wait: tickets, the order among them, and the instants they are given.
//!
//! `tickets` is their table. `serve` moves tickets through the lines of the constraints they lack;
//! `forecast` computes when a call would be admitted; `promotion` lifts a background agent that is
//! denied for long.

pub(crate) mod fair;
pub(crate) mod forecast;
pub(crate) mod promotion;
pub(crate) mod serve;
pub(crate) mod ticket;
pub(crate) mod tickets;
