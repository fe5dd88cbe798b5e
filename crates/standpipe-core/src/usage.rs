//! What was used.
//!
//! A charge is recorded under one number in the history of its unit, in the history of its agent,
//! and in every bucket of the unit. Windows are views of the first, caps and floors of the second.
//! A bucket keeps its own level and replays the history when its rule changes.
//!
//! `unit_usage` charges, refunds, and carries histories from one configuration to the next.
//! `history` keeps charges, `counter` what a limit remembers besides, `bucket` is the arithmetic of
//! one kind of it, `calendar` follows resets at a time of day. `view` answers how much of a limit
//! is used and when it is free.

pub(crate) mod bucket;
pub(crate) mod calendar;
pub(crate) mod counter;
pub(crate) mod estimate;
pub(crate) mod history;
pub(crate) mod money;
pub(crate) mod size_histogram;
pub(crate) mod unit_usage;
pub(crate) mod view;
