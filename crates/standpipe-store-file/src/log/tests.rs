//! What is read without the lock, and who waits for it.

use standpipe_core::Action;
use standpipe_store::{Member, Store};

use super::*;
use crate::{FileStore, Options, Sizes};

fn beat(member: &mut Member<FileLog>) {
    member.submit(vec![Action::Heartbeat { lease: None, ttl: None }]).unwrap();
}

#[test]
fn whoever_was_not_let_in_waits_no_second_time_as_long() {
    let name = format!("standpipe-kept-out-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let patience = 2 * ONCE_MORE;
    let options = Options { patience, ..Options::default() };
    let store = FileStore::open_with(&directory, options).unwrap();
    let mut log = store.pool_log(&"test/pool".parse().unwrap());
    let inside = sys::open_quietly(&log.opened().map(|_| log.path.clone()).unwrap()).unwrap();
    inside.lock().unwrap();
    assert_eq!(log.patience(), patience);
    let stuck = log.step(|_, _, _| Ok(())).unwrap_err();
    assert!(stuck.is_transient() && stuck.to_string().contains("kill -9"), "{stuck}");
    assert_eq!(log.patience(), ONCE_MORE);
    inside.unlock().unwrap();
    log.step(|_, _, _| Ok(())).unwrap();
    assert_eq!(log.patience(), patience);
    std::fs::remove_dir_all(&directory).unwrap();
}

/// What is read without the lock can be overwritten meanwhile: a snapshot by the next but one,
/// entries by the ring's next round.
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
        Member::new(store.pool_log(&log.pool), move || sessions.begin_session().unwrap());
    let mut snapshot = |member: &mut Member<FileLog>| {
        beat(member);
        log.write_snapshot(&member.replica().snapshot()).unwrap();
        let file = log.opened().unwrap();
        let Ok(Heads::Whole(head)) = file.heads() else { panic!("no head") };
        (file, head)
    };
    let (file, head) = snapshot(&mut member);
    let newcomer = FileLog::stretch(&head, &Found::Trimmed);
    assert!(newcomer.snapshot.is_some());
    assert!(FileLog::was_kept(&file, &head, &newcomer));
    snapshot(&mut member);
    assert!(!FileLog::was_kept(&file, &head, &newcomer), "its place is the next to be written");

    let (file, head) = snapshot(&mut member);
    let reader = FileLog::stretch(&head, &Found::At(head.end));
    for _ in 0..3 {
        assert!(FileLog::was_kept(&file, &head, &reader));
        beat(&mut member);
    }
    for _ in 0..200 {
        beat(&mut member);
    }
    assert!(!FileLog::was_kept(&file, &head, &reader), "the ring went round");
    drop((store, member));
    std::fs::remove_dir_all(&directory).unwrap();
}
