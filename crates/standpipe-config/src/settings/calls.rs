//! Calls of an API that the proxy has no built-in rules for: their pool and their cost.

use std::collections::BTreeMap;

use standpipe_core::Unit;
use standpipe_store::PoolName;

#[cfg(feature = "file")]
use crate::keys::{
    calls::{Cost, MethodName, PathPattern},
    form::{Flag, List, Optional},
    names::ParentPool,
};
use crate::pattern;

settings! {
    /// Calls of a provider's API, by path and method.
    pub struct CallSettings, "in calls", check |reader, item, calls| {
        if !calls.counted && (calls.pool.is_some() || !calls.cost.is_empty()) {
            let what = "has counted = false together with a pool or a cost";
            reader.problem_at(item, what, "remove counted = false, or the other two");
        }
    } => {
        /// Patterns of paths, in which `*` matches any text; all paths by default.
        pub paths: Vec<String> = Vec::new(), "paths" as List<PathPattern>;
        /// HTTP methods; all methods by default.
        pub methods: Vec<String> = Vec::new(), "methods" as List<MethodName>;
        /// Pool that the calls use.
        pub pool: Option<PoolName> = None, "pool" as Optional<ParentPool>;
        /// What one call takes of each unit; `requests = 1` is implied.
        pub cost: BTreeMap<Unit, u64> = BTreeMap::new(), "cost" as Cost;
        /// Whether the calls count; `false` forwards them without a lease.
        pub counted: bool = true, "counted" as Flag;
    }
}

impl CallSettings {
    /// Returns whether a call is one of these. The path has no query.
    #[must_use]
    pub fn matches(&self, method: &str, path: &str) -> bool {
        let is_path = |pattern: &String| pattern::matches(pattern, path);
        (self.methods.is_empty() || self.methods.iter().any(|own| own == method))
            && (self.paths.is_empty() || self.paths.iter().any(is_path))
    }
}
