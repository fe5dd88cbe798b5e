//! A cluster: every key has one owner, and the others say who.

use standpipe_servers::{Client, Cluster, Flavour, Options, Server};

#[test]
fn a_node_that_does_not_own_the_key_says_who_does() {
    let cluster = Cluster::start(3, 1);
    assert_eq!(cluster.nodes.len(), 6);
    for key in ["a", "b", "{tag}:1", "{tag}:2"] {
        let owner = cluster.slot_owner(key);
        let mut client = Client::connect(&owner.address()).unwrap();
        assert_eq!(client.run(&["SET", key, "1"]).unwrap(), "OK");
        for other in cluster.nodes[..3].iter().filter(|node| node.port() != owner.port()) {
            let mut client = Client::connect(&other.address()).unwrap();
            let moved = client.run(&["GET", key]).unwrap_err();
            assert!(moved.starts_with("MOVED ") && moved.ends_with(&owner.address()), "{moved}");
        }
    }
    assert_eq!(cluster.slot_owner("{tag}:1").port(), cluster.slot_owner("{tag}:2").port());
    let addresses: Vec<String> = cluster.nodes.iter().map(Server::address).collect();
    assert_eq!(cluster.url(), format!("redis+cluster://{}", addresses.join(",")));
}

#[test]
fn a_replica_takes_over_the_slots_of_a_master_that_died() {
    let mut cluster = Cluster::start(3, 1);
    let owner = cluster.slot_owner("key").port();
    let dead = cluster.nodes.iter().position(|node| node.port() == owner).unwrap();
    assert!(dead < 3, "the masters come first");
    cluster.nodes[dead].kill();
    let heir = cluster.slot_owner("key");
    assert_eq!(heir.port(), cluster.nodes[dead + 3].port(), "its own replica");
}

#[test]
fn valkey_clusters_too() {
    let flavour = Flavour::Valkey;
    let cluster = Cluster::start_with(2, 0, &Options { flavour, ..Options::default() });
    let owner = cluster.slot_owner("key");
    assert!(owner.info("valkey_version").is_some());
    assert_eq!(owner.run(&["SET", "key", "value"]), "OK");
}
