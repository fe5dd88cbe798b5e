//! Who works on what others made, and what those learn who wait for it.
//!
//! Workflows are chains of agents that together form a graph. When an agent is throttled on any
//! pool, everybody downstream learns it with the next answer; where the workflow says `hold`, they
//! wait.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use standpipe_core::AgentName;

use crate::config::Settings;
use crate::moment::Moment;

/// Somebody upstream is throttled.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Backpressure {
    /// Who.
    pub agent: String,
    /// On which pool.
    pub pool: String,
    /// Until when, as it stands.
    pub until: Moment,
    /// In how long that is.
    pub until_ms: u64,
}

/// The chains of all workflows, as one graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Graph {
    /// By agent: everybody upstream, near and far, and whether it waits for them.
    upstream: BTreeMap<AgentName, BTreeMap<AgentName, bool>>,
    /// Those who have somebody downstream.
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
        graph.reach();
        graph
    }

    /// Whoever is upstream of somebody upstream is upstream too; whether one waits is said by the
    /// last link. Chains may form circles; nobody is upstream of itself.
    fn reach(&mut self) {
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

    /// Whether somebody works on what this agent makes.
    pub(crate) fn feeds(&self, agent: &AgentName) -> bool {
        self.feeders.contains(agent)
    }

    /// Everybody upstream of an agent, and whether it waits for them.
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
        let told = |names: &[&str], hold| -> Vec<_> {
            names.iter().map(|name| ((*name).to_owned(), hold)).collect()
        };
        assert_eq!(upstream(&graph, "data"), told(&["picard", "ralph"], false));
        assert_eq!(upstream(&graph, "neelix"), told(&["data", "picard", "ralph"], true));
        assert!(graph.feeds(&name("data")) && !graph.feeds(&name("neelix")));
    }

    #[test]
    fn circles_end() {
        let graph = graph(
            "[workflow.a]\nagents = [\"one\", \"two\", \"three\"]\n\
             [workflow.b]\nagents = [\"three\", \"one\"]",
        );
        assert_eq!(upstream(&graph, "one").len(), 2);
    }
}
