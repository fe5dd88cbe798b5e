//! Rejects limits whose unit is misspelled: they would limit nothing, and no one would notice.

use standpipe_config::nearest;
use standpipe_config::text::KNOWN_UNITS;
use standpipe_core::{Amounts, Limit, Unit};

use crate::error::Error;

/// Rejects a limit of a unit that the call does not use and that resembles a built-in one.
///
/// A unit that resembles none may be used by other calls of the pool.
pub(crate) fn check(limits: &[Limit], cost: &Amounts) -> Result<(), Error> {
    for limit in limits {
        let id = limit.id();
        let Some(unit @ Unit::Other(_)) = id.unit() else { continue };
        let near = nearest(unit.name(), KNOWN_UNITS.into_iter().chain(["parallel"]));
        if let Some(near) = near.filter(|_| cost.of(unit).is_none()) {
            return Err(Error::invalid(
                format!("the limit of `{unit}` limits nothing: the call uses no `{unit}`"),
                format!("did you mean `{near}`? Otherwise name `{unit}` in the cost of the call"),
            ));
        }
    }
    Ok(())
}
