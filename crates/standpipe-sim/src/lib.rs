//! A virtual world for Standpipe: a provider that enforces its limits, and agents that call it.
//!
//! ```
//! use standpipe_sim::{Arrival, Call, Provider, Rule, Shape, Unit, Used};
//!
//! // One request a minute, with Anthropic's replies.
//! let rule = Rule::Rolling { unit: Unit::Requests, amount: 1, period: 60_000_000 };
//! let mut provider = Provider::new(Shape::Anthropic, vec![rule], 7);
//!
//! let call = Call { input: 1_000, ..Call::default() };
//! let Arrival::Accepted(id) = provider.arrive(0, &call) else { panic!() };
//! assert_eq!(provider.finish(2_000_000, id, Used::default()).status, 200);
//!
//! let Arrival::Refused(reply) = provider.arrive(3_000_000, &call) else { panic!() };
//! assert_eq!(reply.status, 429);
//! assert_eq!(reply.header("retry-after"), Some("57"));
//! ```
//!
//! # The contract
//!
//! - Nothing but `socket` reads a clock or starts a thread, and nothing draws from entropy: time is
//!   an argument, in microseconds since the start of the world, and chance comes from a seed. The
//!   same world runs the same way every time.
//! - Everything is counted in integers.
//! - Replies have the headers and bodies that the real providers send, so that what reads them
//!   here reads them there.
//!
//! # Reading order
//!
//! `provider/rule` (what is enforced), `provider/meter` (how it is counted), `provider` (a call
//! arrives and finishes), `provider/shape` (the replies of each real provider); then
//! `world/strategy` (how an agent calls), `world` (the event loop) and `world/report` (the result
//! of a run); then `shared_ledger` and `world/coordinated` (the agents that use it). `socket`
//! serves the same provider to real processes: see [`ProviderServer`].

mod calendar;
mod provider;
mod random;
mod shared_ledger;
mod socket;
mod world;

pub use crate::provider::{
    Arrival, Call, CallId, Cap, Options, Output, Provider, Record, Reply, RetryAfter, Rule, Seen,
    Shape, Unit, Used, Verdict,
};
pub use crate::random::Random;
pub use crate::shared_ledger::{DecisionRecord, SharedLedger};
pub use crate::socket::{Clock, Logged, ManualClock, ProviderServer, RealClock, ServerOptions};
pub use crate::world::{
    Agent, AgentReport, CallContext, ClientOptions, Coordinated, CostHint, Network, Pattern,
    PlannedCall, Report, Retries, Step, Strategy, Uncoordinated, WaitMode, Wave, Work, World,
};
