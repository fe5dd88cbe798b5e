//! All bounds of the state, with the reason for each number.
//!
//! Reaching a bound causes a clear refusal or a documented fallback. The state never grows beyond.

use crate::time::Span;

/// The number of leases in flight in one pool.
pub const LEASES: usize = 4_096;
/// The number of tickets in one pool.
pub const TICKETS: usize = 4_096;
/// The number of sessions in one pool that have a lease or a ticket.
pub const SESSIONS: usize = 4_096;
/// The number of all remembered sessions, including idle ones. Every run of the command line is a
/// session and is kept for [`SILENCE`], so that a late duplicate of its events is recognised.
pub const SESSIONS_KEPT: usize = 2 * SESSIONS;
/// The number of agents with a record of their own; further agents share the record `other`.
pub const AGENTS: usize = 1_024;
/// The number of all agent records. Configured agents get one even beyond [`AGENTS`].
pub const AGENT_RECORDS: usize = AGENTS + AGENT_RULES;
/// The number of agents that a configuration may name.
pub const AGENT_RULES: usize = 256;
/// The largest weight of an agent in fair order.
pub const WEIGHT: u16 = 1_000;
/// The number of limits of one pool, `parallel` included.
pub const LIMITS: usize = 16;
/// The number of constraints that a ticket can wait for: limits, their paces and the gate. Sets of
/// constraints are bits of a `u64`.
pub const CONSTRAINTS: usize = 2 * LIMITS + 1;
/// The number of different units in one cost.
pub const UNITS: usize = 16;
/// The number of agent usage counters in one pool: one per agent, limit, and floor or cap.
pub const AGENT_USAGES: usize = 1_024;
/// The number of ids of ended calls that are remembered; the oldest is evicted first.
pub const IDS: usize = 4_096;
/// The number of charges of a period that a history keeps exactly, and of the slices in which
/// further ones are merged. A merged charge expires at most one slice late.
pub const WINDOW_SLICES: u64 = 512;
/// [`WINDOW_SLICES`] for the history of one agent, of which there can be many.
pub const AGENT_SLICES: u64 = 32;
/// The number of periods for which a history has slices of their own; the others use finer ones.
pub const UNIT_PERIODS: usize = 8;
/// The number of units whose charges are remembered; units with a limit come first.
pub const UNIT_HISTORIES: usize = 64;
/// The number of histories of agents, one per agent and unit; further agents have none.
pub const AGENT_HISTORIES: usize = 2_048;
/// The largest amount of one unit. Sums over all entries, leases and tickets stay far below
/// `u64::MAX`.
pub const AMOUNT: u64 = 1_000_000_000_000_000;
/// The longest period or wait: 400 days.
pub const SPAN: Span = Span::secs(400 * 86_400);
/// The longest pause that a provider may ask for; a longer one is ignored.
pub const PAUSE: Span = Span::secs(8 * 86_400);
/// The silence after which an idle session is forgotten, and after which a session that has leases
/// or tickets may be reported as ended if its process cannot be tested.
pub const SILENCE: Span = Span::secs(120);
/// The shortest time for the claim of a ticket, as a part of the configured one: 50 ms of 2 s.
pub(crate) const SHORTEST_CLAIM: u64 = 40;
/// The time after which an agent is idle and its floor is available to others, unless the period of
/// the limit is shorter.
pub const IDLE: Span = Span::secs(30);
/// The interval at which refusals of a busy floor owner are recorded.
pub const REFUSAL_EVERY: Span = Span::secs(10);
/// The interval at which denials of a background agent are recorded.
pub const DENIAL_EVERY: Span = Span::secs(60);
/// The number of size histograms; further agents use the pool's histograms.
pub const HISTOGRAMS: usize = 256;
/// The number of too-late tickets that are checked again when units are returned. A larger number
/// would let a crowd of hopeless tickets slow down every commit.
pub const TOO_LATE_LOOKS: usize = 8;
/// The number of waiters that one outcome wakes because their instant moved forward.
pub const WAKE_EARLIER: usize = 8;
/// The number of tickets at the front of a line among which fair order looks for another agent.
pub(crate) const FAIR_LOOKS: usize = 64;

/// The rounds of a loop that forecasts: each round, a floor owner goes idle or an entry expires.
pub(crate) const LOOK_AHEAD: usize = 1 << 14;
/// The timed changes between two events: each entry, lease and ticket once, and its consequences.
pub(crate) const CHANGES: usize = 1 << 18;

const _: () = assert!(CONSTRAINTS <= u64::BITS as usize, "earmarks are kept as bits of a u64");
const _: () = assert!(AMOUNT.checked_mul((LEASES + TICKETS) as u64).is_some(), "sums must fit");
