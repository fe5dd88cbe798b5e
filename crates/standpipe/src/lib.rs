//! One tap for everything that shares an API quota.
//!
//! A quota belongs to an API key, not to a process. Every process, worker and agent that draws on
//! it asks here *before* it calls, and together they stay under the limit: in order, exactly, and
//! with nothing lost when one of them is killed.
//!
//! ```
//! use standpipe::config::{Settings, StoreUrl};
//! use standpipe::{Limit, Request, Rule, Standpipe};
//!
//! # fn main() -> Result<(), standpipe::Error> {
//! // Nothing to start: by default the ledger is a file that all processes of the machine share.
//! // Here it is kept in memory, so that the example leaves nothing behind.
//! let tap = Standpipe::builder().settings(Settings::default()).store(StoreUrl::Memory).open()?;
//! let pool = tap.pool("my/slots")?;
//! pool.limit(vec![Limit::new(Rule::Parallel { amount: 2 })])?;
//!
//! let lease = pool.reserve(Request::by("blog")).blocking()?;
//! // ... make the call ...
//! lease.commit([])?;
//! # Ok(())
//! # }
//! ```
//!
//! # Words
//!
//! A [`Pool`] is one shared quota. A [`Request`] says who asks for what. Granted, it is a
//! [`Lease`], which is settled with what was used ([`Lease::commit`]), given back if the call was
//! never sent ([`Lease::cancel`]), or settled at its estimate when it is dropped. A call that
//! cannot be made now waits in order; its place is a ticket.
//!
//! # Waiting
//!
//! [`Pool::reserve`] answers a [`Reserving`]: `.await` it on any runtime, or call
//! [`Reserving::blocking`] without one. Dropping it at any moment leaves nothing behind.
//!
//! # What is shared
//!
//! All handles of one process on one store are one session: one replica per pool, one thread that
//! wakes and beats, started when it is first needed. After a fork the child's handles begin a
//! session of their own, and a lease carried over stays the parent's.
//!
//! # Reading order
//!
//! 1. `tap`, `pool`, `request`, `lease`: what people hold. `tap/open` chooses the engine.
//! 2. `reserving`, `reserving/waiting`: one call that asks and waits, the same steps for a blocked
//!    thread and a polled future. Dropped at any moment, it leaves nothing behind.
//! 3. `desk`: one per pool and process; callers share its participant, and one append carries what
//!    all of them want. `clerk` does that for tasks where the store is across a network. `offline`
//!    is the ledger used while the store takes no writes; it hands over each call once.
//! 4. `keeper`: the one thread. It wakes waiters, sends heartbeats, reports dead sessions.
//! 5. `registry`, `session`: all handles of a process on one store are one session.
//! 6. `advice`, `route`, `reply`, `retry`, `workflow`: fallbacks, provider answers, retries,
//!    back-pressure.
//! 7. `config`, `status`, `explain`, `journal`, `audit`, `doctor`: configuration and views.
//!    `escape` makes text from outside safe to show; every printer uses it.

mod advice;
mod anchor;
mod audit;
mod bell;
mod built_in;
mod clerk;
pub mod config;
mod dead;
mod desk;
mod doctor;
mod engine;
mod error;
pub mod escape;
mod explain;
mod finding;
mod hearsay;
mod home;
pub mod journal;
mod keeper;
mod lease;
mod lease_id;
mod moment;
mod notices;
mod offline;
mod owner;
mod pool;
mod refused;
mod registry;
mod reply;
mod report;
mod request;
mod reserve_all;
mod reserving;
mod retry;
mod route;
#[cfg(feature = "openapi")]
mod schemas;
mod session;
mod shared;
mod snapshot;
mod status;
mod tap;
mod when;
mod workflow;

pub use standpipe_core::{
    AgentName, AgentRule, Amounts, Backoff, Breaker, Charged, Configured, InvalidAmounts,
    InvalidConfig, Limit, LimitId, LimitSelector, Margin, Policy, PoolConfig, Portion, Priority,
    Reading, Reason, Resets, RetryBudget, ReturnWindows, Rule, Share, Source, Span, ThrottleKind,
    TimeRange, Unit, Zone, Zones,
};
pub use standpipe_dialect::{
    PrintedLimit, PrintedReset, PrintedTime, printed_limit, printed_reset,
};
pub use standpipe_store::{InvalidPoolName, MemoryStore, PoolName, Process, Store, StoreError};

pub use self::advice::{Advice, Remedy};
pub use self::audit::{
    AgentAudit, AgentRate, Audit, Comparison, LimitAudit, PoolAudit, Rate, Traffic,
};
pub use self::config::{ConfigError, Settings, StoreUrl};
pub use self::doctor::Diagnosis;
pub use self::error::Error;
pub use self::explain::{Explanation, No, Step, Verdict};
pub use self::finding::{Finding, Level};
pub use self::home::state_directory;
pub use self::journal::Journal;
pub use self::lease::{Lease, LeaseHandle, Settling};
pub use self::lease_id::{InvalidLeaseId, LeaseId};
pub use self::moment::{InvalidMoment, Moment};
pub use self::pool::Pool;
pub use self::refused::Refused;
pub use self::reply::{Meaning, Reply};
pub use self::report::{Observation, Throttle};
pub use self::request::{DEFAULT_TIMEOUT, Request};
pub use self::reserve_all::ReserveAll;
pub use self::reserving::Reserving;
pub use self::retry::{Attempt, NotServed};
pub use self::snapshot::{Snapshot, Unreadable};
pub use self::status::{
    AgentStatus, Away, Incident, LeaseStatus, LimitStatus, Money, Origin, Pause, PoolStatus,
    Retries, Stop, TicketStatus, Trouble, Word,
};
pub use self::tap::{Builder, Standpipe, named_after};
pub use self::when::When;
pub use self::workflow::Backpressure;

/// The Rust in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
