//! An agent that others depend on is throttled.

use serde::{Deserialize, Serialize};
use standpipe_store::PoolName;

use crate::time::Timestamp;

/// An agent upstream of another one is throttled.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backpressure {
    /// The throttled agent.
    pub agent: String,
    /// The pool it is throttled on.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pool: PoolName,
    /// The end, as far as it is known.
    pub until: Timestamp,
    /// Milliseconds to it.
    pub until_ms: u64,
}
