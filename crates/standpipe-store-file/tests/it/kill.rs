//! Real processes killed and stopped at every failpoint: survivors continue, slots are freed, and
//! no unit is created.

use std::io::Write;

use rustix::process::Signal;
use standpipe_store::layout::encode_state;
use standpipe_store::{Liveness, Participant, Store};
use standpipe_store_file::{FileLog, FileStore, failpoint};

use crate::support::{
    Scratch, Worker, admitted, as_read_anew, ask, bury_the_dead, commit, configure, is_dead, lives,
    member, more, parallel, pool, told_to_play, wait_for,
};

/// A process that takes and releases a slot repeatedly and prints each time.
#[test]
fn worker() {
    let Some(home) = told_to_play() else { return };
    let store = FileStore::open(&home).unwrap();
    let mut member = member(&store);
    let rounds = std::env::var("ROUNDS").map_or(u64::MAX, |rounds| rounds.parse().unwrap());
    let mut out = std::io::stdout();
    for _ in 0..rounds {
        let lease = wait_for(&mut member, &store);
        let _ = writeln!(out, "> held");
        member.submit(vec![commit(lease)]).unwrap();
        // Write a snapshot, so that its failpoints are reached too.
        let snapshot = member.replica().snapshot();
        standpipe_store::Log::write_snapshot(&mut store.pool_log(&pool()), &snapshot).unwrap();
    }
}

/// Returns a participant on a pool with two slots.
fn two_slots(store: &FileStore) -> Participant<FileLog> {
    let mut member = member(store);
    member.submit(vec![configure(vec![parallel(2)])]).unwrap();
    member
}

/// When dead sessions have ended there are two free slots, and no third.
fn assert_whole(member: &mut Participant<FileLog>, store: &FileStore, after: &str) {
    bury_the_dead(member, store);
    let taken: Vec<_> = (0..3).filter_map(|_| admitted(&ask(member))).collect();
    assert_eq!(taken.len(), 2, "slots after {after}");
    member.submit(taken.into_iter().map(commit).collect()).unwrap();
    let ours = encode_state(member.replica().state().facts());
    assert_eq!(as_read_anew(store), ours, "replicas after {after}");
}

#[test]
fn b25_killed_at_every_point_a_process_loses_nothing_but_itself() {
    let elsewhere = ["damage quarantined", "reboot detected"];
    for label in failpoint::ALL.iter().filter(|label| !elsewhere.contains(label)) {
        // Only the process that creates the pool reaches "pool written" and "pool linked".
        let makes = label.starts_with("pool");
        for time in 1..=if makes || label.starts_with("session") { 1 } else { 4 } {
            let scratch = Scratch::new();
            let store = scratch.store();
            let mut before = (!makes).then(|| two_slots(&store));
            let at = format!("{label}:{time}");
            let mut worker = Worker::start(
                "kill::worker",
                scratch.path(),
                &[("STANDPIPE_KILL_AT", &at), ("ROUNDS", "50")],
            );
            let ended = worker.child.wait().unwrap();
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(9), "{at}");
            let mut survivor = before.take().unwrap_or_else(|| two_slots(&store));
            assert_whole(&mut survivor, &store, &at);
        }
    }
}

#[test]
fn b25_killed_at_random_no_slot_is_lost_and_none_is_minted() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut survivor = two_slots(&store);
    let mut chance = Chance(42);
    let mut workers: Vec<Worker> = Vec::new();
    for _ in 0..400 * more() {
        while workers.len() < 4 {
            workers.push(Worker::start("kill::worker", scratch.path(), &[]));
        }
        // After some of its rounds, at any instant of the next.
        let mut victim = workers.swap_remove(chance.below(4));
        for _ in 0..chance.below(6) {
            victim.says();
            bury_the_dead(&mut survivor, &store);
        }
        for _ in 0..chance.below(2_000) {
            std::hint::spin_loop();
        }
        victim.kill();
        bury_the_dead(&mut survivor, &store);
        let in_flight = survivor.replica().state().facts().leases.len();
        assert!(in_flight <= 2, "{in_flight} slots of 2 are held");
    }
    for worker in workers {
        worker.kill();
    }
    assert_whole(&mut survivor, &store, "hundreds of kills");
    let left = std::fs::read_dir(scratch.path().join("sessions")).unwrap();
    let is_proof = |name: &str| name.ends_with(".lock");
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // Lock files of dead sessions are kept for a while; all other files only until a sweep.
    let left = names.filter(|name| !is_proof(name)).count();
    assert!(left < 400, "{left} files of dead sessions are left");
}

#[test]
fn b02_stopped_between_steps_a_process_keeps_only_what_it_holds() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut survivor = two_slots(&store);
    let mut worker = Worker::start(
        "kill::worker",
        scratch.path(),
        &[("STANDPIPE_STOP_AT", "lock released:2"), ("ROUNDS", "3")],
    );
    wait_until_stopped(worker.pid());
    bury_the_dead(&mut survivor, &store);
    let held = survivor.replica().state().facts().leases.len();
    let mut taken = Vec::new();
    while let Some(lease) = admitted(&ask(&mut survivor)) {
        taken.push(lease);
    }
    assert_eq!(taken.len() + held, 2, "a stopped process is alive: what it holds is its own");
    survivor.submit(taken.into_iter().map(commit).collect()).unwrap();
    worker.signal(Signal::CONT);
    assert!(worker.child.wait().unwrap().success());
    assert_whole(&mut survivor, &store, "a stop between steps");
}

#[test]
fn b03_stopped_inside_a_step_a_process_is_waited_for_and_named() {
    for label in ["lock taken:3", "entry written:2", "head written:2", "snapshot written"] {
        let scratch = Scratch::new();
        let hasty = scratch.hasty_store();
        let mut survivor = two_slots(&hasty);
        let mut worker = Worker::start(
            "kill::worker",
            scratch.path(),
            // Only every dozenth entry is written to the ring.
            &[("STANDPIPE_STOP_AT", label), ("ROUNDS", "30")],
        );
        wait_until_stopped(worker.pid());
        let waited = survivor.submit(vec![configure(vec![parallel(1)])]);
        let error = waited.expect_err("it is inside the step");
        assert!(error.is_transient(), "{label}: {error}");
        let named = format!("process {} is stopped", worker.pid());
        assert!(error.to_string().contains(&named), "{label}: {error}");
        worker.signal(Signal::CONT);
        assert!(worker.child.wait().unwrap().success(), "{label}");
        survivor.resend().unwrap();
        bury_the_dead(&mut survivor, &hasty);
        assert!(survivor.replica().state().facts().leases.is_empty(), "{label}");
    }
}

#[test]
fn b03_while_somebody_is_inside_a_step_everybody_waits_and_nobody_fails() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut first = two_slots(&store);
    let file = std::fs::File::open(store.path_of(&pool())).unwrap();
    file.lock().unwrap();
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let store = scratch.store();
            std::thread::spawn(move || ask(&mut member(&store)))
        })
        .collect();
    // Until all of them wait for the lock.
    let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
    let at_the_lock = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let waits = |line: &&str| line.contains("->") && line.contains(&format!(":{inode} "));
        locks.lines().filter(waits).count()
    };
    while at_the_lock() < 4 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    file.unlock().unwrap();
    let admissions = callers.into_iter().filter_map(|caller| admitted(&caller.join().unwrap()));
    assert_eq!(admissions.count(), 2);
    first.refresh().unwrap();
    assert_eq!(first.replica().state().facts().leases.len(), 2);
}

#[test]
fn b29_a_dead_session_is_seen_by_its_lock_and_not_by_its_process_id() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut survivor = two_slots(&store);
    let mut worker = Worker::start("kill::worker", scratch.path(), &[]);
    assert_eq!(worker.says().as_deref(), Some("held"));
    let theirs = session_of_another(&mut survivor);
    assert!(lives(&store, theirs));
    assert_eq!(store.process_of(theirs).map(|process| process.pid), Some(worker.pid()));
    worker.signal(Signal::STOP);
    wait_until_stopped(worker.pid());
    assert!(lives(&store, theirs), "stopped is not dead");
    assert_eq!(store.process_of(theirs).map(|process| process.stopped), Some(true));
    worker.kill();
    assert!(is_dead(&store, theirs));
    // Another process now has that pid and even a file of the same name, but no lock on it.
    let name = format!("{theirs:014x}.lock");
    std::fs::write(scratch.path().join("sessions").join(name), std::process::id().to_string())
        .unwrap();
    assert!(is_dead(&store, theirs));
}

/// Deleting session files does not end living sessions.
#[test]
fn b29_a_session_whose_file_was_deleted_is_not_taken_for_dead() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut survivor = two_slots(&store);
    let mut worker = Worker::start("kill::worker", scratch.path(), &[]);
    assert_eq!(worker.says().as_deref(), Some("held"));
    let theirs = session_of_another(&mut survivor);
    for file in std::fs::read_dir(scratch.path().join("sessions")).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    assert_eq!(store.liveness(theirs), Liveness::Unknown);
    worker.kill();
}

/// A session can hold something in several pools, so the process that finds it dead in one keeps
/// the proof for the others.
#[test]
fn b29_a_dead_session_is_seen_by_everybody_who_looks() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut survivor = two_slots(&store);
    let mut worker = Worker::start("kill::worker", scratch.path(), &[]);
    assert_eq!(worker.says().as_deref(), Some("held"));
    let theirs = session_of_another(&mut survivor);
    worker.kill();
    assert!(
        is_dead(&store, theirs) && is_dead(&store, theirs) && is_dead(&scratch.store(), theirs)
    );
}

#[test]
fn b28_two_waiters_bury_the_same_dead_session_once() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut first = two_slots(&store);
    let mut worker =
        Worker::start("kill::worker", scratch.path(), &[("STANDPIPE_STOP_AT", "lock released:1")]);
    wait_until_stopped(worker.pid());
    worker.signal(Signal::KILL);
    worker.child.wait().unwrap();
    let (one, other) = (scratch.store(), scratch.store());
    let (mut second, mut third) = (member(&one), member(&other));
    let dead = session_of_another(&mut first);
    // Both find it dead before either appends its end.
    assert!(is_dead(&one, dead) && is_dead(&other, dead));
    for waiter in [&mut second, &mut third] {
        waiter.submit(vec![standpipe_core::Action::SessionEnded { session: dead }]).unwrap();
    }
    assert_whole(&mut first, &store, "two undertakers");
}

#[test]
fn b26_b27_a_holder_that_was_given_up_learns_it_and_frees_nobody_elses_slot() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut holder = two_slots(&store);
    let lease = admitted(&ask(&mut holder)).unwrap();
    let other = scratch.store();
    let mut successor = member(&other);
    successor
        .submit(vec![standpipe_core::Action::SessionEnded { session: holder.session() }])
        .unwrap();
    let taken: Vec<_> = (0..2).filter_map(|_| admitted(&ask(&mut successor))).collect();
    assert_eq!(taken.len(), 2);
    // The old holder returns and commits: the answer is that the lease is gone, and both slots stay
    // with the new holders.
    let outcomes = holder.submit(vec![commit(lease)]).unwrap();
    let gone = standpipe_core::Answer::Lease(standpipe_core::LeaseAnswer::Gone);
    assert_eq!(outcomes[0].answer, gone);
    assert!(admitted(&ask(&mut holder)).is_none());
}

fn session_of_another(member: &mut Participant<FileLog>) -> u64 {
    member.refresh().unwrap();
    let own = member.session();
    let mut sessions = member.replica().state().facts().sessions.keys().copied();
    sessions.find(|session| *session != own).unwrap()
}

fn wait_until_stopped(pid: u32) {
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        match stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().next()) {
            Some("T") => return,
            Some("Z" | "X") | None => panic!("it ended instead of stopping"),
            _ => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    }
}

/// A deterministic random generator.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound).unwrap()
    }
}
