//! What happens to servers in their lives, under members that ask, hold and settle meanwhile: never
//! over, nobody hangs, and afterwards everything can be had again.

use std::sync::{Barrier, mpsc};
use std::time::Duration;

use standpipe::config::{Settings, StoreUrl};
use standpipe::{Error, Request, Standpipe};
use standpipe_core::{Limit, PoolConfig, Span};
use standpipe_servers::{Client, Options as ServerOptions, Server};
use standpipe_store::Store;
use standpipe_store::engine::Message;
use standpipe_store_redis::{Options, RedisStore};

use crate::support::crew::{Crew, PERIOD};
use crate::support::{
    LONG, Scratch, admitted, admitted_at, ask, assert_never_over, assert_whole, beat, commit,
    configure, insist, key, member, member_of, most_within, parallel, pass, read_anew, requests,
    store, store_with, take_all,
};

const LIMIT: usize = 30;
const SLOTS: u64 = 6;
const CREW: usize = 4;

fn limits() -> Vec<Limit> {
    vec![requests(LIMIT as u64, PERIOD), parallel(SLOTS)]
}

/// Whoever lives through it was never over with the others, and leaves everything whole.
fn assert_well(crew: Crew, server: &Server) {
    assert_never_over(&crew.stop(), LIMIT, PERIOD);
    assert_whole(&store(&server.url()));
}

/// A head ends with the id of its log.
fn log_id(server: &Server) -> String {
    server.run(&["HGET", &key("head"), "h"]).chars().rev().take(14).collect()
}

#[test]
fn a_restart_of_a_server_that_keeps_its_data_loses_nothing() {
    let options = ServerOptions { persistent: true, ..ServerOptions::default() };
    let mut server = Server::start_with(options);
    let crew = Crew::start(CREW, &server.url(), &limits());
    crew.goes_on(15);
    let log = log_id(&server);
    server.kill();
    server.start_again();
    crew.goes_on(15);
    assert_eq!(log_id(&server), log, "the same log goes on");
    let news = crew.take_messages();
    assert!(news.contains("another server process") && !news.contains("was lost"), "{news}");
    assert_well(crew, &server);
}

#[test]
fn b16_a_restart_of_a_server_that_keeps_nothing_counts_as_full() {
    let mut server = Server::start();
    let crew = Crew::start(CREW, &server.url(), &limits());
    crew.goes_on(15);
    server.kill();
    server.start_again();
    crew.goes_on(15);
    let news = crew.take_messages();
    assert!(news.contains("was lost") && news.contains("count as full"), "{news}");
    assert_well(crew, &server);
}

#[test]
fn b44_scripts_flushed_in_mid_traffic_are_sent_again() {
    let server = Server::start();
    let crew = Crew::start(CREW, &server.url(), &limits());
    for _ in 0..25 {
        server.run(&["SCRIPT", "FLUSH"]);
        crew.goes_on(1);
    }
    assert_eq!(crew.take_messages(), "", "nobody noticed");
    assert_well(crew, &server);
}

#[test]
fn b16_everything_flushed_counts_as_full_for_whoever_was_there() {
    let server = Server::start();
    let crew = Crew::start(CREW, &server.url(), &limits());
    for _ in 0..3 {
        crew.goes_on(10);
        server.run(&["FLUSHALL"]);
    }
    crew.goes_on(10);
    assert!(crew.take_messages().contains("was lost"));
    assert_well(crew, &server);
}

/// The window of the two tests below is so long that it does not end in them.
const LONG_PERIOD: Span = Span::secs(3_600);

fn with_markers(server: &Server, scratch: &Scratch) -> RedisStore {
    let marker_dir = Some(scratch.0.clone());
    store_with(&server.url(), Options { marker_dir, ..Options::default() })
}

fn ten_an_hour() -> Vec<Limit> {
    vec![requests(10, LONG_PERIOD)]
}

#[test]
fn b16_a_machine_that_remembers_the_pool_begins_it_as_full() {
    let (server, scratch) = (Server::start(), Scratch::new());
    let mut before = member(&with_markers(&server, &scratch));
    insist(&mut before, vec![configure(ten_an_hour())]);
    assert_eq!(take_all(&mut before, 20).len(), 10);
    drop(before);
    server.run(&["FLUSHALL"]);
    // Another process of the same machine, later.
    let store = with_markers(&server, &scratch);
    let mut after = member(&store);
    insist(&mut after, vec![configure(ten_an_hour())]);
    assert_eq!(take_all(&mut after, 20).len(), 0, "of a limit that counts as full");
    assert!(store.take_messages().iter().any(|news| news.text.contains("was lost")));
}

#[test]
fn b16_pools_that_differ_only_behind_a_dot_are_each_remembered() {
    const POOLS: [&str; 4] = ["p/m-4.1", "p/m-4.2", "p/m-4.3", "p/m-4.4"];
    let (server, scratch) = (Server::start(), Scratch::new());
    let store = with_markers(&server, &scratch);
    // At the same moment, again and again: each has its own file.
    let start = Barrier::new(POOLS.len());
    for round in 0..20 {
        std::thread::scope(|scope| {
            for name in POOLS {
                let (store, start) = (&store, &start);
                scope.spawn(move || {
                    let mut member = member_of(store, &name.parse().unwrap());
                    start.wait();
                    insist(&mut member, vec![configure(ten_an_hour())]);
                });
            }
        });
        server.run(&["FLUSHALL"]);
        for name in POOLS {
            let mut later = member_of(&with_markers(&server, &scratch), &name.parse().unwrap());
            insist(&mut later, vec![configure(ten_an_hour())]);
            assert_eq!(take_all(&mut later, 20).len(), 0, "{name} was forgotten, round {round}");
        }
        for name in POOLS {
            store.remove(&name.parse().unwrap()).unwrap();
        }
    }
}

#[test]
fn b16_a_machine_that_remembers_the_pool_makes_up_for_one_that_does_not() {
    let (server, scratch) = (Server::start(), Scratch::new());
    let store_before = with_markers(&server, &scratch);
    let mut before = member(&store_before);
    insist(&mut before, vec![configure(ten_an_hour())]);
    assert_eq!(take_all(&mut before, 20).len(), 10);
    server.run(&["FLUSHALL"]);
    // A machine that was never here knows of no loss. Until somebody who does comes, it can use the
    // limit once more: that is the most by which it is exceeded.
    let stranger = store(&server.url());
    let mut newcomer = member(&stranger);
    insist(&mut newcomer, vec![configure(ten_an_hour())]);
    assert_eq!(take_all(&mut newcomer, 20).len(), 10, "to it the pool is new");
    assert_eq!(stranger.take_messages(), Vec::<Message>::new());
    // The next step of whoever knows better.
    insist(&mut before, vec![beat()]);
    assert!(store_before.take_messages().iter().any(|news| news.text.contains("was lost")));
    for member in [&mut before, &mut newcomer] {
        assert_eq!(admitted(&ask(member)), None, "it counts as full, for everybody");
    }
    // It is accounted for once: another process of that machine does not do it again.
    let head = read_anew(&stranger).position();
    let mut third = member(&with_markers(&server, &scratch));
    insist(&mut third, vec![configure(ten_an_hour())]);
    assert_eq!(read_anew(&stranger).position(), head, "nothing was appended");
}

#[test]
fn connections_that_the_server_kills_are_made_again() {
    let server = Server::start();
    let crew = Crew::start(CREW, &server.url(), &limits());
    for _ in 0..15 {
        server.run(&["CLIENT", "KILL", "TYPE", "normal"]);
        server.run(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        crew.goes_on(1);
    }
    let news = crew.take_messages();
    assert!(!news.contains("was lost") && !news.contains("another server"), "{news}");
    assert_well(crew, &server);
}

#[test]
fn while_the_server_is_blocked_every_caller_of_the_library_returns() {
    const CALLERS: usize = 8;
    let (server, scratch) = (Server::start(), Scratch::new());
    let builder = Standpipe::builder().settings(Settings::default()).home(&scratch.0);
    let tap = builder.store(StoreUrl::Redis(server.url())).open().unwrap();
    let pool = tap.pool("test/pool").unwrap();
    pool.change(PoolConfig { lease_ttl: Span::secs(1), ..PoolConfig::new(limits()) })
        .blocking()
        .unwrap();
    let held = pool.reserve(Request::new()).blocking().unwrap();
    let mut blocker = Client::connect(&server.address()).unwrap();
    blocker.send(&["DEBUG", "SLEEP", "4"]).unwrap();
    let (returned, returns) = mpsc::channel();
    for caller in 0..CALLERS {
        let (pool, returned) = (pool.clone(), returned.clone());
        std::thread::spawn(move || {
            // Some do not wait at all, some give up before the server is back, some do not.
            let timeout = Duration::from_millis([0, 700, 30_000][caller % 3]);
            let reserved = pool.reserve(Request::new().timeout(timeout)).blocking();
            // A commit into the silence is told, and sent when the server is back.
            let settled = reserved.map(|lease| match lease.commit([]).blocking() {
                Ok(()) | Err(Error::Store(_)) => {}
                Err(error) => panic!("{error}"),
            });
            returned.send((caller, settled)).unwrap();
        });
    }
    for _ in 0..CALLERS {
        let (caller, answer) = returns.recv_timeout(LONG).expect("a caller hangs");
        match answer {
            Err(Error::Refused(_) | Error::Store(_)) if caller % 3 < 2 => {}
            answer => answer.unwrap(),
        }
    }
    assert_eq!(blocker.reply().as_deref(), Ok("OK"));
    held.commit([]).blocking().unwrap();
    drop(tap);
    assert_whole(&store(&server.url()));
}

#[test]
fn a_holder_settles_over_a_restart_what_it_held_before() {
    let mut server = Server::start();
    let first = store(&server.url());
    let mut holder = member(&first);
    insist(&mut holder, vec![configure(limits())]);
    let leases = take_all(&mut holder, 6);
    let stamps: Vec<u64> = leases.iter().map(|lease| admitted_at(&holder, *lease).0).collect();
    assert_eq!(most_within(&stamps, PERIOD), 6);
    server.kill();
    server.start_again();
    let mut other = member(&first);
    insist(&mut other, vec![configure(limits())]);
    insist(&mut holder, leases.into_iter().map(commit).collect());
    assert_eq!(read_anew(&first).state().facts().leases.len(), 0, "in flight");
    pass(&server, PERIOD);
    assert_whole(&first);
}
