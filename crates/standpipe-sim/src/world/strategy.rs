//! How an agent makes its calls. Runs of a world are compared by strategy.

use std::fmt::Debug;

use crate::provider::{Call, Reply};

/// Decides the next step of each call of an agent.
///
/// The world asks for the next step of one call and takes it. A call is sent at most once at a
/// time. Each `Send` is followed by one `on_reply` and each `WaitUntil` by one `on_wake`, unless
/// the agent is killed before.
pub trait Strategy: Debug {
    /// The agent begins a call.
    fn begin(&mut self, now: u64, ask: &CallContext) -> Step;

    /// The reply to a call arrived.
    fn on_reply(&mut self, now: u64, ask: &CallContext, reply: &Reply) -> Step;

    /// The instant of a `WaitUntil` has come.
    fn on_wake(&mut self, now: u64, ask: &CallContext) -> Step;

    /// Takes the calls, of any agent, to wake now instead of at the instant they wait for. The
    /// world asks after every step and ignores calls that do not wait.
    fn take_wakeups(&mut self) -> Vec<usize> {
        Vec::new()
    }

    /// The agent was killed.
    fn on_kill(&mut self, _now: u64) {}
}

/// A call as its agent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallContext {
    /// The number of the call in the world.
    pub number: usize,
    /// The number of the pool.
    pub pool: usize,
    /// The priority of its agent; 0 is the highest.
    pub priority: u8,
    /// The request.
    pub call: Call,
}

/// The next step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send it to the provider.
    Send,
    /// Wait until an instant, then ask for the next step.
    WaitUntil(u64),
    /// The call succeeded.
    Done,
    /// The agent gives the call up.
    GiveUp,
}
