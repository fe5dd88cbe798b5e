//! Several processes at once: exactly the limit is admitted, whoever is behind decides at the head,
//! names are the same everywhere, configurations do not fight, and who was too slow is told so.

use rustix::process::Signal;
use standpipe_core::{
    Action, Answer, Configure, Configured, LeaseAnswer, Limit, PoolConfig, Source, Span,
};
use standpipe_servers::Server;
use standpipe_store::PoolName;

use crate::support::worker::{Worker, hear, say, told_to_play};
use crate::support::{
    HOUR, admitted, ask, call, commit, configure, decision, insist, member, member_of, more,
    parallel, pass, read_anew, requests, reserve, state_hash, store, take_all,
};

const PROCESSES: usize = 4;
const ASKS: usize = 4;
const LIMIT: u64 = 10;

fn pool_of_round(round: usize) -> PoolName {
    format!("test/round-{round}").parse().unwrap()
}

/// Asks as often as it may in every round it is told, and says how often it was admitted.
#[test]
fn racer() {
    let Some(url) = told_to_play() else { return };
    let store = store(&url);
    say("ready");
    while let Some(round) = hear() {
        let mut member = member_of(&store, &pool_of_round(round.parse().unwrap()));
        insist(&mut member, vec![configure(vec![requests(LIMIT, HOUR)])]);
        let asks = (0..ASKS).filter(|_| admitted(&ask(&mut member)).is_some());
        say(&asks.count().to_string());
    }
}

#[test]
fn b01_processes_that_ask_at_the_same_time_are_given_exactly_the_limit() {
    let server = Server::start();
    let start = |_| Worker::start("race::racer", &server.url(), &[]);
    let mut racers: Vec<Worker> = (0..PROCESSES).map(start).collect();
    for racer in &mut racers {
        assert_eq!(racer.says().as_deref(), Some("ready"));
    }
    for round in 0..300 * more() {
        racers.iter_mut().for_each(|racer| racer.tell(&round.to_string()));
        let given = racers.iter_mut().map(|racer| racer.says().unwrap().parse::<u64>().unwrap());
        assert_eq!(given.sum::<u64>(), LIMIT, "round {round}");
    }
    racers.into_iter().for_each(Worker::ends);
}

#[test]
fn b19_a_replica_that_is_behind_decides_at_the_head() {
    let server = Server::start();
    let mut members: Vec<_> = (0..5).map(|_| member(&store(&server.url()))).collect();
    for member in &mut members {
        insist(member, vec![configure(vec![requests(7, HOUR), parallel(6)])]);
    }
    // Nobody reads what the others did before it asks.
    let mut given = 0;
    for round in 0..5 {
        for member in &mut members {
            given += insist(member, vec![reserve(); 1 + round])
                .iter()
                .filter(|outcome| admitted(&decision(outcome)).is_some())
                .count();
        }
    }
    assert_eq!(given, 6, "of six slots, over five replicas");
}

/// Joins the pool, and says where it is and what the state there hashes to.
#[test]
fn reader() {
    let Some(url) = told_to_play() else { return };
    let replica = read_anew(&store(&url));
    let at = replica.position();
    say(&format!("{} {:016x} {:016x}", at.number, at.chain, state_hash(replica.state())));
}

#[test]
fn b22_names_and_hashes_are_the_same_in_every_process() {
    let server = Server::start();
    let mut member = member(&store(&server.url()));
    insist(&mut member, vec![configure(vec![parallel(3)])]);
    take_all(&mut member, 2);
    let at = member.replica().position();
    let hash = state_hash(member.replica().state());
    let here = format!("{} {:016x} {hash:016x}", at.number, at.chain);
    for _ in 0..3 {
        let mut reader = Worker::start("race::reader", &server.url(), &[]);
        assert_eq!(reader.says(), Some(here.clone()));
        reader.ends();
    }
    let mut keys: Vec<String> = server.run(&["KEYS", "*"]).lines().map(str::to_owned).collect();
    keys.sort();
    let names = ["standpipe:pools", "standpipe:{test/pool}:head", "standpipe:{test/pool}:log"];
    assert_eq!(keys, names, "one pool, however many processes");
}

fn configured(source: Source, limits: Vec<Limit>) -> Action {
    Action::Configure(Box::new(Configure { source, config: PoolConfig::new(limits) }))
}

#[test]
fn b23_two_configurations_never_alternate_and_the_loser_is_told() {
    let server = Server::start();
    let [mut old, mut new] = [(); 2].map(|()| member(&store(&server.url())));
    let file = |version| Source::File { version: Some(version), written: 0 };
    let older = configured(file(1), vec![parallel(9)]);
    let newer = configured(file(2), vec![parallel(4)]);
    let answer = |outcomes: Vec<standpipe_core::Outcome>| outcomes[0].answer.clone();
    let told = answer(insist(&mut old, vec![older.clone()]));
    assert_eq!(told, Answer::Configured(Configured::Applied));
    let told = answer(insist(&mut new, vec![newer.clone()]));
    assert_eq!(told, Answer::Configured(Configured::Applied));
    for _ in 0..20 {
        let told = answer(insist(&mut old, vec![older.clone()]));
        assert_eq!(told, Answer::Configured(Configured::Kept), "the loser is told");
        let told = answer(insist(&mut new, vec![newer.clone()]));
        assert_eq!(told, Answer::Configured(Configured::Same));
    }
    assert_eq!(take_all(&mut old, 20).len(), 4, "of the newer one, for both");
    assert_eq!(take_all(&mut new, 20).len(), 0);
}

/// Takes the one slot for a while, says so, and settles it when it is told.
#[test]
fn holder() {
    let Some(url) = told_to_play() else { return };
    let mut member = member(&store(&url));
    let mut short = call(Span::ZERO);
    short.ttl = Some(Span::millis(300));
    let lease = admitted(&decision(&insist(&mut member, vec![Action::from(short)])[0])).unwrap();
    say("held");
    hear().unwrap();
    let outcomes = insist(&mut member, vec![commit(lease)]);
    say(&format!("{:?}", outcomes[0].answer));
}

#[test]
fn b26_b27_a_holder_that_was_stopped_past_its_lease_is_told_and_frees_nobody_elses_slot() {
    let server = Server::start();
    let here = store(&server.url());
    let mut other = member(&here);
    insist(&mut other, vec![configure(vec![parallel(1)])]);
    let mut holder = Worker::start("race::holder", &server.url(), &[]);
    assert_eq!(holder.says().as_deref(), Some("held"));
    assert_eq!(admitted(&ask(&mut other)), None, "it is held");
    holder.signal(Signal::STOP);
    pass(&server, Span::millis(301));
    let taken = admitted(&ask(&mut other)).expect("its time is up");
    holder.tell("settle");
    holder.signal(Signal::CONT);
    let gone = format!("{:?}", Answer::Lease(LeaseAnswer::Gone));
    assert_eq!(holder.says(), Some(gone), "it learns that it lost its slot");
    holder.ends();
    assert_eq!(admitted(&ask(&mut other)), None, "the slot is still the other's");
    let settled = insist(&mut other, vec![commit(taken)]);
    assert_eq!(settled[0].answer, Answer::Lease(LeaseAnswer::Ended));
}
