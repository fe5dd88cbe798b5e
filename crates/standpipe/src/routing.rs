//! Where a call should go, and which agents upstream are throttled.
//!
//! Nothing here admits or refuses a call. Reading order: `route` and `advice` choose pools;
//! `workflow` is the graph of agents; `backpressure_log` shares who is throttled between processes.

pub(crate) mod advice;
pub(crate) mod backpressure_log;
pub(crate) mod route;
pub(crate) mod workflow;
