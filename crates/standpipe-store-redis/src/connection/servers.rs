//! What all connections of a store share: the address, TLS settings, and which nodes answer.
//!
//! A node that accepts connections and does not answer costs a caller all of its time. So the first
//! connection that waited for one in vain records it, and the others ask that node last.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustls::ClientConfig;

use super::resolve::Resolver;
use super::tls;
use crate::address::{Address, Node, Route};

/// The servers of a store.
pub(crate) struct Servers {
    pub(crate) address: Address,
    /// The address without secrets, for messages.
    pub(crate) place: String,
    pub(crate) resolver: Resolver,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    known: Mutex<Known>,
}

/// What connections found out about nodes.
#[derive(Debug, Default)]
struct Known {
    /// Nodes of a cluster that redirects named, also those that the URL does not.
    redirected_to: BTreeSet<Node>,
    /// Nodes that did not answer when they were last asked.
    unresponsive: BTreeSet<Node>,
}

/// More nodes than a cluster should have; what is above it is not remembered.
const MAX_KNOWN: usize = 1_000;

impl Servers {
    pub(crate) fn new(address: Address) -> Self {
        Self {
            place: address.to_string(),
            address,
            resolver: Resolver::default(),
            tls: OnceLock::new(),
            known: Mutex::default(),
        }
    }

    /// Whether pools are spread over several servers.
    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self.address.route, Route::Cluster(_))
    }

    /// Returns the TLS settings. They are loaded once: the system's authorities are many.
    pub(crate) fn tls_config(&self) -> Result<Arc<ClientConfig>, String> {
        let load = || tls::client_config(self.address.authority.as_deref());
        self.tls.get_or_init(load).clone()
    }

    /// Returns these nodes and, of a cluster, others that are known. Those that did not answer
    /// come last.
    pub(crate) fn in_order(&self, nodes: &[Node]) -> Vec<Node> {
        let known = self.known();
        let mut all = nodes.to_vec();
        if self.is_cluster() {
            all.extend(known.redirected_to.iter().filter(|node| !nodes.contains(node)).cloned());
        }
        all.sort_by_key(|node| known.unresponsive.contains(node));
        all
    }

    /// Records that a redirect named this node.
    pub(crate) fn add_redirect_target(&self, node: &Node) {
        let mut known = self.known();
        if known.redirected_to.len() < MAX_KNOWN {
            known.redirected_to.insert(node.clone());
        }
    }

    /// Records whether a node answered.
    pub(crate) fn record_answer(&self, node: &Node, answered: bool) {
        let mut known = self.known();
        if answered {
            known.unresponsive.remove(node);
        } else if known.unresponsive.len() < MAX_KNOWN {
            known.unresponsive.insert(node.clone());
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // A panic elsewhere cannot leave it half-written.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers").field("place", &self.place).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(nodes: &[Node]) -> String {
        nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn nodes_that_did_not_answer_are_asked_last() {
        let servers = Servers::new("redis+cluster://a:1,b:1,c:1".parse().unwrap());
        let Route::Cluster(nodes) = &servers.address.route else { panic!("a cluster") };
        let order = || names(&servers.in_order(nodes));
        assert_eq!(order(), "a:1 b:1 c:1");
        servers.add_redirect_target(&Node { host: "d".to_owned(), port: 1 });
        servers.add_redirect_target(&nodes[1]);
        servers.record_answer(&nodes[0], false);
        assert_eq!(order(), "b:1 c:1 d:1 a:1");
        servers.record_answer(&nodes[1], false);
        servers.record_answer(&nodes[0], true);
        assert_eq!(order(), "a:1 c:1 d:1 b:1");
    }
}
