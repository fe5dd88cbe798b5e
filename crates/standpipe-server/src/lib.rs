//! The daemon: one local process that any language can talk to, and that shows what is going on.
//!
//! In reading order: `daemon` (its life), `doors`, `accept` and `guard` (who gets in), `house`
//! (what requests share), `api` (what can be asked), `watching`, `counting` and `reload` (what goes
//! on beside that).
//!
//! Invariant: what the ledger says is never kept here. Every answer comes from the pool itself, so
//! that callers by HTTP, the command line and the library may use one pool at the same time.

mod accept;
pub mod api;
mod claim;
mod counting;
mod daemon;
mod doors;
mod failure;
mod guard;
mod history;
mod house;
mod listen;
mod log;
pub mod metrics;
mod peer;
mod pools;
mod problem;
mod reload;
mod said;
mod stalls;
mod stream;
mod token;
mod ui;
mod watching;

pub use self::claim::{Running, no_links, running};
pub use self::daemon::{Begun, Options, run};
pub use self::failure::Failure;
pub use self::listen::raise_file_limit;
pub use self::log::Log;
