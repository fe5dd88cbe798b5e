//! The description of a call: what a ticket and a lease keep of their reserve, unchanged.

use alloc::boxed::Box;

use crate::event::{Key, Owner, Reserve};
use crate::name::{AgentName, PoolRef, Text};
use crate::unit::{Amounts, Unit};

/// The description of a call. [`Reserve`] documents the fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The units it takes, estimates included.
    pub cost: Amounts,
    /// The process whose death ends the lease.
    pub owner: Option<Owner>,
    /// The idempotency id; few calls have one, and leases are moved often.
    pub id: Option<Box<CallId>>,
    /// The model, for views only.
    pub model: Option<Text>,
    /// The task, for views only.
    pub task: Option<Text>,
    /// The call that this one retries.
    pub retry_of: Option<Key>,
    /// The size of the request in bytes.
    pub bytes: Option<u64>,
    /// Whether [`Unit::Tokens`] is the sum of input and output tokens, because the cost did not
    /// name it.
    pub tokens_follow: bool,
    /// The pool that the caller named, if it is another one.
    pub part_of: Option<PoolRef>,
}

/// An idempotency id, scoped to the agent that gave it and to the pool that the agent named. So
/// calls of two pools within this one never repeat each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId {
    /// The name of the agent, as the reserve has it.
    pub agent: AgentName,
    /// The id, as the reserve has it.
    pub id: Text,
    /// The pool that the caller named, if it is another one.
    pub part_of: Option<PoolRef>,
}

impl CallId {
    /// Returns the id of a reserve, if it has one.
    #[must_use]
    pub fn of(reserve: &Reserve) -> Option<Self> {
        let id = reserve.id.clone()?;
        Some(Self { agent: reserve.agent.clone(), id, part_of: reserve.part_of.clone() })
    }
}

impl Call {
    /// Describes a reserve with its completed cost.
    pub(crate) fn of(reserve: &Reserve, cost: Amounts) -> Self {
        Self {
            cost,
            owner: reserve.owner,
            id: CallId::of(reserve).map(Box::new),
            model: reserve.model.clone(),
            task: reserve.task.clone(),
            retry_of: reserve.retry_of,
            bytes: reserve.bytes,
            tokens_follow: reserve.cost.of(&Unit::Tokens).is_none(),
            part_of: reserve.part_of.clone(),
        }
    }
}
