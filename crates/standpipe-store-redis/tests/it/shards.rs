//! A cluster of three shards, and sentinels: pools are found, and found again after a failover.

use std::collections::BTreeSet;

use standpipe_core::{Action, Key};
use standpipe_servers::{Cluster, Options, Sentinel, Server};
use standpipe_store::engine::Message;
use standpipe_store::{Log, Participant, PoolName, Store};
use standpipe_store_redis::{RedisLog, RedisStore};

use crate::support::fake::{Answer, FakeServer};
use crate::support::{
    HOUR, admitted, ask, beat, commit, configure, failed, insist, member_of, parallel, requests,
    store, take_all, until,
};

/// A process on one of several pools.
struct Process {
    pool: PoolName,
    member: Participant<RedisLog>,
    holds: Vec<Key>,
}

impl Process {
    fn new(store: &RedisStore, number: usize) -> Self {
        let pool: PoolName = format!("test/pool-{number}").parse().unwrap();
        let mut member = member_of(store, &pool);
        insist(&mut member, vec![configure(vec![requests(100, HOUR), parallel(3)])]);
        let holds = take_all(&mut member, 2);
        assert_eq!(holds.len(), 2);
        Self { pool, member, holds }
    }

    fn head(&self) -> String {
        format!("standpipe:{{{}}}:head", self.pool)
    }

    /// It still has what it held, gets what is left, and no more.
    fn goes_on(&mut self) {
        insist(&mut self.member, vec![beat()]);
        // A pause after a change of servers ends by itself, or at once.
        insist(&mut self.member, vec![Action::Resume { by: None }]);
        let third = ask(&mut self.member);
        let third = admitted(&third).unwrap_or_else(|| panic!("a third slot: {third:?}"));
        assert_eq!(admitted(&ask(&mut self.member)), None, "there is no fourth");
        insist(&mut self.member, vec![commit(third)]);
    }

    /// Fills the log until snapshots are written and entries are let go of.
    fn works(&mut self) {
        for _ in 0..3 {
            insist(&mut self.member, vec![beat(); 300]);
            let snapshot = self.member.replica().snapshot();
            assert!(snapshot.id.at.number > 300);
        }
    }
}

#[test]
fn a_call_that_a_cluster_redirects_names_the_server_that_gets_it() {
    let cluster = Cluster::start(3, 0);
    for number in 0..4 {
        let pool: PoolName = format!("test/pool-{number}").parse().unwrap();
        for process in 0..2 {
            let store = store(&cluster.url());
            // The first call is an append, to whichever node is asked first.
            insist(&mut member_of(&store, &pool), vec![beat()]);
            let news = store.take_messages();
            assert_eq!(news, Vec::<Message>::new(), "{pool}, process {process}: no other server");
        }
    }
}

#[test]
fn b45_pools_live_on_the_shards_of_a_cluster_and_go_on_after_a_promotion() {
    let mut cluster = Cluster::start(3, 1);
    let store = store(&cluster.url());
    let mut processes: Vec<Process> = (0..9).map(|number| Process::new(&store, number)).collect();
    let owner = |process: &Process| cluster.slot_owner(&process.head()).port();
    let owners: BTreeSet<u16> = processes.iter().map(owner).collect();
    assert_eq!(owners.len(), 3, "there are pools on every shard");
    for process in &mut processes {
        process.works();
        process.goes_on();
        assert_one_slot(cluster.slot_owner(&process.head()), &process.pool);
    }
    let names: Vec<PoolName> = processes.iter().map(|process| process.pool.clone()).collect();
    assert_eq!(store.pools().unwrap(), names);
    let dead = cluster.slot_owner(&processes[0].head()).port();
    let victim = cluster.nodes.iter_mut().find(|node| node.port() == dead).unwrap();
    victim.kill();
    for process in &mut processes {
        process.goes_on();
        let settle = process.holds.drain(..).map(commit).collect();
        insist(&mut process.member, settle);
        assert_ne!(cluster.slot_owner(&process.head()).port(), dead);
    }
    assert_eq!(take_all(&mut processes[0].member, 9).len(), 3, "everything can be had again");
}

#[test]
fn a_hung_shard_stops_its_own_pools_only() {
    let args = ["--cluster-require-full-coverage", "no"].map(str::to_owned).to_vec();
    let options = Options { args, ..Options::default() };
    let cluster = Cluster::start_with(3, 0, &options);
    let before = store(&cluster.url());
    let processes = (0..9).map(|number| Process::new(&before, number));
    // The first node of the URL hangs: the one that is asked first.
    let hung = &cluster.nodes[0];
    let owner = |process: &Process| cluster.slot_owner(&process.head()).port();
    let (mut theirs, mut others): (Vec<Process>, Vec<Process>) =
        processes.partition(|process| owner(process) == hung.port());
    assert!(!theirs.is_empty() && !others.is_empty());
    hung.pause();
    let error = failed(theirs[0].member.submit(vec![beat()]));
    assert!(error.is_transient(), "{error}");
    for process in &mut others {
        process.goes_on();
        // Another process, which has no connection yet.
        let mut newcomer = member_of(&store(&cluster.url()), &process.pool);
        assert!(admitted(&ask(&mut newcomer)).is_some(), "{} works", process.pool);
    }
    hung.resume();
    until("the call that failed is answered", || theirs[0].member.resend().is_ok());
    for process in &mut theirs {
        process.goes_on();
    }
}

#[test]
fn a_node_that_hangs_is_asked_once_for_all_pools_of_a_process() {
    let cluster = Cluster::start(3, 0);
    // It accepts connections and answers nothing, and it is the first of the URL.
    let hung = FakeServer::start(|_| Answer::Never);
    let nodes = cluster.url().replace("redis+cluster://", "");
    let store = store(&format!("redis+cluster://{},{nodes}", hung.address()));
    for number in 0..9 {
        let pool: PoolName = format!("test/pool-{number}").parse().unwrap();
        member_of(&store, &pool).submit(vec![beat()]).unwrap();
    }
    assert_eq!(hung.connections(), 1, "the others are asked first from then on");
}

#[test]
fn a_pool_that_began_while_the_shard_of_the_index_hung_is_listed_later() {
    let args = ["--cluster-require-full-coverage", "no"].map(str::to_owned).to_vec();
    let cluster = Cluster::start_with(3, 0, &Options { args, ..Options::default() });
    let index = cluster.slot_owner("standpipe:pools");
    let on_another = |pool: &PoolName| {
        cluster.slot_owner(&format!("standpipe:{{{pool}}}:head")).port() != index.port()
    };
    let names = (0..9).map(|number| format!("test/pool-{number}").parse().unwrap());
    let pools: Vec<PoolName> = names.filter(on_another).collect();
    assert!(!pools.is_empty());
    let ours = store(&cluster.url());
    index.pause();
    for pool in &pools {
        insist(&mut member_of(&ours, pool), vec![beat()]);
    }
    index.resume();
    // Another process lists them, without a further step on any of them.
    let theirs = store(&cluster.url());
    until("they are listed", || theirs.pools().is_ok_and(|listed| listed == pools));
}

/// All keys of a pool, also those aside and on their way, are in one slot.
fn assert_one_slot(node: &Server, pool: &PoolName) {
    let base = format!("standpipe:{{{pool}}}");
    let kept = node.run(&["KEYS", &format!("{base}:*")]);
    assert!(kept.lines().count() >= 2, "{kept}");
    let others = [format!("{base}:stage:1"), format!("{base}:damaged:1:log")];
    let keys = kept.lines().map(str::to_owned).chain(others);
    let slots: BTreeSet<String> = keys.map(|key| node.run(&["CLUSTER", "KEYSLOT", &key])).collect();
    assert_eq!(slots.len(), 1, "{slots:?}");
}

#[test]
fn the_master_that_sentinels_name_is_followed_over_a_failover() {
    let mut world = Sentinel::start();
    let store = store(&world.url());
    let mut process = Process::new(&store, 1);
    process.works();
    process.goes_on();
    // A replica that has just come is sent nothing for a moment.
    crate::support::until("the replica has everything", || {
        world.replica.info("slave_repl_offset") == world.master.info("master_repl_offset")
    });
    world.fail_over();
    process.goes_on();
    let settle = process.holds.drain(..).map(commit).collect();
    insist(&mut process.member, settle);
    assert_eq!(take_all(&mut process.member, 9).len(), 3, "everything can be had again");
    let wrong = world.url().replace("/mymaster", "/another");
    let error = crate::support::failed(
        crate::support::store(&wrong)
            .pool_log(&process.pool)
            .read(standpipe_store::Position::START),
    );
    assert!(error.to_string().contains("knows no master `another`"), "{error}");
}
