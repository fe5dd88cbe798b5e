//! The pure ledger of Standpipe: every decision about a shared quota, as a function of events and
//! time.
//!
//! ```
//! use standpipe_core::{
//!     Action, AgentName, Amounts, Answer, Configure, Decision, Event, Instant, Key, Limit,
//!     PoolConfig, Reserve, Rule, Source, Span, State, Unit,
//! };
//!
//! let mut state = State::new();
//! let mut number = 0;
//! let mut send = |action: Action, now: Instant| {
//!     number += 1;
//!     let event = Event { key: Key { session: 7, number }, action };
//!     state.apply(&event, now).answer
//! };
//!
//! // A pool of one request per ten seconds.
//! let rule = Rule::Window { unit: Unit::Requests, amount: 1, period: Span::secs(10) };
//! let config = PoolConfig::new(vec![Limit::new(rule)]);
//! let configure = Configure { source: Source::Code, config };
//! let _ = send(Action::Configure(Box::new(configure)), Instant(0));
//!
//! let call = Reserve::new(AgentName::new("blog").unwrap(), Amounts::cost([]).unwrap());
//! let first = send(Action::from(call.clone()), Instant(0));
//! assert!(matches!(first, Answer::Decided(Decision::Admit(_))));
//!
//! // The second is refused, with the exact instant at which it would be admitted.
//! let second = send(Action::from(call), Instant(3_000_000));
//! let Answer::Decided(Decision::Refuse(refusal)) = second else { panic!() };
//! assert_eq!(refusal.until, Some(Instant(10_000_000)));
//! ```
//!
//! # The contract
//!
//! - [`State::apply`] is the only way to change a ledger. The same events at the same instants give
//!   the same facts and the same outcomes on every machine.
//! - It is total: no event panics, overflows or grows anything beyond [`bounds`].
//! - [`State::peek`] answers without side effects.
//! - A refusal is a value. There are no errors, because nothing here can fail.
//!
//! # What it never does
//!
//! It has no clock, randomness, IO, threads, logging or dependencies. It does not know stores,
//! files or providers. It does not wait: it returns the instant until which to wait.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | facts, state | what a snapshot holds, and that with its indexes |
//! | constraint | something a call can wait for: a limit, the pace of a limit, the gate |
//! | gate | where calls wait for the answers of others, after a pause for example |
//! | tier | all calls of one priority |
//! | line | the tickets that wait for one constraint, in the order of tier and arrival |
//! | earmarked | kept for a ticket that waits for something else as well |
//! | due | a ticket with everything earmarked, which waits to be claimed |
//! | charged, held | what counts from now on; what a call in flight is charged at its end |
//! | margin | the share of a stated rate that is left unused |
//! | calendar window | a limit per day that is reset at a time of day |
//! | ramp | for one period after a pause half of the shortest rates is usable |
//! | kept | units of a limit that floors withhold from other agents |
//!
//! # Where things are
//!
//! | folder | contents |
//! |---|---|
//! | `config` | what was declared, compiled, and changed at run time |
//! | `usage` | charges: histories, buckets, views of them, estimates, prices |
//! | `queue` | the table of tickets, lines, earmarked units, forecasts, promotion |
//! | `lease` | the table of leases, reserve, admission, settlement, sessions, ids |
//! | `rules` | the tables of rules, one file per rule of admission, and their helpers |
//! | `provider` | refusals, pauses, return windows, learned limits, outside use |
//! | `agents` | records of agents, and which tiers are active |
//!
//! # Following one reservation
//!
//! 1. `apply.rs`: [`State::apply`] advances time, checks the session's number, dispatches.
//! 2. `lease/reserve.rs`: the reserve repeats an id, claims a ticket, or is a newcomer.
//! 3. `lease/admission.rs`: the rules of `rules.rs` in their order, then every constraint.
//! 4. Admitted: `lease/grant.rs` charges it; `usage/unit_usage.rs` records the charge wherever it
//!    counts.
//! 5. Refused but willing to wait: `queue/serve.rs` puts its ticket in a line; `queue/forecast.rs`
//!    computes until when. When it is due, its waiter claims it with a second reserve that names
//!    the ticket, and it continues with step 4.
//! 6. Later: `lease/settlement.rs` settles the lease, `advance.rs` applies what time changes, and
//!    `queue/serve.rs` gives what came free to the next tickets.

#![no_std]

extern crate alloc;

pub mod bounds;
mod mul_div;
mod name;
mod splitmix;
mod time;
mod unit;

mod event;
mod id;
mod outcome;

mod agents;
mod config;
mod lease;
mod provider;
mod queue;
mod rules;
mod usage;

mod advance;
mod apply;
mod check;
mod facts;
#[cfg(not(fuzzing))]
mod fuel;
#[cfg(fuzzing)]
pub mod fuel;
mod state;
mod view;

pub use crate::agents::agent::{Agent, Denied, Promoted};
pub use crate::agents::share::{AgentShare, KeptFloor};
pub use crate::check::InvalidFacts;
pub use crate::config::policy::{
    Backoff, CascadeThreshold, Policy, RetryBudget, ReturnWindows, TimeRange, Zones,
};
pub use crate::config::{
    AgentRule, Charged, InvalidConfig, Limit, LimitId, LimitSelector, Margin, Order, PoolConfig,
    Portion, Priority, Resets, Rule, Share,
};
pub use crate::event::{
    Action, CalendarReset, Commit, Configure, Event, Hit, Key, Observed, Owner, Reading, Recovered,
    Reserve, Source, ThrottleKind, Throttled,
};
pub use crate::facts::{Facts, IdRecord, Provenance, Terminal};
pub use crate::id::{AgentId, ConstraintId, ConstraintSet, Id, IdVec, RuleId, UnitId};
pub use crate::lease::call::{Call, CallId};
pub use crate::lease::session::Session;
pub use crate::lease::{Charge, Lease, LeaseOwner};
pub use crate::name::{AgentName, PoolRef, Text, UnitName};
pub use crate::outcome::{
    Answer, Configured, Decision, Grant, LeaseAnswer, Notice, Outcome, Queued, Reason, Reclaim,
    Refusal,
};
pub use crate::provider::auto_margin::AutoMargin;
pub use crate::provider::cascade::{Cascade, Sequential};
pub use crate::provider::learn::{Learned, LearnedConcurrency, LearnedLimit};
pub use crate::provider::ramp::Ramp;
pub use crate::provider::reconcile::{ExternalUsage, RecentLow, Reported};
pub use crate::provider::return_windows::{Probe, Returning};
pub use crate::provider::throttle::{Incident, PauseOrder, Throttling};
pub use crate::queue::ticket::{Phase, QueueKey, Ticket};
pub use crate::rules::breaker::{Advice, Breaker};
pub use crate::rules::retry_budget::RetryUsage;
pub use crate::rules::zone::Zone;
pub use crate::state::{Found, State};
pub use crate::time::{Instant, Span};
pub use crate::unit::{Amounts, InvalidAmounts, Unit};
pub use crate::usage::bucket::Bucket;
pub use crate::usage::calendar::{Calendar, ResetRange};
pub use crate::usage::counter::{Began, Count, Reset, ResetPhase, UsageCounter};
pub use crate::usage::history::{History, HistoryEntry};
pub use crate::usage::money::Spending;
pub use crate::usage::size_histogram::{SizeHistogram, SizeKey};
pub use crate::usage::unit_usage::{AgentUnitUsage, UnitUsage};
pub use crate::view::{AdmissionSteps, AgentLimitUsage, LimitUsage, RampUsage};

/// Changes whenever the same events would give another outcome or another layout. Binaries of equal
/// semantics may share a pool.
pub const SEMANTICS: u32 = 13;
