//! Ledgers that are gone although this machine used them, before any call made new ones.
//!
//! Reading such a pool would create its ledger and hide the loss, so the views report the loss
//! instead. After that, [`PoolStatus::learning`] has it.

use serde::{Deserialize, Serialize};
use standpipe_store::PoolName;

use super::PoolStatus;
use crate::time::format_ms;

/// A ledger that was deleted, and that no call has created again yet.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostLedger {
    /// The pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pool: PoolName,
    /// The file that is gone.
    pub file: String,
    /// For how long its slots count as full after the next call.
    pub slots_full_ms: u64,
}

impl LostLedger {
    /// Returns what is wrong: `its ledger FILE is gone`.
    #[must_use]
    pub fn what(&self) -> String {
        format!("its ledger {} is gone", self.file)
    }

    /// Returns what counts as used, and until when.
    #[must_use]
    pub fn effect(&self) -> String {
        format!(
            "the next call makes a new ledger: from then on its slots count as full for {}, and \
             its rates return over one period",
            format_ms(self.slots_full_ms)
        )
    }

    /// Returns what to do, with the condition under which it is safe.
    #[must_use]
    pub fn remedy(&self) -> String {
        reset_if_idle(self.pool.as_str())
    }
}

/// Returns the remedy after a loss. A reset while calls run forgets what they hold until their
/// processes restore it.
#[must_use]
pub fn reset_if_idle(pool: &str) -> String {
    format!("if no call is running: standpipe store reset {pool} --yes")
}

impl PoolStatus {
    /// Whether limits count as full because the store lost the ledger.
    #[must_use]
    pub const fn recovers(&self) -> bool {
        self.learning.is_some() || self.recovering.is_some()
    }

    /// Returns what to do about calls that wait because the store lost the ledger. None if it did
    /// not, or if no limit is full.
    #[must_use]
    pub fn loss_remedy(&self) -> Option<String> {
        let is_full = self.waiting > 0 || self.limits.iter().any(|limit| limit.left == 0);
        (self.recovers() && is_full && self.enforce).then(|| reset_if_idle(self.pool.as_str()))
    }
}
