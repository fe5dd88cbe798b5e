//! A cluster: the slots shared out among several masters, each with replicas.

use crate::options::{Flavour, Options};
use crate::port::Port;
use crate::server::{Role, Server};
use crate::until::{PATIENCE, until};

/// Servers that share the keys among them.
#[derive(Debug)]
pub struct Cluster {
    /// First the masters, by their slots; then the replicas, one for each master and so on.
    pub nodes: Vec<Server>,
    /// Where the nodes speak to each other.
    buses: Vec<Port>,
}

/// The number of slots of every cluster.
const SLOTS: usize = 16_384;

impl Cluster {
    /// A cluster that answers for every key, its replicas in step.
    #[must_use]
    pub fn start(shards: usize, replicas: usize) -> Self {
        Self::start_with(shards, replicas, &Options::default())
    }

    /// The same with options for every node.
    #[must_use]
    pub fn start_with(shards: usize, replicas: usize, options: &Options) -> Self {
        assert!(shards > 0, "a cluster has a master");
        assert!(options.flavour != Flavour::Old, "Redis 6.2 cannot choose the port of its bus");
        let buses: Vec<Port> = (0..shards * (1 + replicas)).map(|_| Port::new()).collect();
        let node = |bus: &Port| Server::start_as(options.clone(), &role(bus));
        let cluster = Self { nodes: buses.iter().map(node).collect(), buses };
        cluster.share_out(shards);
        cluster.meet();
        cluster.follow(shards);
        cluster
    }

    /// How a client names it: `redis+cluster://127.0.0.1:7000,127.0.0.1:7001`.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.nodes.iter().map(Server::address).collect();
        format!("redis+cluster://{}", addresses.join(","))
    }

    /// The node that answers for this key now; dead nodes are not asked.
    #[must_use]
    pub fn slot_owner(&self, key: &str) -> &Server {
        let owner = until(PATIENCE, || self.nodes.iter().find(|node| owns(node, key)));
        match owner {
            Some(node) => node,
            None => panic!("no node owns the slot of `{key}`:\n{}", self.views()),
        }
    }

    fn share_out(&self, shards: usize) {
        for (index, node) in self.nodes.iter().enumerate() {
            // Without an order of their own they would have to find one, which takes seconds.
            node.run(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            if index < shards {
                let first = (SLOTS * index / shards).to_string();
                let last = (SLOTS * (index + 1) / shards - 1).to_string();
                node.run(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
        }
    }

    /// Everybody is shown everybody: rumours alone would be slower.
    fn meet(&self) {
        for one in &self.nodes {
            for (other, bus) in self.nodes.iter().zip(&self.buses) {
                let (port, bus) = (other.port().to_string(), bus.number().to_string());
                one.run(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
            }
        }
        self.wait("meet", |node| {
            let known = node.run(&["CLUSTER", "NODES"]);
            known.lines().count() == self.nodes.len() && !known.contains("handshake")
        });
    }

    fn follow(&self, shards: usize) {
        let (masters, replicas) = self.nodes.split_at(shards);
        for (replica, master) in replicas.iter().zip(masters.iter().cycle()) {
            let name = master.run(&["CLUSTER", "MYID"]);
            replica.run(&["CLUSTER", "REPLICATE", &name]);
        }
        self.wait("agree", |node| {
            let follows = node.info("role").is_some_and(|role| role == "slave");
            let up = node.info("master_link_status").is_some_and(|status| status == "up");
            let known = node.run(&["CLUSTER", "NODES"]);
            node.run(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
                && known.lines().filter(|line| line.contains("slave ")).count() == replicas.len()
                && (!follows || up)
        });
    }

    fn wait(&self, what: &str, holds: impl Fn(&Server) -> bool) {
        if until(PATIENCE, || self.nodes.iter().all(&holds).then_some(())).is_none() {
            panic!("the nodes do not {what}:\n{}", self.views());
        }
    }

    fn views(&self) -> String {
        let view =
            |node: &Server| node.try_run(&["CLUSTER", "NODES"]).unwrap_or_else(|error| error);
        self.nodes.iter().map(view).collect::<Vec<String>>().join("\n")
    }
}

fn role(bus: &Port) -> Role {
    let lines = [
        "cluster-enabled yes".to_owned(),
        // By default it is the port plus 10000, which may be somebody's, or no port at all.
        format!("cluster-port {}", bus.number()),
        // Short enough for a failover in a test, long enough for a machine that is busy.
        "cluster-node-timeout 2000".to_owned(),
    ];
    Role { sentinel: false, lines: lines.into() }
}

/// Whether it says of itself that it is the master of the key's slot.
fn owns(node: &Server, key: &str) -> bool {
    let slot = node.try_run(&["CLUSTER", "KEYSLOT", key]);
    let Some(slot) = slot.ok().and_then(|text| text.parse::<usize>().ok()) else { return false };
    let known = node.try_run(&["CLUSTER", "NODES"]).unwrap_or_default();
    let mut own = known.lines().filter(|line| line.contains("myself,master"));
    // Its name, address, flags, master, two times, epoch and link; then its slots.
    own.any(|line| line.split(' ').skip(8).any(|range| within(range, slot)))
}

fn within(range: &str, slot: usize) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (first.parse(), last.parse());
    first.is_ok_and(|first: usize| first <= slot) && last.is_ok_and(|last: usize| slot <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_in_its_range_only() {
        assert!(within("0-99", 0) && within("0-99", 99) && !within("0-99", 100));
        assert!(within("7", 7) && !within("7", 8));
        assert!(!within("[7->-otherNode]", 7), "a slot on its way is named beside the ranges");
    }
}
