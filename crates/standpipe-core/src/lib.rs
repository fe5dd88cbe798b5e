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
//! // The second is told exactly when it will be admitted.
//! let second = send(Action::from(call), Instant(3_000_000));
//! let Answer::Decided(Decision::Refuse(refusal)) = second else { panic!() };
//! assert_eq!(refusal.until, Some(Instant(10_000_000)));
//! ```
//!
//! # The contract
//!
//! - [`State::apply`] is the only way anything changes. The same events at the same instants give
//!   the same facts and the same outcomes, on every machine.
//! - It is total: no event, however odd, panics, overflows or grows anything beyond [`bounds`].
//! - [`State::peek`] answers without changing anything.
//! - A refusal is a value. There are no errors here, because nothing here can fail.
//!
//! # What it does not do
//!
//! It has no clock, no randomness, no IO, no threads, no logging and no dependencies. It does not
//! know stores, files or providers. It does not wait: it says until when.
//!
//! # Reading order
//!
//! `event` and `outcome` (what goes in and out), `facts` (what is known), `judge` (the admission
//! rule), `serve` (how tickets move), `advance` (what time brings), `apply` (where it comes
//! together).

#![no_std]

extern crate alloc;

pub mod bounds;
mod name;
mod time;
mod unit;

mod config;
mod event;
mod outcome;
mod policy;

mod bucket;
mod tally;
mod window;

mod agent;
mod call;
mod facts;
mod lease;
mod outlook;
mod session;
mod sizes;
mod ticket;
mod trouble;

mod plan;
mod state;

mod endings;
mod floor;
mod judge;
mod kept;
mod until;

mod admit;
mod agents;
mod ids;
mod reserve;
mod serve;
mod sessions;
mod settle;

mod configure;
mod observe;
mod precedence;

mod activity;
mod breaker;
mod estimate;
mod headroom;
mod money;
mod promote;
mod reconcile;
mod yields;
mod zone;

mod answered;
mod cascade;
mod comeback;
mod gate;
mod learn;
mod mix;
mod retries;
mod stop;
mod throttle;

mod advance;
mod apply;
mod check;
mod view;

pub use crate::agent::{Agent, AgentId, Denied, Promoted};
pub use crate::breaker::{Advice, Breaker};
pub use crate::bucket::{Bucket, BucketFacts, Missing};
pub use crate::call::Call;
pub use crate::check::InvalidFacts;
pub use crate::config::{
    AgentRule, Charged, Headroom, InvalidConfig, Limit, LimitId, Of, PoolConfig, Portion, Priority,
    Resets, Rule, Share,
};
pub use crate::event::{
    Action, Commit, Configure, Event, Hit, Key, Observed, Owner, Reading, Recovered, Reserve,
    Source, ThrottleKind, Throttled,
};
pub use crate::facts::{Facts, Known, Provenance, Terminal};
pub use crate::lease::{Charge, Holder, Lease, Target};
pub use crate::name::{AgentName, Text, UnitName};
pub use crate::outcome::{
    Answer, Configured, Decision, Grant, Hold, LeaseAnswer, Notice, Outcome, Reason, Reclaim,
    Refusal,
};
pub use crate::outlook::{Low, Measure, Outlook, Outside, Warmth, Zone};
pub use crate::policy::{Backoff, Policy, RetryBudget, ReturnWindows, Stretch, Zones};
pub use crate::session::Session;
pub use crate::sizes::Sizes;
pub use crate::state::{Found, State};
pub use crate::tally::{Count, Reset, ResetPhase, Tally};
pub use crate::ticket::{Phase, Place, Ticket};
pub use crate::time::{Instant, Span};
pub use crate::trouble::{Bears, Incident, Probe, Ramp, Sequential, Told, Trouble};
pub use crate::unit::{Amounts, InvalidAmounts, Unit};
pub use crate::view::{Figures, Laid};
pub use crate::window::{Entry, Grain, Window};

/// Changes whenever the same events would give another outcome or another layout. Binaries of equal
/// semantics may share a pool.
pub const SEMANTICS: u32 = 4;
