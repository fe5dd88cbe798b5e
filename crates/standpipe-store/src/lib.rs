//! What all stores of Standpipe share: the log contract, the replica, the byte layout, the
//! participant and the conformance suite.
//!
//! # Contract
//!
//! A pool is a deterministic state machine over an ordered log. Every process keeps a replica of
//! the pool's state. To decide, a process appends its event in one atomic step that stamps it with
//! the engine's clock and returns the entries that others appended since. The process applies
//! those, then its own, and has its outcome. Replicas at the same position have the same state,
//! byte for byte.
//!
//! So all policies live in the core, and an engine only orders and stamps. An engine implements two
//! traits:
//!
//! - [`Log`]: the log of one pool. Append, read, snapshot.
//! - [`Store`]: the pools, the sessions and their liveness, waiting and waking.
//!
//! # The loop of a process
//!
//! A [`Participant`] runs the protocol: it numbers events, sends them again after a lost answer and
//! restores its own events when the store has lost entries.
//!
//! ```
//! use std::sync::Arc;
//!
//! use standpipe_core::{
//!     Action, AgentName, Amounts, Answer, Commit, Configure, Decision, Instant, Limit, PoolConfig,
//!     Reserve, Rule, Source,
//! };
//! use standpipe_store::participant::random_session;
//! use standpipe_store::{MemoryLog, Participant};
//!
//! let log = MemoryLog::new(Arc::new(|| Instant(1_000_000)));
//! let mut participant = Participant::new(log, random_session);
//! let config = PoolConfig::new(vec![Limit::new(Rule::Parallel { amount: 1 })]);
//! let configure = Configure { source: Source::Code, config };
//! participant.submit(vec![Action::Configure(Box::new(configure))])?;
//!
//! let agent = AgentName::new("blog").unwrap();
//! let reserve = Reserve::new(agent, Amounts::cost([]).unwrap());
//! let mut submitted = participant.submit(vec![Action::Reserve(Box::new(reserve))]);
//! // After a transient error it is unknown whether the store has the event. Resending is safe.
//! while submitted.as_ref().is_err_and(|error| error.is_transient()) {
//!     submitted = participant.resend();
//! }
//! let Answer::Decided(Decision::Admit(grant)) = &submitted?[0].answer else { unreachable!() };
//! let used = Amounts::default();
//! let commit = Commit { lease: grant.lease, used, progress: false, refused: false };
//! participant.submit(vec![Action::Commit(commit)])?;
//! # Ok::<(), standpipe_store::StoreError>(())
//! ```
//!
//! # What this crate never does
//!
//! It decides nothing about quotas, waits for nothing, starts no thread and reads no clock for a
//! decision: stamps come from the engine.
//!
//! # Reading order
//!
//! - [`log`]: the contract of an engine;
//! - [`entry`], [`layout`]: an event as bytes, with stamp and checksum;
//! - [`replica`]: a state and the position it has read to;
//! - [`participant`]: a process on a pool, and the protocol it follows;
//! - [`store`]: pools, sessions and liveness;
//! - [`memory`]: the simplest engine;
//! - [`engine`]: parts for engines, such as the marker of a pool and messages.
//!
//! The feature `conformance` adds the suite that every engine must pass (`conformance`), injected
//! faults (`fault_injection`) and the runner of golden traces (`trace`).

pub mod engine;
pub mod entry;
pub mod error;
mod hash;
pub mod layout;
pub mod log;
pub mod memory;
pub mod participant;
pub mod pool;
pub mod replica;
pub mod store;

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "conformance")]
pub mod fault_injection;
#[cfg(feature = "conformance")]
pub mod trace;

pub use self::error::{StoreError, plain_io};
pub use self::hash::hash;
pub use self::log::{Appended, Clock, Log, LogRead, Position, Snapshot, SnapshotId, Tail};
pub use self::memory::{MemoryLog, MemoryStore};
pub use self::participant::Participant;
pub use self::pool::{InvalidPoolName, PoolName};
pub use self::replica::Replica;
pub use self::store::{Liveness, Process, Store};
