//! What the provider said, and what follows from it: refusals, pauses, limits, its own counts.
//!
//! `throttle` handles a refusal and `answered` a success. After a pause `return_windows` admits one
//! call first and staggers the others. `learn` and `reconcile` read limits and remaining units.

pub(crate) mod answered;
pub(crate) mod auto_margin;
pub(crate) mod cascade;
pub(crate) mod learn;
pub(crate) mod observe;
pub(crate) mod ramp;
pub(crate) mod reconcile;
pub(crate) mod return_windows;
pub(crate) mod terminal;
pub(crate) mod throttle;
