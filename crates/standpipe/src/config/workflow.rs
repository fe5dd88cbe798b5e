//! `[workflow.NAME]` and `[route]`: who works for whom, and which pools a task may use.

use std::collections::BTreeMap;

use standpipe_core::{AgentName, Text};
use standpipe_store::PoolName;

use super::reader::{Item, Reader};
use super::text::quoted;

/// A chain of agents, each of which works on what the one before it made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowSettings {
    /// The chain, the first upstream of all others.
    pub agents: Vec<AgentName>,
    /// Whether those downstream wait while one upstream is throttled, instead of only being told.
    pub hold: bool,
}

/// The keys of `[workflow.NAME]`.
pub(super) const KEYS: [&str; 2] = ["agents", "hold"];

/// One workflow's table.
pub(super) fn read(reader: &mut Reader<'_>, item: &Item<'_>) -> WorkflowSettings {
    let mut workflow = WorkflowSettings::default();
    let mut named = 0;
    for entry in reader.entries(item) {
        match entry.key {
            "agents" => {
                let elements = reader.list(&entry);
                named = elements.len();
                for element in &elements {
                    chain(reader, element, &mut workflow.agents);
                }
            }
            "hold" => workflow.hold = reader.flag(&entry).unwrap_or_default(),
            _ => reader.unknown(&entry, &KEYS, "in a workflow"),
        }
    }
    if named < 2 {
        let remedy = "name at least two: agents = [\"first\", \"second\"]";
        reader.wrong_at(item, "a workflow is a chain of agents", remedy);
    }
    workflow
}

/// The route's table: from a class of task to the pools it may use.
pub(super) fn read_routes(
    reader: &mut Reader<'_>,
    item: &Item<'_>,
) -> BTreeMap<String, Vec<PoolName>> {
    let mut routes = BTreeMap::new();
    for entry in reader.entries(item) {
        if Text::new(entry.key).is_none() {
            let what = format!("{} is not a class of task", quoted(entry.key));
            reader.wrong(entry.line, what, "write 1 to 128 characters without line breaks");
        }
        if entry.value.as_array().is_some_and(|list| list.is_empty()) {
            reader.wrong_at(&entry, "leads nowhere", "name at least one pool");
        }
        routes.insert(entry.key.to_owned(), reader.pools(&entry));
    }
    routes
}

/// The name of an agent, as a value.
fn chain(reader: &mut Reader<'_>, item: &Item<'_>, into: &mut Vec<AgentName>) {
    let Some(text) = reader.text(item) else { return };
    match AgentName::new(text) {
        None => {
            let what = format!("{} is not the name of an agent", quoted(text));
            reader.wrong_at(item, what, AGENT_NAMES);
        }
        Some(name) if into.contains(&name) => {
            let what = format!("`{name}` is in the chain twice");
            reader.wrong_at(item, what, "nobody works for itself: name it once");
        }
        Some(name) => into.push(name),
    }
}

/// What an agent may be called, as a remedy.
pub(super) const AGENT_NAMES: &str = "use 1 to 64 of A-Z a-z 0-9 . _ @ -";
