//! Damaged files: what cannot be read counts as used, the old file is kept, and no damage ever
//! frees a unit.

use std::fs;
use std::path::PathBuf;

use standpipe_core::{Action, Limit, Rule, SEMANTICS, Span, Unit};
use standpipe_store::{Log, Store};
use standpipe_store_file::{FileStore, Options, Sizes};

use crate::support::{
    Scratch, Worker, admitted, ask, commit, configure, member, parallel, pool, told_to_play,
    write_to_the_first,
};

/// Where the mark of a renamed file is: directly before the heads.
const MARK_AT: usize = 4_096 - 1_024 - 8;

/// Five requests an hour.
fn hourly() -> Action {
    let rule = Rule::Window { unit: Unit::Requests, amount: 5, period: Span::secs(3_600) };
    configure(vec![Limit::new(rule)])
}

fn small(scratch: &Scratch) -> FileStore {
    let sizes = Sizes { log: 4_096, snapshot: 4_096 };
    FileStore::open_with(scratch.path(), Options { sizes, ..Options::default() }).unwrap()
}

/// Uses three of five requests, before, between and after two snapshots; then no process is left.
/// The last entry is an admission, so that losing it would free a request.
fn used(store: &FileStore) {
    let mut member = member(store);
    member.submit(vec![hourly()]).unwrap();
    for round in 0..3 {
        let lease = admitted(&ask(&mut member)).unwrap();
        if round < 2 {
            member.submit(vec![commit(lease)]).unwrap();
            let snapshot = member.replica().snapshot();
            store.pool_log(&pool()).write_snapshot(&snapshot).unwrap();
        }
    }
}

/// Returns how many calls a new process gets, and whether the file was quarantined.
fn newcomer_gets(store: &FileStore) -> (usize, bool) {
    let mut member = member(store);
    member.submit(vec![hourly()]).unwrap();
    let got = (0..6).filter(|_| admitted(&ask(&mut member)).is_some()).count();
    member.replica().state().check().unwrap();
    (got, !store.take_messages().is_empty())
}

fn quarantine(store: &FileStore) -> Vec<PathBuf> {
    let folder = store.path_of(&pool()).parent().unwrap().to_owned();
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.to_string_lossy().contains(".damaged-")).collect()
}

/// Damages the file at every offset in turn and checks what a new process gets.
fn at_every_place(harm: impl Fn(&mut Vec<u8>, usize) -> bool) {
    let scratch = Scratch::new();
    let store = small(&scratch);
    used(&store);
    let path = store.path_of(&pool());
    let whole = fs::read(&path).unwrap();
    let (mut intact, mut anew) = (0, 0);
    for place in 0..whole.len() {
        let mut bytes = whole.clone();
        if !harm(&mut bytes, place) {
            continue;
        }
        write_to_the_first(&path, &bytes);
        match newcomer_gets(&store) {
            (2, false) => intact += 1,
            (0, true) => {
                anew += 1;
                let aside = quarantine(&store);
                assert_eq!(aside.len(), 1, "{place}: {aside:?}");
                // Nothing was removed, so that the damage can be examined.
                let kept = fs::read(&aside[0]).unwrap();
                assert!(kept.len() >= bytes.len(), "{place}");
                fs::remove_file(&aside[0]).unwrap();
            }
            other => panic!("{place}: {other:?} of 2 that are left"),
        }
    }
    assert!(intact > 0 && anew > 0, "{intact} intact, {anew} anew: both happen");
}

#[test]
fn b52_every_byte_flipped_never_mints_a_unit() {
    // A flip in unused bytes changes nothing; one in sixteen of those is enough.
    at_every_place(|bytes, place| {
        let matters = bytes[place] != 0 || place % 16 == 0;
        bytes[place] ^= 1 << (place % 8);
        matters
    });
}

#[test]
fn b52_cut_at_every_place_never_mints_a_unit() {
    at_every_place(|bytes, place| {
        bytes.truncate(place);
        place % 4 == 0
    });
}

#[test]
fn b52_what_is_not_a_ledger_at_all_is_kept_and_allows_nothing() {
    for content in [&b""[..], b"{\"agents\": {}}\n", &[0; 100_000], &[0xff; 100_000]] {
        let scratch = Scratch::new();
        let store = small(&scratch);
        used(&store);
        fs::write(store.path_of(&pool()), content).unwrap();
        assert_eq!(newcomer_gets(&store), (0, true));
        assert_eq!(fs::read(&quarantine(&store)[0]).unwrap(), content);
    }
}

#[test]
fn b52_the_news_says_what_happened_where_it_is_and_what_follows() {
    let scratch = Scratch::new();
    let store = small(&scratch);
    used(&store);
    fs::write(store.path_of(&pool()), b"nonsense").unwrap();
    let mut member = member(&store);
    member.submit(vec![hourly()]).unwrap();
    let news = store.take_messages();
    assert_eq!(news.len(), 1);
    for word in ["`test/pool`", "damaged", ".damaged-", "count as full"] {
        assert!(news[0].text.contains(word), "{word} in {}", news[0].text);
    }
    assert!(store.take_messages().is_empty(), "a warning is returned once");
}

#[test]
fn b52_a_living_process_puts_back_what_it_holds() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut living = member(&store);
    living.submit(vec![configure(vec![parallel(2)])]).unwrap();
    let lease = admitted(&ask(&mut living)).unwrap();
    store.pool_log(&pool()).damage(1).unwrap();
    let other = scratch.store();
    let mut newcomer = member(&other);
    newcomer.refresh().unwrap();
    assert_eq!(other.take_messages().len(), 1, "the newcomer finds the damage");
    assert!(admitted(&ask(&mut newcomer)).is_none(), "nobody knows what is in flight");
    living.refresh().unwrap();
    newcomer.refresh().unwrap();
    let facts = newcomer.replica().state().facts().clone();
    assert!(facts.leases.contains_key(&lease), "{facts:?}");
    assert!(facts.config.is_some(), "the limits were carried over");
    living.submit(vec![commit(lease)]).unwrap();
}

#[test]
fn a_quarantine_is_noticed_at_the_next_step() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut living = member(&store);
    living.submit(vec![configure(vec![parallel(2)])]).unwrap();
    let mut newcomer = member(&scratch.store());
    store.pool_log(&pool()).damage(1).unwrap();
    admitted(&ask(&mut living)).unwrap();
    newcomer.refresh().unwrap();
    assert!(admitted(&ask(&mut living)).is_none(), "it does not go on in the renamed file");
    let kept = &quarantine(&store)[0];
    // Put back by hand it is damaged again, whatever it was marked with.
    fs::rename(kept, store.path_of(&pool())).unwrap();
    assert!(admitted(&ask(&mut living)).is_none());
    assert_eq!(quarantine(&store).len(), 1);
}

#[test]
fn a_renamed_ledger_that_is_put_back_is_used_and_loses_its_mark() {
    let scratch = Scratch::new();
    let store = scratch.store();
    used(&store);
    let path = store.path_of(&pool());
    let mut bytes = fs::read(&path).unwrap();
    bytes[MARK_AT] = 1;
    write_to_the_first(&path, &bytes);
    assert_eq!(newcomer_gets(&store), (2, false));
    assert_eq!(fs::read(&path).unwrap()[MARK_AT], 0);
}

#[test]
fn a_file_with_two_names_is_missed_when_one_is_deleted() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let path = store.path_of(&pool());
    let mut living = member(&store);
    living.submit(vec![configure(vec![parallel(2)])]).unwrap();
    fs::hard_link(&path, scratch.path().join("backup")).unwrap();
    admitted(&ask(&mut living)).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(admitted(&ask(&mut living)).is_none(), "a lost ledger is not a new quota");
}

#[test]
fn a_newer_file_is_refused_and_left_alone() {
    let scratch = Scratch::new();
    let store = small(&scratch);
    used(&store);
    let path = store.path_of(&pool());
    store.pool_log(&pool()).set_semantics(SEMANTICS + 1).unwrap();
    let before = fs::read(&path).unwrap();
    let error = member(&store).submit(vec![hourly()]).unwrap_err();
    assert!(error.is_incompatible(), "{error}");
    assert!(error.to_string().contains("newer Standpipe"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);

    let mut label = before;
    standpipe_store_file::fault_injection::set_format(&mut label, 3);
    fs::write(&path, &label).unwrap();
    let error = member(&store).submit(vec![hourly()]).unwrap_err();
    assert!(error.is_incompatible() && error.to_string().contains("update this one"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), label);
}

/// A process with a session on the store.
#[test]
fn worker() {
    let Some(home) = told_to_play() else { return };
    let store = FileStore::open(&home).unwrap();
    store.begin_session().unwrap();
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "> here");
    std::thread::sleep(std::time::Duration::from_secs(600));
}

#[test]
fn an_older_pool_is_refused_while_somebody_uses_it_and_begins_anew_after() {
    let scratch = Scratch::new();
    let store = small(&scratch);
    used(&store);
    let mut worker = Worker::start("damage::worker", scratch.path(), &[]);
    assert_eq!(worker.says().as_deref(), Some("here"));
    store.pool_log(&pool()).set_semantics(SEMANTICS - 1).unwrap();
    let error = member(&store).submit(vec![hourly()]).unwrap_err();
    assert!(error.is_incompatible(), "{error}");
    let named = error.to_string().contains(&worker.pid().to_string());
    assert!(named, "{error} does not name {}", worker.pid());
    worker.kill();
    assert_eq!(newcomer_gets(&store), (0, true), "what was used is not known");
}

#[test]
fn a_pool_in_an_older_format_is_refused_while_somebody_uses_it_and_begins_anew_after() {
    let scratch = Scratch::new();
    let store = small(&scratch);
    used(&store);
    let path = store.path_of(&pool());
    let mut older = fs::read(&path).unwrap();
    standpipe_store_file::fault_injection::set_format(&mut older, 1);
    fs::write(&path, &older).unwrap();
    let mut worker = Worker::start("damage::worker", scratch.path(), &[]);
    assert_eq!(worker.says().as_deref(), Some("here"));
    let error = member(&store).submit(vec![hourly()]).unwrap_err();
    assert!(error.is_incompatible() && error.to_string().contains("older format"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), older, "it is left alone");
    worker.kill();
    assert_eq!(newcomer_gets(&store), (0, true), "what was used is not known");
    assert_eq!(fs::read(&store.quarantined_files()[0]).unwrap(), older, "it is kept");
}

/// Pools that earlier versions wrote, with semantics 4 and 7 to 9: none of it can be read, so its
/// limits count as full. It is usable at once. The first two files also have the first format,
/// whose heads carry no entries.
#[test]
fn a_pool_of_the_previous_version_is_taken_over() {
    let fixtures: [&[u8]; 4] = [
        include_bytes!("fixtures/semantics-4.pool.gz"),
        include_bytes!("fixtures/semantics-7.pool.gz"),
        include_bytes!("fixtures/semantics-8.pool.gz"),
        include_bytes!("fixtures/semantics-9.pool.gz"),
    ];
    for kept in fixtures {
        let scratch = Scratch::new();
        let store = FileStore::open(scratch.path()).unwrap();
        let path = store.path_of(&pool());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::File::create(&path).unwrap();
        std::io::copy(&mut flate2::read::GzDecoder::new(kept), &mut file).unwrap();
        assert_eq!(newcomer_gets(&store), (0, true), "what was used is not known");
        assert_eq!(newcomer_gets(&store).0, 0, "and it is not taken over twice");
    }
}
