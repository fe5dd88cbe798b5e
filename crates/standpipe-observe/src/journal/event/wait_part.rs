//! The part of a wait that has a reason of its own.

use serde::{Deserialize, Serialize};

/// What calls waited for besides the reason of their event, and how long.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitPart {
    /// Why.
    pub reason: String,
    /// The limit they waited for, if it was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<String>,
    /// How long, all together.
    pub waited_ms: u64,
}

impl WaitPart {
    /// The most parts of an event. What comes later is left out.
    const MAX: usize = 8;

    /// Adds the parts of another event.
    pub(in crate::journal) fn add(parts: &mut Vec<Self>, more: &[Self]) {
        for part in more {
            let is_its =
                |known: &Self| (&known.reason, &known.limit) == (&part.reason, &part.limit);
            let known = parts.iter().position(is_its).and_then(|at| parts.get_mut(at));
            if let Some(known) = known {
                known.waited_ms = known.waited_ms.saturating_add(part.waited_ms);
            } else if parts.len() < Self::MAX {
                parts.push(part.clone());
            }
        }
    }
}
