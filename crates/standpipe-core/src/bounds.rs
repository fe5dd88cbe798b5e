//! Every bound of the ledger in one place, with the reason for the number.
//!
//! Reaching one of these is a clear refusal or a documented fallback, never growth.

use crate::time::Span;

/// Leases in flight in one pool.
pub const LEASES: usize = 4_096;
/// Tickets waiting in one pool.
pub const TICKETS: usize = 4_096;
/// Sessions that hold a lease or a ticket in one pool.
pub const SESSIONS: usize = 4_096;
/// All sessions remembered, also those that hold nothing: every run of the command line is one, and
/// each is kept for [`SILENCE`] so that a late copy of its events is recognised.
pub const SESSIONS_KEPT: usize = 2 * SESSIONS;
/// Agents with a record of their own; further ones count as `other`.
pub const AGENTS: usize = 1_024;
/// Agents a configuration may name.
pub const AGENT_RULES: usize = 256;
/// Limits of one pool, `parallel` among them.
pub const LIMITS: usize = 16;
/// Limits, their paces and the gate: what a ticket can stand in line for. Fits the bits of a `u64`.
pub const LANES: usize = 2 * LIMITS + 1;
/// Different units in one cost.
pub const UNITS: usize = 16;
/// Meters (one per floor or cap of one agent on one limit) in one pool.
pub const METERS: usize = 1_024;
/// Ids whose call has ended that are remembered; the oldest is forgotten first.
pub const IDS: usize = 4_096;
/// Entries a window keeps exactly; from then on they are joined per slice.
pub const WINDOW_EXACT: usize = 512;
/// Slices of a period: what an entry's age can be late by, as a share of the period.
pub const WINDOW_SLICES: u64 = 512;
/// The same two for the meter of one agent, of which there may be many.
pub const METER_EXACT: usize = 32;
/// See [`METER_EXACT`].
pub const METER_SLICES: u64 = 32;
/// The most units one figure may name. Sums over all entries, leases and tickets stay far below
/// `u64::MAX`.
pub const AMOUNT: u64 = 1_000_000_000_000_000;
/// The longest period or wait: 400 days.
pub const SPAN: Span = Span::secs(400 * 86_400);
/// The longest pause a provider's word is believed for.
pub const PAUSE: Span = Span::secs(8 * 86_400);
/// A session that says nothing for so long has ended.
pub const SILENCE: Span = Span::secs(120);
/// An agent is idle, and its floor donated, after this or after one period if that is shorter.
pub const IDLE: Span = Span::secs(30);
/// How often a busy floor owner's refusals are recorded.
pub const REFUSAL_EVERY: Span = Span::secs(10);
/// How often it is recorded that a background agent is denied.
pub const DENIAL_EVERY: Span = Span::secs(60);
/// Histograms of how large calls are; further agents go by those of all.
pub const HISTOGRAMS: usize = 256;
/// Tickets that cannot be served before their deadline are looked at again when units come back,
/// but only so many, so that a crowd of them does not slow everybody's commit down.
pub const TOO_LATE_LOOKS: usize = 8;
/// How many waiters one outcome wakes because their instant moved forward.
pub const WAKE_EARLIER: usize = 8;

const _: () = assert!(LANES <= u64::BITS as usize, "asides are kept as bits of a u64");
const _: () = assert!(AMOUNT.checked_mul((LEASES + TICKETS) as u64).is_some(), "sums must fit");
