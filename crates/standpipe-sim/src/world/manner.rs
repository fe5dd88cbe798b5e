//! How an agent goes about its calls: the one thing in which worlds are compared.

use std::fmt::Debug;

use crate::provider::{Call, Reply};

/// A way of calling. Each agent has its own; what several share, they share inside.
///
/// The world asks what to do next with one call, and does it. A call is sent at most once at a
/// time; after each `Send` comes one `replied`, after each `WaitUntil` one `woken`.
pub trait Manner: Debug {
    /// The agent wants to make a call.
    fn wants(&mut self, now: u64, ask: &Ask) -> Step;

    /// A reply has come.
    fn replied(&mut self, now: u64, ask: &Ask, reply: &Reply) -> Step;

    /// The instant has come that it waited for.
    fn woken(&mut self, now: u64, ask: &Ask) -> Step;
}

/// A call that is wanted, as its agent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its number in the world: the same each time it is asked about.
    pub number: usize,
    /// The priority of its agent; 0 is the highest.
    pub priority: u8,
    /// What it is.
    pub call: Call,
}

/// What to do next with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send it to the provider.
    Send,
    /// Ask again at an instant.
    WaitUntil(u64),
    /// It is done.
    Done,
    /// It will not be done.
    GiveUp,
}
