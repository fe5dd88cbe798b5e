//! What was used: one history of charges per unit, and the limits, floors and caps as views of it.
//!
//! `history` keeps the charges of a unit, `unit_usage` charges and refunds them and carries them from
//! one configuration to the next. `counter` is what a limit remembers besides, `bucket` the
//! arithmetic of one kind of it, and `view` answers how much of a limit is used and when it is free.

pub(crate) mod bucket;
pub(crate) mod counter;
pub(crate) mod estimate;
pub(crate) mod history;
pub(crate) mod money;
pub(crate) mod size_histogram;
pub(crate) mod unit_usage;
pub(crate) mod view;
