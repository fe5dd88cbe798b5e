//! Keys that are damaged, cut short or gone: set aside and told, the pool counts as full, and the
//! living put back what they hold.

use standpipe_core::{Found, Key};
use standpipe_servers::Server;
use standpipe_store::engine::Message;
use standpipe_store::{Log, Store};
use standpipe_store_redis::RedisStore;

use crate::support::texts;
use crate::support::{
    HOUR, beat, commit, configure, insist, key, member, parallel, pool, read_anew, requests, store,
    take_all,
};

/// What is done to a pool.
struct Harm {
    name: &'static str,
    does: fn(&Server, &RedisStore),
    /// Something of it is left to be kept.
    leaves: bool,
}

const HARMS: &[Harm] = &[
    Harm { name: "an entry", does: |_, store| flip_an_entry(store), leaves: true },
    Harm { name: "a log cut short", does: |server, _| cut(server, "log"), leaves: true },
    Harm { name: "a snapshot cut short", does: |server, _| cut(server, "snapshot"), leaves: true },
    Harm { name: "a snapshot", does: |server, _| overwrite(server, "snapshot"), leaves: true },
    Harm { name: "a deleted log", does: |server, _| delete(server, "log"), leaves: true },
    Harm { name: "a deleted snapshot", does: |server, _| delete(server, "snapshot"), leaves: true },
    Harm { name: "a deleted head", does: |server, _| delete(server, "head"), leaves: true },
    Harm {
        name: "everything deleted",
        does: |server, _| drop(server.run(&["FLUSHALL"])),
        leaves: false,
    },
];

fn flip_an_entry(store: &RedisStore) {
    let mut log = store.pool_log(&pool());
    let last = read_anew(store).position().number;
    log.damage(last).unwrap();
}

fn cut(server: &Server, part: &str) {
    let script = "local whole = redis.call('GET', KEYS[1]) \
                  return redis.call('SET', KEYS[1], string.sub(whole, 1, -20), 'KEEPTTL')";
    server.run(&["EVAL", script, "1", &key(part)]);
}

fn overwrite(server: &Server, part: &str) {
    server.run(&["SETRANGE", &key(part), "9", "overwritten"]);
}

fn delete(server: &Server, part: &str) {
    assert_eq!(server.run(&["DEL", &key(part)]), "1", "{part}");
}

/// A living process with two leases and three finished calls, and a log with a snapshot in it.
fn world(
    server: &Server,
) -> (RedisStore, standpipe_store::Participant<standpipe_store_redis::RedisLog>, Vec<Key>) {
    let store = store(&server.url());
    let mut holder = member(&store);
    insist(&mut holder, vec![configure(vec![requests(10, HOUR), parallel(4)])]);
    let mut leases = take_all(&mut holder, 3);
    insist(&mut holder, leases.drain(..).map(commit).collect());
    insist(&mut holder, vec![beat(); 300]);
    store.pool_log(&pool()).write_snapshot(&holder.replica().snapshot()).unwrap();
    let leases = take_all(&mut holder, 2);
    assert_eq!(leases.len(), 2);
    (store, holder, leases)
}

#[test]
fn what_is_damaged_is_set_aside_and_the_living_put_back_what_they_hold() {
    for harm in HARMS {
        let server = Server::start();
        let (first, mut holder, leases) = world(&server);
        (harm.does)(&server, &first);
        // Somebody of the same machine who has to read everything.
        let mut newcomer = member(&first);
        if !harm.leaves {
            // To a stranger it is new; whoever was there says that it was not.
            insist(&mut holder, vec![beat()]);
        }
        insist(&mut newcomer, vec![configure(vec![requests(10, HOUR), parallel(4)])]);
        let given = take_all(&mut newcomer, 20).len();
        assert_eq!(given, 0, "{}: admitted of a limit that counts as full", harm.name);
        insist(&mut holder, vec![beat()]);
        let after = read_anew(&first);
        for lease in &leases {
            assert_eq!(after.state().find(*lease), Found::Lease, "{}", harm.name);
        }
        let news = texts(&first);
        assert!(news.contains("count as full"), "{}: {news}", harm.name);
        let aside = server.run(&["KEYS", &key("damaged:*")]);
        assert_eq!(!aside.is_empty(), harm.leaves, "{}: {aside}", harm.name);
        for kept in aside.lines() {
            let left: u64 = server.run(&["PTTL", kept]).parse().unwrap();
            assert!(left > 6 * 86_400_000, "{}: {kept} is kept for {left} ms", harm.name);
        }
        let settled = insist(&mut holder, leases.into_iter().map(commit).collect());
        assert_eq!(settled.len(), 2);
        assert_eq!(read_anew(&first).state().facts().leases.len(), 0, "{}", harm.name);
    }
}

pub(crate) const PARTS: [&str; 4] = ["head", "log", "snapshot", "previous"];

/// What anybody can do to a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deed {
    Delete,
    /// Something else is put in its place.
    Replace,
    /// Bytes are put behind it.
    Grow,
    /// Its last bytes are taken away.
    Cut,
}

impl Deed {
    pub(crate) const ALL: [Self; 4] = [Self::Delete, Self::Replace, Self::Grow, Self::Cut];

    pub(crate) fn does(self, server: &Server, part: &str) {
        let key = key(part);
        let edit = |change: &str| {
            let (read, write) = match part {
                "head" => ("'HGET', KEYS[1], 'h'", "'HSET', KEYS[1], 'h', whole"),
                _ => ("'GET', KEYS[1]", "'SET', KEYS[1], whole, 'KEEPTTL'"),
            };
            let script = format!(
                "local whole = redis.call({read}) whole = {change} return redis.call({write})"
            );
            server.run(&["EVAL", &script, "1", &key]);
        };
        match self {
            Self::Delete => delete(server, part),
            Self::Replace => {
                delete(server, part);
                server.run(&["SADD", &key, "theirs"]);
            }
            Self::Grow => edit("whole .. 'theirs'"),
            Self::Cut => edit("string.sub(whole, 1, -20)"),
        }
    }
}

#[test]
fn whatever_is_done_to_a_key_the_pool_goes_on_without_help_and_no_slot_is_held_twice() {
    for (part, deed) in PARTS.into_iter().flat_map(|part| Deed::ALL.map(|deed| (part, deed))) {
        for holder_first in [true, false] {
            let what = format!("{deed:?} {part}, the holder first: {holder_first}");
            let server = Server::start();
            let (store, mut holder, leases) = world(&server);
            insist(&mut holder, vec![beat(); 300]);
            store.pool_log(&pool()).write_snapshot(&holder.replica().snapshot()).unwrap();
            deed.does(&server, part);
            let mut newcomer = member(&store);
            if holder_first {
                insist(&mut holder, vec![beat()]);
            }
            insist(&mut newcomer, vec![configure(vec![requests(10, HOUR), parallel(4)])]);
            let given = take_all(&mut newcomer, 20);
            assert!(given.len() <= 2, "{what}: {} of the two free slots", given.len());
            insist(&mut holder, vec![beat()]);
            let after = read_anew(&store);
            for lease in &leases {
                assert_eq!(after.state().find(*lease), Found::Lease, "{what}");
            }
            insist(&mut holder, leases.into_iter().map(commit).collect());
            insist(&mut newcomer, given.into_iter().map(commit).collect());
            // It is kept short as before, too.
            for _ in 0..2 {
                insist(&mut holder, vec![beat(); 300]);
                let snapshot = holder.replica().snapshot();
                store.pool_log(&pool()).write_snapshot(&snapshot).unwrap();
            }
            assert_eq!(read_anew(&store).state().facts().leases.len(), 0, "{what}");
        }
    }
}

#[test]
fn a_snapshot_that_is_gone_does_not_keep_the_next_one_from_being_written() {
    for deed in Deed::ALL {
        let server = Server::start();
        let (store, mut holder, _) = world(&server);
        deed.does(&server, "snapshot");
        insist(&mut holder, vec![beat(); 300]);
        store.pool_log(&pool()).write_snapshot(&holder.replica().snapshot()).unwrap();
        let after = read_anew(&store);
        assert_eq!(after.position(), holder.replica().position(), "{deed:?}: the same log");
        assert_eq!(store.take_messages(), Vec::<Message>::new(), "{deed:?}");
    }
}

#[test]
fn a_list_of_pools_that_is_lost_or_replaced_is_made_again_by_who_uses_them() {
    for replaced in [false, true] {
        let server = Server::start();
        let (store, ..) = world(&server);
        assert_eq!(store.pools().unwrap(), [pool()]);
        server.run(&["DEL", "standpipe:pools"]);
        if replaced {
            server.run(&["SET", "standpipe:pools", "theirs"]);
        }
        // As after a restart: nothing but the list is asked for.
        let restarted = crate::support::store(&server.url());
        assert_eq!(restarted.pools().unwrap(), [], "replaced: {replaced}");
        insist(&mut member(&restarted), vec![beat(), beat()]);
        assert_eq!(restarted.pools().unwrap(), [pool()], "replaced: {replaced}");
        let aside = server.run(&["KEYS", "standpipe:{standpipe:pools}:damaged:*"]);
        assert_eq!(!aside.is_empty(), replaced, "{aside}");
        if replaced {
            assert_eq!(server.run(&["GET", &aside]), "theirs");
            assert!(texts(&restarted).contains(&aside));
        }
    }
}
