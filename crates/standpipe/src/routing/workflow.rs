//! Workflows: chains of agents in which each works on the output of the one before it.
//!
//! All chains together form a graph. When an agent is throttled on any pool, every agent downstream
//! receives that with its next answer; with `hold` in the workflow they wait. `backpressure_log`
//! stores who is throttled.

use std::collections::{BTreeMap, BTreeSet};

use standpipe_core::AgentName;
pub(crate) use standpipe_observe::status::Backpressure;

use crate::config::Settings;

/// The chains of all workflows, as one graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Graph {
    /// By agent: every agent upstream, direct or not, and whether it is held for them.
    upstream: BTreeMap<AgentName, BTreeMap<AgentName, bool>>,
    /// The agents that have others downstream.
    feeders: BTreeSet<AgentName>,
}

impl Graph {
    pub(crate) fn of(settings: &Settings) -> Self {
        let mut graph = Self::default();
        for workflow in settings.workflows.values() {
            for pair in workflow.agents.windows(2) {
                if let [before, after] = pair {
                    let known = graph.upstream.entry(after.clone()).or_default();
                    *known.entry(before.clone()).or_default() |= workflow.hold;
                    graph.feeders.insert(before.clone());
                }
            }
        }
        graph.add_transitive();
        graph
    }

    /// Adds the agents that are upstream through others. The last link decides about `hold`. Chains
    /// may form cycles, but no agent is upstream of itself.
    fn add_transitive(&mut self) {
        loop {
            let mut more = Vec::new();
            for (agent, known) in &self.upstream {
                for (near, hold) in known {
                    let far = self.upstream.get(near).into_iter().flat_map(BTreeMap::keys);
                    for far in far.filter(|far| *far != agent) {
                        if known.get(far).is_none_or(|held| *hold && !held) {
                            more.push((agent.clone(), far.clone(), *hold));
                        }
                    }
                }
            }
            if more.is_empty() {
                return;
            }
            for (agent, far, hold) in more {
                *self.upstream.entry(agent).or_default().entry(far).or_default() |= hold;
            }
        }
    }

    /// Returns whether agents are downstream of this one.
    pub(crate) fn feeds(&self, agent: &AgentName) -> bool {
        self.feeders.contains(agent)
    }

    /// Returns every agent upstream of this one, and whether it is held for them.
    pub(crate) fn upstream_of(&self, agent: &AgentName) -> Option<&BTreeMap<AgentName, bool>> {
        self.upstream.get(agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(text: &str) -> Graph {
        Graph::of(&Settings::parse(text, None, 0).unwrap())
    }

    fn name(name: &str) -> AgentName {
        AgentName::new(name).unwrap()
    }

    fn upstream(graph: &Graph, agent: &str) -> Vec<(String, bool)> {
        let known = graph.upstream_of(&name(agent)).into_iter().flatten();
        known.map(|(agent, hold)| (agent.to_string(), *hold)).collect()
    }

    #[test]
    fn chains_join_into_a_graph() {
        let graph = graph(
            "[workflow.a]\nagents = [\"ralph\", \"picard\", \"data\"]\n\
             [workflow.b]\nagents = [\"data\", \"neelix\"]\nhold = true",
        );
        assert_eq!(upstream(&graph, "ralph"), []);
        let expected = |names: &[&str], hold| -> Vec<_> {
            names.iter().map(|name| ((*name).to_owned(), hold)).collect()
        };
        assert_eq!(upstream(&graph, "data"), expected(&["picard", "ralph"], false));
        assert_eq!(upstream(&graph, "neelix"), expected(&["data", "picard", "ralph"], true));
        assert!(graph.feeds(&name("data")) && !graph.feeds(&name("neelix")));
    }

    #[test]
    fn cycles_terminate() {
        let graph = graph(
            "[workflow.a]\nagents = [\"one\", \"two\", \"three\"]\n\
             [workflow.b]\nagents = [\"three\", \"one\"]",
        );
        assert_eq!(upstream(&graph, "one").len(), 2);
    }
}
