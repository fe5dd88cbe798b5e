//! Two hundred processes on one pool: never over, everybody is served or refused in time, and
//! afterwards everything can be had again.

use std::fmt::Write as _;

use standpipe_core::{Limit, Span};
use standpipe_servers::Server;

use crate::support::worker::{Worker, hear, say, told, told_to_play};
use crate::support::{
    admitted_at, assert_never_over, assert_whole, call, commit, configure, insist, member,
    parallel, requests, store, wait_for,
};

const PROCESSES: usize = 200;
/// As many as are started at the same time.
const BATCH: usize = 20;
const CALLS: usize = 2;
const LIMIT: usize = 60;
const PERIOD: Span = Span::millis(500);

fn limits() -> Vec<Limit> {
    vec![requests(LIMIT as u64, PERIOD), parallel(12)]
}

/// One of the crowd: makes its calls when it is told, and says when they were admitted.
#[test]
fn worker() {
    let Some(url) = told_to_play() else { return };
    let store = store(&url);
    let mut member = member(&store);
    insist(&mut member, vec![configure(limits())]);
    say("ready");
    hear().unwrap();
    let patience = Span::millis(told("PATIENCE"));
    let mut said = String::new();
    for _ in 0..CALLS {
        match wait_for(&mut member, &store, call(patience)) {
            Some(lease) => {
                write!(said, "{},", admitted_at(&member, lease).0).unwrap();
                insist(&mut member, vec![commit(lease)]);
            }
            None => said.push_str("refused,"),
        }
    }
    say(&said);
}

#[test]
fn two_hundred_processes_are_never_over_and_leave_everything_whole() {
    let server = Server::start();
    let mut crowd: Vec<Worker> = Vec::new();
    while crowd.len() < PROCESSES {
        // Every tenth is in a hurry.
        let patience = |at: usize| if at.is_multiple_of(10) { "20" } else { "600000" };
        let start =
            |at| Worker::start("crowd::worker", &server.url(), &[("PATIENCE", patience(at))]);
        let mut batch: Vec<Worker> = (0..BATCH).map(start).collect();
        for worker in &mut batch {
            assert_eq!(worker.says().as_deref(), Some("ready"));
        }
        crowd.extend(batch);
    }
    crowd.iter_mut().for_each(|worker| worker.tell("go"));
    let (mut stamps, mut refused) = (Vec::new(), 0);
    for (at, mut worker) in crowd.into_iter().enumerate() {
        for word in worker.says().unwrap().split_terminator(',') {
            match word.parse::<u64>() {
                Ok(stamp) => stamps.push(stamp),
                Err(_) => {
                    assert_eq!(at % BATCH % 10, 0, "{at} had patience");
                    refused += 1;
                }
            }
        }
        worker.ends();
    }
    assert_eq!(stamps.len() + refused, PROCESSES * CALLS, "everybody was answered");
    assert!(stamps.len() >= PROCESSES * CALLS * 9 / 10, "{refused} were refused");
    assert_never_over(&stamps, LIMIT, PERIOD);
    assert_whole(&store(&server.url()));
}
