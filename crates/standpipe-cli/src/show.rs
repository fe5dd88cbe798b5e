//! Formatting for people: one file per kind of output. Nothing here reads or changes a store.

pub(crate) mod amount;
pub(crate) mod audit;
pub(crate) mod bar;
pub(crate) mod compare;
pub(crate) mod duration;
pub(crate) mod escaped;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod findings;
#[cfg(test)]
mod golden;
pub(crate) mod limits_kept;
pub(crate) mod local_time;
pub(crate) mod problem;
pub(crate) mod reasons;
pub(crate) mod status;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod when;
