//! An older copy replaces a pool's file while processes use the pool.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use standpipe_core::{Action, Instant, Limit, Rule, Span, Unit, bounds};
use standpipe_store::{Participant, Store};
use standpipe_store_file::{FileLog, FileStore, Options, Time};

use crate::support::{Scratch, admitted, ask, commit, configure, member, parallel, pool};

/// A pool with five requests an hour and three slots, and two processes on it.
struct World {
    scratch: Scratch,
    clock: Arc<AtomicU64>,
    path: PathBuf,
    a: Participant<FileLog>,
    b: Participant<FileLog>,
}

impl World {
    fn new() -> Self {
        let (scratch, clock) = (Scratch::new(), Arc::new(AtomicU64::new(bounds::SPAN.0 * 2)));
        let store = open(&scratch, &clock);
        let path = store.path_of(&pool());
        let mut a = member(&store);
        let period = Span::secs(3_600);
        let hourly = Limit::new(Rule::Window { unit: Unit::Requests, amount: 5, period });
        a.submit(vec![configure(vec![hourly, parallel(3)])]).unwrap();
        let mut b = member(&open(&scratch, &clock));
        b.refresh().unwrap();
        Self { scratch, clock, path, a, b }
    }

    fn pass(&self, seconds: u64) {
        self.clock.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }

    /// Restores the file as it was before `act`: as another file, or by overwriting the same one.
    fn undo(&mut self, renames: bool, act: impl FnOnce(&mut Self)) {
        let copy = fs::read(&self.path).unwrap();
        act(self);
        match renames {
            true => {
                let draft = self.path.with_extension("copy");
                fs::write(&draft, copy).unwrap();
                fs::rename(&draft, &self.path).unwrap();
            }
            false => fs::write(&self.path, copy).unwrap(),
        }
    }
}

fn open(scratch: &Scratch, clock: &Arc<AtomicU64>) -> FileStore {
    let clock = Arc::clone(clock);
    let clock: standpipe_store::Clock = Arc::new(move || Instant(clock.load(Ordering::Relaxed)));
    let time = Time::machine(clock.clone(), clock, 1);
    FileStore::open_with(scratch.path(), Options { time, ..Options::default() }).unwrap()
}

fn count(member: &mut Participant<FileLog>) -> usize {
    let grants = (0..10).filter_map(|_| admitted(&ask(member)));
    grants.collect::<Vec<_>>().len()
}

#[test]
fn nothing_is_admitted_until_everybody_has_restored_what_a_copy_lacks() {
    for renames in [true, false] {
        let mut world = World::new();
        world.undo(renames, |world| {
            assert_eq!(count(&mut world.b), 3, "three slots");
            // In the same file only a process that had read further detects the copy.
            world.a.refresh().unwrap();
        });
        assert_eq!(count(&mut world.a), 0, "b has not looked yet, renames: {renames}");
        world.b.refresh().unwrap();
        world.pass(60);
        assert_eq!(count(&mut world.a), 0, "b holds all slots again, renames: {renames}");
    }
}

#[test]
fn a_process_that_starts_after_the_copy_was_put_there_admits_nothing_either() {
    let mut world = World::new();
    world.undo(true, |world| assert_eq!(count(&mut world.b), 3));
    let mut newcomer = member(&open(&world.scratch, &world.clock));
    assert_eq!(count(&mut newcomer), 0, "no process has restored what the copy lacks");
    world.b.refresh().unwrap();
    world.pass(60);
    assert_eq!(count(&mut newcomer), 0);
}

#[test]
fn a_copy_that_lacks_nothing_pauses_the_pool_only_once() {
    let mut world = World::new();
    world.undo(true, |_| ());
    assert_eq!(count(&mut world.a), 0);
    world.pass(60);
    let lease = admitted(&ask(&mut world.a)).unwrap();
    world.a.submit(vec![commit(lease)]).unwrap();
    world.pass(60);
    let mut newcomer = member(&open(&world.scratch, &world.clock));
    assert!(admitted(&ask(&mut newcomer)).is_some());
}

/// A process that cannot begin another session keeps the one it has. A key that it used before
/// would name another lease: a late commit of the first would end the second.
#[test]
fn no_lease_has_the_key_of_one_that_a_deleted_ledger_had() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let [first, later] = [(); 2].map(|()| store.begin_session().unwrap());
    // When the ledger is deleted the first attempt to begin another session fails.
    let mut sessions = [first, first].into_iter();
    let mut member =
        Participant::new(store.pool_log(&pool()), move || sessions.next().unwrap_or(later));
    member.submit(vec![configure(vec![parallel(9)])]).unwrap();
    let mut before = Vec::new();
    for _ in 0..20 {
        let lease = admitted(&ask(&mut member)).unwrap();
        member.submit(vec![Action::Cancel { lease }]).unwrap();
        before.push(lease);
    }
    fs::remove_dir_all(scratch.path().join("pools")).unwrap();
    fs::create_dir(scratch.path().join("pools")).unwrap();
    member.submit(vec![configure(vec![parallel(9)])]).unwrap();
    let after: Vec<_> = (0..9).filter_map(|_| admitted(&ask(&mut member))).collect();
    let again = after.iter().find(|lease| before.contains(lease));
    assert!(!after.is_empty() && again.is_none(), "{again:?} of {after:?}");
}
