//! What was used: the charges of units, and the counters that limits read them through.
//!
//! `window` and `bucket` are the arithmetic of the two kinds of rate. A `counter` is one of them,
//! or a number of slots, for one limit or one agent. `history` remembers charges beyond the limits
//! in force, so that a changed limit counts what was used before.

pub(crate) mod bucket;
pub(crate) mod counter;
pub(crate) mod estimate;
pub(crate) mod history;
pub(crate) mod money;
pub(crate) mod size_histogram;
pub(crate) mod window;
