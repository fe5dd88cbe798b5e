//! Checks what a caller reports of a call.

use standpipe_core::{Amounts, Unit};

use crate::error::Error;

/// Checks the amounts of a commit.
pub(crate) fn amounts(used: impl IntoIterator<Item = (Unit, u64)>) -> Result<Amounts, Error> {
    let used = Amounts::new(used).map_err(|wrong| {
        Error::invalid(
            format!("invalid usage: {wrong}"),
            "name each unit once, with what the call used so far",
        )
    })?;
    if used.of(&Unit::Parallel).is_some() {
        return Err(Error::invalid(
            "invalid usage: slots of `parallel` are not used up",
            "leave it out; a call holds its slots until it ends",
        ));
    }
    Ok(used)
}
