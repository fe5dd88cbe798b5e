//! Views that change over time: snapshots of all pools, their history, the journal, and streams.
//!
//! One reading serves every viewer, however many there are.

pub(crate) mod history;
pub(crate) mod journal;
mod shared;
pub(crate) mod snapshots;
pub(crate) mod sse;
pub(crate) mod views;
