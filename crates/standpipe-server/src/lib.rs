//! The daemon: one local process that any language can talk to, and that shows what is going on.

pub mod metrics;
