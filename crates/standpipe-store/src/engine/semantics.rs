//! Logs that programs with other semantics wrote: to this program their events mean something else.
//!
//! A log of a newer program is never touched. A log of an older one may be replaced once no older
//! program uses it. The engine then keeps it under another name and starts one whose limits count
//! as full.

use standpipe_core::{SEMANTICS, Span, bounds};

use crate::error::StoreError;
use crate::pool::PoolName;

/// Rejects a log that a newer program wrote.
///
/// # Errors
/// When `theirs` is above this program's semantics.
pub fn reject_newer(pool: &PoolName, theirs: u32) -> Result<(), StoreError> {
    if theirs <= SEMANTICS {
        return Ok(());
    }
    Err(StoreError::incompatible(format!(
        "`{pool}` is used by a newer Standpipe (semantics {theirs}, this one {SEMANTICS}); update \
         this one"
    )))
}

/// Rejects a log that a newer program wrote, or that an older one wrote to in the last two minutes.
///
/// This is the test of an engine that cannot see all processes: a session that was silent for that
/// long has ended.
///
/// # Errors
/// When the log must not be replaced.
pub fn reject_in_use(pool: &PoolName, theirs: u32, silent: Span) -> Result<(), StoreError> {
    reject_newer(pool, theirs)?;
    if silent >= bounds::SILENCE {
        return Ok(());
    }
    Err(StoreError::incompatible(format!(
        "`{pool}` was used by an older Standpipe {} s ago (semantics {theirs}, this one \
         {SEMANTICS}); update or stop it everywhere, then wait until the pool was silent for 2 min",
        silent.0 / 1_000_000
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_silent_log_of_an_older_program_may_be_replaced() {
        let pool: PoolName = "a/b".parse().unwrap();
        let almost = Span(bounds::SILENCE.0 - 1);
        for (theirs, silent, allowed) in [
            (SEMANTICS - 1, bounds::SILENCE, true),
            (SEMANTICS - 1, almost, false),
            (SEMANTICS + 1, bounds::SILENCE, false),
        ] {
            let result = reject_in_use(&pool, theirs, silent);
            assert_eq!(result.is_ok(), allowed, "{theirs} {silent:?}");
        }
        assert!(reject_newer(&pool, SEMANTICS + 1).is_err_and(|error| error.is_incompatible()));
    }
}
