//! What holds up a pool that others lie within.

use serde::{Deserialize, Serialize};

use super::{Pause, Stop};

/// A pool that is paused or stopped, as the pools within it show it.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ParentStatus {
    /// Its name.
    pub pool: String,
    /// No call is admitted before then.
    pub pause: Option<Pause>,
    /// Set while the provider has stopped it.
    pub terminal: Option<Stop>,
}
