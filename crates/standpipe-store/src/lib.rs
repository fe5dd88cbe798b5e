//! What all stores of Standpipe share.
//!
//! One idea carries them: a deterministic core over an ordered log. Every process keeps a replica
//! of a pool's state. To decide, it appends its event in one atomic step that also stamps it and
//! returns what others appended since; it applies those, then its own, and has its outcome.
//! Replicas that have read to the same position have the same state, byte for byte. So an engine
//! only orders and stamps.
//!
//! In reading order:
//!
//! - [`layout`]: events and facts as bytes, and back;
//! - [`entry`]: an event in a log, with its stamp and checksum;
//! - [`log`]: what an engine has to do;
//! - [`replica`]: a state and the position it has read to;
//! - [`member`]: a living process on a pool: it numbers its events, sends them again after a lost
//!   answer, and brings back what a store forgot;
//! - [`store`]: where the logs of all pools are, and who is alive;
//! - [`memory`]: the simplest engine.
//!
//! With the feature `conformance`: the suite that a store proves itself with, faults to put in its
//! way, and the runner of golden traces.
//!
//! This crate decides nothing about quotas, waits for nobody, and reads no clock of its own.

pub mod entry;
pub mod error;
mod hash;
pub mod layout;
pub mod log;
pub mod member;
pub mod memory;
pub mod pool;
pub mod replica;
pub mod store;

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "conformance")]
pub mod faulty;
#[cfg(feature = "conformance")]
pub mod trace;

pub use self::error::StoreError;
pub use self::hash::hash;
pub use self::log::{Clock, Log, Mark, Position, Since, Snapshot, Tail};
pub use self::member::Member;
pub use self::memory::{MemoryLog, MemoryStore};
pub use self::pool::{InvalidPoolName, PoolName};
pub use self::replica::Replica;
pub use self::store::{Process, Store};
