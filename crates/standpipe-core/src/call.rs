//! What a caller said of its call: kept as it is from the reserve to the end of the lease.

use crate::event::{Key, Owner, Reserve};
use crate::name::Text;
use crate::unit::{Amounts, Unit};

/// What a caller said of its call. See [`Reserve`] for what each is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What it takes.
    pub cost: Amounts,
    /// A process whose death ends it.
    pub owner: Option<Owner>,
    /// What makes it repeatable.
    pub id: Option<Text>,
    /// For the record.
    pub model: Option<Text>,
    /// For the record.
    pub task: Option<Text>,
    /// The call this one tries again.
    pub retry_of: Option<Key>,
    /// How many bytes are sent.
    pub bytes: Option<u64>,
    /// Nobody said how many tokens of both directions it takes: they follow from those of each.
    pub tokens_follow: bool,
}

impl Call {
    /// As it was asked, with the cost that this came to.
    pub(crate) fn of(asked: &Reserve, completed: &Reserve) -> Self {
        let reserve = completed;
        Self {
            cost: reserve.cost.clone(),
            owner: reserve.owner,
            id: reserve.id.clone(),
            model: reserve.model.clone(),
            task: reserve.task.clone(),
            retry_of: reserve.retry_of,
            bytes: reserve.bytes,
            tokens_follow: asked.cost.of(&Unit::Tokens).is_none(),
        }
    }
}
