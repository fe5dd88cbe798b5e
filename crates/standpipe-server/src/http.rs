//! HTTP as such: accepting connections, their bounds, who may ask, reading requests, problems.
//!
//! Nothing here knows what a pool is. Every connection is bounded in number, size and time.

pub(crate) mod acceptors;
pub(crate) mod budget;
pub(crate) mod connections;
pub(crate) mod extract;
pub(crate) mod guard;
pub(crate) mod names;
pub(crate) mod parse_error;
pub(crate) mod peer;
pub(crate) mod problem;
pub(crate) mod service;
mod trace;
mod write_timeout;
