//! The views of Standpipe: journal, usage, status, explain, audit and doctor.
//!
//! A view turns data into plain values that people read and programs parse. The same values are
//! shown by the command line, the daemon, the dashboard and the metrics, so that all of them agree.
//!
//! ```
//! use standpipe_core::{
//!     Action, AgentName, Amounts, Configure, Event, Instant, Key, Limit, PoolConfig, Reserve,
//!     Rule, Source, State,
//! };
//! use standpipe_observe::explain::Explanation;
//! use standpipe_observe::status::{PoolStatus, VerdictKind};
//! use standpipe_observe::time::Now;
//!
//! // A pool with one slot. The library reads this state from a store.
//! let config = PoolConfig::new(vec![Limit::new(Rule::Parallel { amount: 1 })]);
//! let configure = Action::Configure(Box::new(Configure { source: Source::Code, config }));
//! let call = Reserve::new(AgentName::new("blog").unwrap(), Amounts::cost([]).unwrap());
//! let mut state = State::new();
//! for (number, action) in (1..).zip([configure, Action::from(call.clone())]) {
//!     let _ = state.apply(&Event { key: Key { session: 7, number }, action }, Instant(0));
//! }
//!
//! let (pool, now) = ("my/slots".parse().unwrap(), Now::at(Instant(0)));
//! let status = PoolStatus::of(&pool, &state, &now, &|_session| None);
//! assert_eq!((status.in_flight, status.limits[0].left), (1, 0));
//!
//! let second = Explanation::of(&pool, &state, &call, &now, &|_session| None).unwrap();
//! assert_eq!(second.verdict, VerdictKind::Refused);
//! assert_eq!(second.why.unwrap().waiting_for(), Some("a call in flight to end"));
//! ```
//!
//! # What it is for
//!
//! | view | from | answers |
//! |---|---|---|
//! | [`status`] | a ledger's state | what is used, in flight, queued and paused now |
//! | [`explain`] | a ledger's state and a call | which rules deny the call, and until when |
//! | [`refusal`] | a refusal of the ledger | why a call was not admitted, and when to retry |
//! | [`journal`] | files | what happened, and what agents used |
//! | [`audit`] | the journal and statuses | each agent's rate against the quota, and the risks |
//! | [`doctor`] | a [`doctor::Scene`] | what is wrong with configuration, store and callers |
//!
//! # What it never does
//!
//! It opens no store, appends to no ledger, decides about no call and knows no engine. The library
//! gathers what there is to see and passes it in; a function of this crate returns the same values
//! for the same arguments. The exceptions are [`journal`], which reads and appends its own files,
//! and [`time`], which reads the clocks. Nothing here prints, and no value holds a secret.
//!
//! # What stays the same
//!
//! Serialised forms are an interface: the lines of the journal, the JSON of every view and the text
//! of a [`lease_id::LeaseId`]. A reader accepts lines and names of older and newer versions, see
//! [`status::Label`].
//!
//! # Reading order
//!
//! 1. [`time`]: timestamps, lengths, and how a store's clock maps to them. [`lease_id`]: what a
//!    lease is called outside the process.
//! 2. [`refusal`] with `when`: the exact instant, a lower bound, or the event that must happen
//!    first.
//! 3. [`status`]: `read` computes it, `label` has the enums.
//! 4. [`explain`] with `advice`.
//! 5. [`journal`]: `event` is the format; `writer`, `batch` and `files` write; `follow` and
//!    `cursor` read.
//! 6. [`finding`], then [`audit`] and [`doctor`], which return findings.
//!
//! `compat` holds earlier names for code that has not moved to the present ones.

pub mod amount;
pub mod audit;
pub mod doctor;
pub mod explain;
pub mod finding;
pub mod journal;
pub mod lease_id;
mod others;
pub mod pool_set;
pub mod refusal;
#[cfg(feature = "openapi")]
mod schemas;
pub mod status;
#[cfg(test)]
mod testing;
pub mod time;
