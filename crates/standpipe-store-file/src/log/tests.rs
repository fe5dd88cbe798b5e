//! Reads without the lock, and waiting for the lock.

use standpipe_core::Action;
use standpipe_store::{Participant, Store};

use super::*;
use crate::sys;
use crate::{FileStore, Options, Sizes};

fn beat(member: &mut Participant<FileLog>) {
    member.submit(vec![Action::Heartbeat { lease: None, ttl: None }]).unwrap();
}

#[test]
fn whoever_was_not_let_in_waits_no_second_time_as_long() {
    let name = format!("standpipe-kept-out-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let lock_timeout = 2 * RETRY_TIMEOUT;
    let options = Options { lock_timeout, ..Options::default() };
    let store = FileStore::open_with(&directory, options).unwrap();
    let mut log = store.pool_log(&"test/pool".parse().unwrap());
    let holder =
        sys::file::open_noatime(&log.ensure_open().map(|_| log.path.clone()).unwrap()).unwrap();
    holder.lock().unwrap();
    was_written_long_ago(&holder);
    assert_eq!(log.lock_timeout(), lock_timeout);
    let stuck = log.with_lock(|_, _, _| Ok(())).unwrap_err();
    assert!(stuck.is_transient() && stuck.to_string().contains("kill -9"), "{stuck}");
    assert_eq!(log.lock_timeout(), RETRY_TIMEOUT);
    holder.unlock().unwrap();
    log.with_lock(|_, _, _| Ok(())).unwrap();
    assert_eq!(log.lock_timeout(), lock_timeout);
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A pool whose store would wait for an hour, and a descriptor that holds the lock of its file. A
/// step that ignored its deadline would never return.
fn locked_pool(name: &str) -> (PathBuf, FileLog, std::fs::File) {
    let name = format!("standpipe-{name}-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let options = Options { lock_timeout: Duration::from_secs(3_600), ..Options::default() };
    let store = FileStore::open_with(&directory, options).unwrap();
    let mut log = store.pool_log(&"test/pool".parse().unwrap());
    log.ensure_open().unwrap();
    let holder = sys::file::open_noatime(&log.path).unwrap();
    holder.lock().unwrap();
    was_written_long_ago(&holder);
    (directory, log, holder)
}

/// A file that was just written is in use by processes that make progress, none is stuck.
fn was_written_long_ago(file: &std::fs::File) {
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
}

fn assert_in_use(error: &StoreError) {
    assert!(error.is_transient() && error.is_unsent(), "{error}");
    let named = format!("process {} has held the lock", std::process::id());
    assert!(error.to_string().contains(&named), "{error}");
}

#[test]
fn a_step_whose_deadline_passed_is_tried_once_and_not_sent() {
    let (directory, mut log, holder) = locked_pool("deadline");
    log.set_deadline(Some(Instant::now()));
    assert_in_use(&log.with_lock(|_, _, _| Ok(())).unwrap_err());
    let full = log.lock_timeout();
    assert_eq!(full, Duration::from_secs(3_600), "only the store's own timeout shortens the next");
    let mut member = Participant::new(log, || 7);
    // One deadline has passed, the other passes during the wait.
    for left in [Duration::ZERO, Duration::from_millis(2)] {
        member.set_deadline(Some(Instant::now() + left));
        let beat = vec![Action::Heartbeat { lease: None, ttl: None }];
        assert_in_use(&member.submit(beat).unwrap_err());
        member.give_up();
    }
    holder.unlock().unwrap();
    member.resend().unwrap();
    beat(&mut member);
    drop(member);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn the_holder_of_a_busy_lock_is_not_accused() {
    let (directory, mut log, holder) = locked_pool("busy");
    holder.set_modified(std::time::SystemTime::now()).unwrap();
    log.set_deadline(Some(Instant::now()));
    let busy = log.with_lock(|_, _, _| Ok(())).unwrap_err();
    assert!(busy.is_transient() && busy.is_unsent(), "{busy}");
    assert!(busy.to_string().starts_with("many processes use `test/pool` at once"), "{busy}");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_deadline_covers_quarantine_replacement_and_snapshots() {
    let (directory, mut log, holder) = locked_pool("deadline-rest");
    log.set_deadline(Some(Instant::now()));
    let snapshot = standpipe_store::Replica::new().snapshot();
    assert_in_use(&log.write_snapshot(&snapshot).unwrap_err());
    assert_in_use(&log.quarantine().unwrap_err());
    assert_in_use(&log.reset().unwrap_err());
    // A file that is not a pool's is renamed with its lock held.
    log.open = None;
    std::os::unix::fs::FileExt::write_all_at(&holder, &[0; 512], 0).unwrap();
    was_written_long_ago(&holder);
    assert_in_use(&log.read(Position::START).unwrap_err());
    assert_in_use(&log.append(Position::START, &[vec![1]]).unwrap_err());
    holder.unlock().unwrap();
    log.read(Position::START).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Others can overwrite what is read without the lock: a snapshot by the next but one, entries when
/// the ring wraps.
#[test]
fn what_was_overwritten_while_it_was_read_is_noticed() {
    let name = format!("standpipe-kept-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let sizes = Sizes { log: 4_096, snapshot: 4_096 };
    let options = Options { sizes, ..Options::default() };
    let store = FileStore::open_with(&directory, options).unwrap();
    let mut log = store.pool_log(&"test/pool".parse().unwrap());
    let sessions = store.clone();
    let mut member =
        Participant::new(store.pool_log(&log.pool), move || sessions.begin_session().unwrap());
    let mut snapshot = |member: &mut Participant<FileLog>| {
        beat(member);
        log.write_snapshot(&member.replica().snapshot()).unwrap();
        let file = log.ensure_open().unwrap();
        let Ok(Heads::Consecutive(head)) = file.heads() else { panic!("no head") };
        (file, head)
    };
    let (file, head) = snapshot(&mut member);
    let newcomer = ReadRange::choose(&head, &Lookup::Trimmed);
    assert!(newcomer.snapshot.is_some());
    assert!(newcomer.is_still_covered(&file, &head));
    snapshot(&mut member);
    assert!(!newcomer.is_still_covered(&file, &head), "its slot is the next to be written");

    let (file, head) = snapshot(&mut member);
    let reader = ReadRange::choose(&head, &Lookup::At(head.end));
    for _ in 0..3 {
        assert!(reader.is_still_covered(&file, &head));
        beat(&mut member);
    }
    for _ in 0..200 {
        beat(&mut member);
    }
    assert!(!reader.is_still_covered(&file, &head), "the ring wrapped");
    drop((store, member));
    std::fs::remove_dir_all(&directory).unwrap();
}
