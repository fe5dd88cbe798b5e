//! A replica that lagged behind takes the master's place: the living put back what it lacks, and
//! only what the dead did in the lost stretch is forgotten.

use standpipe_core::{Key, Limit, Span};
use standpipe_servers::{Gate, Pair};
use standpipe_store::engine::Message;
use standpipe_store::{Participant, Store};
use standpipe_store_redis::{Options, RedisLog, RedisStore};

use crate::support::crew::{Crew, PERIOD};
use crate::support::{
    admitted_at, assert_never_over, assert_whole, beat, catch_up, commit, configure, failed,
    insist, member, most_within, parallel, read_anew, requests, store, store_with, take_all, used,
    wait_for,
};

const LIMIT: usize = 100;
/// Longer than the pause after a change of servers, so that the pause hides nothing.
const WINDOW: Span = Span::secs(4);
const SLOTS: u64 = 60;

fn limits() -> Vec<Limit> {
    vec![requests(LIMIT as u64, WINDOW), parallel(SLOTS)]
}

/// A pair, and the way to whoever serves.
struct World {
    pair: Pair,
    gate: Gate,
    store: RedisStore,
}

/// Somebody who makes calls and writes down when.
struct Process {
    member: Participant<RedisLog>,
    holds: Vec<Key>,
    stamps: Vec<u64>,
}

impl World {
    fn new() -> Self {
        let pair = Pair::start();
        let gate = Gate::before(&pair.master);
        let store = store(&gate.url());
        insist(&mut member(&store), vec![configure(limits())]);
        Self { pair, gate, store }
    }

    fn process(&self) -> Process {
        let mut member = member(&store(&self.gate.url()));
        insist(&mut member, vec![configure(limits())]);
        Process { member, holds: Vec::new(), stamps: Vec::new() }
    }

    fn fail_over(&mut self) {
        self.pair.fail_over();
        self.gate.lead_to(&self.pair.replica);
        self.gate.cut();
        self.gate.heal();
    }
}

impl Process {
    fn take(&mut self, count: usize) {
        let leases = take_all(&mut self.member, count);
        assert_eq!(leases.len(), count);
        self.stamps.extend(leases.iter().map(|lease| admitted_at(&self.member, *lease).0));
        self.holds.extend(leases);
    }

    fn settle(&mut self) {
        let settle = self.holds.drain(..).map(commit).collect();
        insist(&mut self.member, settle);
    }

    /// Waits its turn and is admitted once more.
    fn once_more(&mut self, store: &RedisStore) {
        let call = crate::support::call(Span::secs(60));
        let lease = wait_for(&mut self.member, store, call).unwrap();
        self.stamps.push(admitted_at(&self.member, lease).0);
        self.holds.push(lease);
    }
}

#[test]
fn b16_b44_the_living_put_back_what_a_lagging_replica_lacks() {
    let mut world = World::new();
    let [mut early, mut late, mut holder] = [(); 3].map(|()| world.process());
    early.take(30);
    early.settle();
    world.pair.in_step();
    world.pair.hold_back();
    late.take(40);
    late.settle();
    holder.take(30);
    world.fail_over();
    // Who comes first sees that the server changed, and leaves the others time.
    for process in [&mut holder, &mut early, &mut late] {
        insist(&mut process.member, vec![beat()]);
    }
    let state = read_anew(&world.store);
    assert_eq!(used(state.state(), 0), LIMIT as u64, "all that was used counts");
    assert_eq!(state.state().facts().leases.len(), 30, "in flight");
    let store = world.store.clone();
    for process in [&mut early, &mut late, &mut holder] {
        process.once_more(&store);
        process.settle();
    }
    let stamps = [early.stamps, late.stamps, holder.stamps].concat();
    assert_never_over(&stamps, LIMIT, WINDOW);
    assert_whole(&store);
}

#[test]
fn b16_only_what_the_dead_did_in_the_lost_stretch_is_forgotten() {
    const DEAD: usize = 10;
    let mut world = World::new();
    let [mut living, mut doomed] = [(); 2].map(|()| world.process());
    living.take(20);
    world.pair.in_step();
    world.pair.hold_back();
    living.take(20);
    doomed.take(DEAD);
    let dead = doomed.stamps;
    drop(doomed.member);
    world.fail_over();
    catch_up(&mut living.member);
    assert_eq!(used(read_anew(&world.store).state(), 0), 40, "of the living");
    living.settle();
    let store = world.store.clone();
    for _ in 0..LIMIT {
        living.once_more(&store);
        living.settle();
    }
    assert_never_over(&living.stamps, LIMIT, WINDOW);
    let most = most_within(&[living.stamps, dead].concat(), WINDOW);
    assert!(most <= LIMIT + DEAD, "{most} of {LIMIT}, {DEAD} by the dead");
    assert_whole(&store);
}

#[test]
fn a_crew_goes_on_over_a_failover() {
    const FEW: usize = 30;
    let mut world = World::new();
    let limits = [requests(FEW as u64, PERIOD), parallel(6)];
    world.store.reset(&crate::support::pool()).unwrap();
    let crew = Crew::start(4, &world.gate.url(), &limits);
    crew.goes_on(10);
    world.pair.in_step();
    world.pair.hold_back();
    crew.goes_on(10);
    world.fail_over();
    crew.goes_on(10);
    assert!(crew.take_messages().contains("another server process"));
    assert_never_over(&crew.stop(), FEW, PERIOD);
    assert_whole(&world.store);
}

#[test]
fn with_wait_replicas_an_entry_counts_only_when_the_replica_has_it() {
    let world = World::new();
    let careful = store_with(&world.gate.url(), Options { wait_replicas: 1, ..Options::default() });
    let mut process = member(&careful);
    insist(&mut process, vec![beat()]);
    world.pair.hold_back();
    let error = failed(process.submit(vec![beat()]));
    assert!(error.is_transient(), "{error}");
    assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
    assert!(error.to_string().contains("`wait_replicas`"), "{error}");
    world.pair.let_go();
    world.pair.in_step();
    assert_eq!(process.resend().unwrap().len(), 1, "the answer that was awaited");
    assert_eq!(careful.take_messages(), Vec::<Message>::new());
}
