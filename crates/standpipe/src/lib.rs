//! A shared rate limiter for all processes that use one API key.
//!
//! A quota belongs to an API key, not to a process. Every process, worker and agent that uses the
//! key reserves each call here *before* making it, and settles it afterwards. Together they stay
//! under the limits without a server: by default the ledger is a file that all processes of the
//! machine share.
//!
//! # What it guarantees
//!
//! - **Never over a limit**, in any rolling period, over any number of processes, across `kill -9`
//!   at any instant. A call that needs several limits gets all of them or none.
//! - **Nothing leaks.** A dropped [`Lease`] settles itself, a dropped [`Reserving`] leaves neither
//!   a ticket nor a lease (unless the request [keeps its place](Request::keeps_place)), and the
//!   slots of a killed process are free for the next caller.
//! - **In order.** Calls that cannot be made now wait in one queue for all processes, by priority
//!   and then by arrival.
//! - **One pause for everyone.** A 429 that one process reports pauses every process on the pool.
//! - **It fails closed.** While the store is unavailable calls wait, unless the pool is configured
//!   to do otherwise (`on_store_failure`).
//!
//! # The loop
//!
//! Open the tap once, reserve before each call, settle after it. On a thread:
//!
//! ```
//! use standpipe::config::{Settings, StoreUrl};
//! use standpipe::{Limit, Request, Rule, Standpipe};
//!
//! # fn main() -> Result<(), standpipe::Error> {
//! // `Standpipe::open()` reads standpipe.toml and uses the shared file store. This example keeps
//! // its ledger in memory, so that it leaves no files.
//! let tap = Standpipe::builder().settings(Settings::default()).store(StoreUrl::Memory).open()?;
//! let pool = tap.pool("my/slots")?;
//! pool.limit(vec![Limit::new(Rule::Parallel { amount: 2 })]).blocking()?;
//!
//! let lease = pool.reserve(Request::by("blog")).blocking()?;
//! // ... make the call ...
//! lease.commit([]).blocking()?;
//! # Ok(())
//! # }
//! ```
//!
//! In a task, on any runtime:
//!
//! ```
//! use standpipe::{Error, Meaning, Pool, Reply, Request, Unit};
//!
//! # async fn post(_lease: &standpipe::Lease) -> Reply { Reply::new(200) }
//! async fn ask(pool: &Pool) -> Result<Meaning, Error> {
//!     let request = Request::by("blog").unit(Unit::InputTokens.name(), 1_200);
//!     let lease = pool.reserve(request).await?; // waits in order
//!     let reply: Reply = post(&lease).await; // make the call
//!     lease.answered(reply).await // charges its usage; a 429 pauses everyone
//! }
//! ```
//!
//! [`Pool::with_retry`] is this loop with retries.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | [`Standpipe`] | the tap: what a process opens once to reach its pools |
//! | [`Pool`] | one shared quota, named `provider/scope`, with one or more limits |
//! | [`Limit`] | an amount of a unit per period, or a number of calls in flight (`parallel`) |
//! | [`Request`] | who wants to make a call, its cost, and how long it waits |
//! | [`Lease`] | the permission for one call; it holds the call's units until it is settled |
//! | settle | end a lease: [`Lease::commit`], [`Lease::cancel`] or [`Lease::answered`] |
//! | ticket | the place of a call that waits in the queue |
//! | session | one process on one store, for as long as it lives |
//! | store | where the ledger is kept: a directory, a Redis or Valkey server, or memory |
//!
//! # Waiting
//!
//! [`Pool::reserve`] returns a [`Reserving`], most other calls that talk to the store an
//! [`Operation`]. Both do nothing until they are awaited or `blocking` is called. No runtime is
//! needed, and any will do: while a future is polled it never blocks its executor, because a step
//! that would have to wait moves to a thread of the pool. A reserve waits for at most
//! [`Request::timeout`] and then returns [`Error::Refused`] with the reason and, if it is known,
//! the instant at which the call could be made.
//!
//! # What is shared in a process
//!
//! All handles of a process on one store are one session: one replica and one queue of submissions
//! per pool, one maintenance thread per store, and one worker thread per pool for tasks. Threads
//! are started when they are first needed. Callers that submit to a pool at the same time share one
//! step of the store. After a fork the child begins a session of its own; a lease or a wait that it
//! inherited belongs to the parent.
//!
//! # What it never does
//!
//! - It never makes the call, and never sees the API key.
//! - It never sends anything over a network but to its store.
//! - It never retries a call, except in [`Pool::with_retry`] and [`Pool::with_retry_async`].
//! - It never takes a lost ledger for an empty one: it counts as full until it is known again.
//!
//! # Features
//!
//! - `config` (default) reads `standpipe.toml`. Without it, settings come from code.
//! - `redis` (default) adds the store on Redis and Valkey, with TLS.
//! - `openapi` adds schemas of the views, for the daemon.
//!
//! # Reading order
//!
//! 1. `tap`, `pool`, `request`, `lease`: the public surface. `tap/open` chooses the store.
//! 2. `client/`: one `StoreClient` per store and one `PoolClient` per pool and process. Callers
//!    submit actions and take turns at the `Dispatcher`, which alone talks to the store;
//!    `io_worker` takes blocking steps for tasks; `operation` is what the public API returns.
//! 3. `wait/`: one call that waits. Threads and tasks take the same steps (`WaitState`).
//! 4. `maintenance/`: the thread that wakes waiters, sends heartbeats and reports dead sessions.
//! 5. `offline/`: the ledger that decides while the store takes no writes.
//! 6. `provider/`: provider answers, reports and retries.
//! 7. `routing/`: fallback pools, routes by task, and backpressure between agents.
//! 8. `audit`, `doctor`, `snapshot`, `journal`: views. Their texts are in `standpipe-observe`.
//!
//! # The life of one reserve
//!
//! 1. `Pool::reserve` returns a `Reserving`. Nothing is sent.
//! 2. `Reserving::blocking`, or the first poll, creates the `WaitState`: `WaitState::new` checks
//!    the request (`Request::into_reserve`) and finds the pool's client (`Pool::connect`).
//! 3. A thread calls `WaitState::step`, a task `WaitState::try_step`. If that would block,
//!    `Reserving::hand_over` gives the `WaitState` to the pool's `IoWorker` as a `ReserveJob`,
//!    which takes the same steps.
//! 4. `WaitState::submit` collects what to send: the file's configuration and the limits of the
//!    request (`WaitState::configurations`), then the reserve (`WaitState::next_reserve`). Where
//!    the pool must be read first, it submits a read, and `WaitState::prepare` checks the result.
//! 5. `PoolClient::submit` puts the actions into the pool's `SubmitQueue`.
//! 6. `PoolClient::dispatcher` waits for the `Dispatcher`; `PoolClient::try_dispatcher`, for tasks,
//!    does not.
//! 7. `WaitState::receive` calls `Dispatcher::answer`. If another caller has sent the actions
//!    meanwhile, their outcomes are there. Otherwise `Dispatcher::send_batch` takes everything in
//!    the queue, of all callers.
//! 8. `Participant::submit_for` numbers the events and appends them in one step (`Log::append`),
//!    which also returns what other processes appended before.
//! 9. The replica applies all of these in order. `State::apply` decides each, the same in every
//!    process.
//! 10. `Dispatcher::receive` stores the outcomes for their callers; `Dispatcher::publish` notifies
//!     the waiters that they name and writes notices to the journal.
//! 11. `WaitState::decided` continues with the decision. `WaitState::granted` returns the `Lease`.
//!     `WaitState::refuse` returns the refusal, after it has reported dead sessions once if their
//!     units could help.
//! 12. `WaitState::wait` registers the ticket with the `Dispatcher`. The thread sleeps
//!     (`ParkGuard::sleep`), or the task sets a timer (`WaitState::set_timer`). When the instant
//!     has come or another step notifies it, it reads its ticket (`WaitState::looked`) and, if that
//!     is due, claims it with a second reserve: from step 4.
//! 13. `Lease::commit` sends the settlement the same way, through an `Operation`. A dropped lease
//!     is settled by `StoreClient::send_unattended`, which never blocks.

mod audit;
mod built_in;
mod client;
mod doctor;
mod error;
mod home;
mod lease;
mod maintenance;
mod offline;
mod pool;
mod provider;
mod request;
mod routing;
mod snapshot;
mod tap;
mod wait;

pub use standpipe_config as config;
pub use standpipe_config::escape;
pub use standpipe_core::{
    AgentName, Amounts, Configured, Limit, PoolConfig, Priority, Reason, Rule, SEMANTICS, Span,
    ThrottleKind, Unit, Zone,
};
pub(crate) use standpipe_observe::{
    explain, journal, lease_id, refusal as refused, status, time as moment,
};
pub use standpipe_store::{InvalidPoolName, MemoryStore, PoolName, Store, StoreError};

pub use self::client::operation::Operation;
pub use self::config::{ConfigError, Settings, StoreUrl};
pub use self::error::Error;
pub use self::explain::{Advice, Remedy};
pub use self::home::state_directory;
pub use self::lease::{Lease, LeaseHandle};
pub use self::lease_id::{InvalidLeaseId, LeaseId};
pub use self::pool::Pool;
pub use self::provider::reply::{Meaning, Reply};
pub use self::provider::report::{Observation, Throttle};
pub use self::provider::retry::{Attempt, NotServed};
pub use self::provider::streamed::StreamedReply;
pub use self::refused::{Refused, When};
pub use self::request::{DEFAULT_TIMEOUT, Request};
pub use self::status::{Backpressure, PoolStatus, Snapshot};
pub use self::tap::{Builder, Standpipe, named_after};
pub use self::wait::{ReserveAll, Reserving};

/// What a pool can be configured with beyond its limits.
pub mod policy {
    pub use standpipe_core::{
        AgentRule, Backoff, Breaker, Charged, InvalidAmounts, InvalidConfig, LimitId,
        LimitSelector, Margin, Policy, Portion, Reading, Resets, RetryBudget, ReturnWindows, Share,
        Source, TimeRange, Zones,
    };
}

/// Limits and resets as programs print them.
pub mod dialect {
    pub use standpipe_dialect::{
        PrintedLimit, PrintedReset, PrintedTime, printed_limit, printed_reset,
    };
}

/// Views: status, explanations, audits, diagnoses and the journal.
pub mod observe {
    pub use standpipe_observe::amount::{grouped, share};
    pub use standpipe_observe::audit::{
        AgentAudit, AgentRate, Audit, Comparison, LimitAudit, PoolAudit, Rate, Traffic,
    };
    pub use standpipe_observe::doctor::Diagnosis;
    pub use standpipe_observe::explain::{Denial, Explanation, Step, Verdict};
    pub use standpipe_observe::finding::{Finding, Level};
    pub use standpipe_observe::journal::{self, Journal};
    pub use standpipe_observe::refusal::Why;
    pub use standpipe_observe::status::{
        AgentShares, AgentStatus, AgentUsage, ConfigRejected, Delay, Incident, KeptUnits, Label,
        LeaseStatus, LimitStatus, LostLedger, Money, NextReason, OfflineStatus, Origin,
        ParentStatus, Pause, PausedBy, PoolState, ProviderReset, RampStatus, Retries, Stop,
        ThrottleStatus, TicketStatus, Unavailable, Unreadable, reset_if_idle,
    };
    pub use standpipe_observe::time::{InvalidTimestamp, Timestamp, format_ms, format_wait};
    pub use standpipe_store::Process;
}

/// The Rust in the documentation compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Page;
