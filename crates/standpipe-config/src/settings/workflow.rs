//! The settings of a workflow.

use standpipe_core::AgentName;

#[cfg(feature = "file")]
use crate::keys::{form::Flag, names::Chain};

settings! {
    /// A chain of agents, each of which works on the output of the one before it.
    pub struct WorkflowSettings, "in a workflow", check |reader, item, workflow| {
        // Names that could not be read count too: they have problems of their own.
        let stated = item.value.get("agents").and_then(|agents| agents.get_ref().as_array());
        if stated.map_or(workflow.agents.len(), |agents| agents.len()) < 2 {
            let remedy = "name at least two: agents = [\"first\", \"second\"]";
            reader.problem_at(item, "a workflow is a chain of agents", remedy);
        }
    } => {
        /// Chain of agents; the first is upstream of all others.
        pub agents: Vec<AgentName> = Vec::new(), "agents" as Chain;
        /// Whether downstream agents wait while an upstream one is throttled.
        pub hold: bool = false, "hold" as Flag;
    }
}
