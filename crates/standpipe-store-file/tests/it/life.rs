//! Operation: files deleted, moved, restored and unwritable, full disks, other users, reboots,
//! several handles in one process.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use standpipe_core::{Action, Answer, Decision, Instant, Limit, Reserve, Rule, Span, Unit, bounds};
use standpipe_store::{Clock, Store};
use standpipe_store_file::{Audience, FileStore, Options, Time};

use crate::support::{
    Scratch, admitted, ask, bury_the_dead, commit, configure, lives, member, parallel, pool,
    reserve, told_to_play,
};

fn per_minute(amount: u64) -> Limit {
    Limit::new(Rule::Window { unit: Unit::Requests, amount, period: Span::secs(60) })
}

#[test]
fn b16_a_file_deleted_while_open_is_missed_and_what_lives_comes_back() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut living = member(&store);
    living.submit(vec![configure(vec![per_minute(3), parallel(3)])]).unwrap();
    let lease = admitted(&ask(&mut living)).unwrap();
    fs::remove_file(store.path_of(&pool())).unwrap();
    let other = scratch.store();
    let mut newcomer = member(&other);
    newcomer.submit(vec![configure(vec![per_minute(3), parallel(3)])]).unwrap();
    assert!(admitted(&ask(&mut newcomer)).is_none(), "a lost ledger is not a new quota");
    assert!(other.take_messages().iter().any(|news| news.text.contains("deleted")));
    living.refresh().unwrap();
    newcomer.refresh().unwrap();
    assert!(newcomer.replica().state().facts().leases.contains_key(&lease));
    // The process that detects it first can also be the one that holds a lease.
    fs::remove_file(store.path_of(&pool())).unwrap();
    living.refresh().unwrap();
    assert!(living.replica().state().facts().leases.contains_key(&lease));
    assert!(admitted(&ask(&mut living)).is_none());
}

#[test]
fn a_directory_removed_whole_is_a_new_start() {
    let scratch = Scratch::new();
    let mut first = member(&scratch.store());
    first.submit(vec![configure(vec![parallel(1)])]).unwrap();
    admitted(&ask(&mut first)).unwrap();
    drop(first);
    fs::remove_dir_all(scratch.path()).unwrap();
    let mut second = member(&scratch.store());
    second.submit(vec![configure(vec![parallel(1)])]).unwrap();
    assert!(admitted(&ask(&mut second)).is_some());
}

#[test]
fn an_older_copy_put_in_its_place_is_seen_as_a_fork() {
    for in_place in [true, false] {
        let scratch = Scratch::new();
        let store = scratch.store();
        let path = store.path_of(&pool());
        let mut living = member(&store);
        living.submit(vec![configure(vec![parallel(2)])]).unwrap();
        let copy = fs::read(&path).unwrap();
        let lease = admitted(&ask(&mut living)).unwrap();
        if in_place {
            fs::write(&path, &copy).unwrap();
        } else {
            fs::write(scratch.path().join("copy"), &copy).unwrap();
            fs::rename(scratch.path().join("copy"), &path).unwrap();
        }
        // Another process uses the old copy before the living one reads.
        let other = scratch.store();
        let mut newcomer = member(&other);
        for _ in 0..2 {
            newcomer.submit(vec![Action::Heartbeat { lease: None, ttl: None }]).unwrap();
        }
        let taken = admitted(&ask(&mut newcomer));
        assert_eq!(taken.is_some(), in_place, "another file is known to be a copy");
        assert!(admitted(&ask(&mut living)).is_none(), "its own and the newcomer's");
        newcomer.refresh().unwrap();
        let leases = &newcomer.replica().state().facts().leases;
        assert!(leases.contains_key(&lease), "{in_place}");
        assert!(taken.is_none_or(|taken| leases.contains_key(&taken)));
    }
}

#[test]
fn a_file_moved_away_is_a_lost_one() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut living = member(&store);
    living.submit(vec![configure(vec![parallel(2)])]).unwrap();
    let lease = admitted(&ask(&mut living)).unwrap();
    fs::rename(store.path_of(&pool()), scratch.path().join("elsewhere")).unwrap();
    // Nothing about the open file tells that it was renamed, so the path is looked at, once per
    // 100 µs.
    thread::sleep(Duration::from_micros(200));
    let outcomes = living.submit(vec![commit(lease)]).unwrap();
    assert!(matches!(outcomes[0].answer, Answer::Lease(_)), "{outcomes:?}");
    assert!(admitted(&ask(&mut living)).is_none(), "nothing is known of the others' calls");
}

#[test]
fn b50_two_handles_in_one_process_exclude_and_see_each_other() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.store(), scratch.store());
    let (mut first, mut second) = (member(&one), member(&other));
    first.submit(vec![configure(vec![parallel(1)])]).unwrap();
    let lease = admitted(&ask(&mut first)).unwrap();
    assert!(admitted(&ask(&mut second)).is_none());
    // The kernel drops a record lock when its process closes any descriptor of the file; a test of
    // liveness must not do that.
    assert!(lives(&other, first.session()));
    bury_the_dead(&mut second, &other);
    assert!(admitted(&ask(&mut second)).is_none());
    first.submit(vec![commit(lease)]).unwrap();
    let lease = admitted(&ask(&mut second)).unwrap();
    drop((first, one));
    assert!(lives(&other, second.session()));
    second.submit(vec![commit(lease)]).unwrap();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let store = scratch.store();
            std::thread::spawn(move || {
                let mut member = member(&store);
                (0..50).filter_map(|_| admitted(&ask(&mut member))).count()
            })
        })
        .collect();
    let got: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(got, 1, "of eight threads with a handle each");
}

#[test]
fn a_session_that_ended_leaves_no_files() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let session = store.begin_session().unwrap();
    let second = store.begin_session().unwrap();
    let count = || fs::read_dir(scratch.path().join("sessions")).unwrap().count();
    assert_eq!(count(), 4);
    store.end_session(session);
    assert_eq!(count(), 2);
    assert!(lives(&store, second));
    store.end_session(second);
    assert_eq!(count(), 0);
}

#[test]
fn private_and_shared_directories_have_the_modes_they_should() {
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    let own = Scratch::new();
    let store = own.store();
    member(&store).submit(vec![configure(vec![parallel(1)])]).unwrap();
    assert_eq!(mode(own.path()), 0o700);
    assert_eq!(mode(&store.path_of(&pool())), 0o600);
    assert!(own.path().join("CACHEDIR.TAG").exists());
    let shared = Scratch::new();
    let options = Options { audience: Audience::Group, ..Options::default() };
    let store = FileStore::open_with(shared.path(), options).unwrap();
    member(&store).submit(vec![configure(vec![parallel(1)])]).unwrap();
    assert_eq!(mode(shared.path()), 0o2770);
    assert_eq!(mode(&shared.path().join("pools")), 0o2770);
    assert_eq!(mode(&store.path_of(&pool())), 0o660);
}

#[test]
fn a_directory_for_everybody_is_refused_and_one_of_others_keeps_its_mode() {
    let open = Scratch::new();
    fs::create_dir(open.path()).unwrap();
    let refused = |mode: u32| {
        fs::set_permissions(open.path(), Permissions::from_mode(mode)).unwrap();
        let error = FileStore::open(open.path()).unwrap_err().to_string();
        assert!(error.starts_with("every user can write to "), "{error}");
        error
    };
    let own = format!("run chmod 700 {}", open.path().display());
    assert!(refused(0o777).contains(&own), "no other user has it");
    // Such as /tmp: every program of the machine needs its mode.
    let in_it = format!("in it: STANDPIPE_HOME={}/standpipe (or", open.path().display());
    let sticky = refused(0o1777);
    assert!(sticky.contains(&in_it) && !sticky.contains("chmod"), "{sticky}");
    if rustix::process::geteuid().is_root() {
        let foreign = open.path().join("foreign");
        fs::write(&foreign, "").unwrap();
        std::os::unix::fs::chown(&foreign, Some(4_711), None).unwrap();
        assert!(refused(0o777).contains(&in_it), "it has a file of another user");
    }
}

/// A process of another user: reserves once and prints the result.
#[test]
fn worker() {
    let Some(home) = told_to_play() else { return };
    let said = match FileStore::open(&home) {
        Err(error) => error.to_string(),
        Ok(store) => {
            let mut member = member(&store);
            match member.submit(vec![configure(vec![parallel(1)]), Action::from(reserve())]) {
                Err(error) => error.to_string(),
                Ok(outcomes) => format!("{:?}", outcomes[1].answer),
            }
        }
    };
    let _ = writeln!(std::io::stdout(), "> {said}");
}

/// Returns what a process of another user prints; `None` unless this process is root.
fn as_user(user: u32, group: u32, home: &Path) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let binary = home.with_extension("binary");
    // `cp` writes it, not this process: a test that forks meanwhile would inherit the open file,
    // and a program that somebody has open for writing cannot be executed.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&binary).status();
    assert!(copied.unwrap().success());
    fs::set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
    let (user, group) = (format!("--reuid={user}"), format!("--regid={group}"));
    let output = Command::new("setpriv")
        .args([&user, &group, "--clear-groups"])
        .arg(&binary)
        .args(["--exact", "life::worker", "--nocapture"])
        .env("STANDPIPE_TEST_WORKER", home)
        .output()
        .unwrap();
    fs::remove_file(&binary).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| Some(line.split_once("> ")?.1.to_owned()))
}

#[test]
fn b53_somebody_elses_directory_is_refused_with_the_remedy() {
    let scratch = Scratch::new();
    let store = scratch.store();
    member(&store).submit(vec![configure(vec![parallel(1)])]).unwrap();
    let Some(said) = as_user(65_534, 65_534, scratch.path()) else { return };
    assert!(said.contains("permission denied") || said.contains("belongs to user 0"), "{said}");
    // A readable directory is refused too.
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
    let said = as_user(65_534, 65_534, scratch.path()).unwrap();
    assert!(said.contains("belongs to user 0 and you are 65534"), "{said}");
}

#[test]
fn b53_a_directory_nobody_may_write_to_is_refused_with_the_remedy() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path()).unwrap();
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o555)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(scratch.path(), Some(65_534), Some(65_534)).unwrap();
    }
    let Some(said) = as_user(65_534, 65_534, scratch.path()) else { return };
    assert!(said.contains("permission denied") && said.contains("mode 555"), "{said}");
}

#[test]
fn different_users_share_a_pool_through_their_group() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scratch = Scratch::new();
    fs::create_dir(scratch.path()).unwrap();
    std::os::unix::fs::chown(scratch.path(), Some(0), Some(4_242)).unwrap();
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o2770)).unwrap();
    let first = as_user(1_001, 4_242, scratch.path()).unwrap();
    assert!(first.contains("Admit"), "{first}");
    // The first user's process is dead, but nobody has tested its session: its slot counts.
    let second = as_user(1_002, 4_242, scratch.path()).unwrap();
    assert!(second.contains("Refuse") && second.contains("Parallel"), "{second}");
    let store = scratch.store();
    let mut third = member(&store);
    bury_the_dead(&mut third, &store);
    assert!(admitted(&ask(&mut third)).is_some());
    assert!(as_user(1_003, 4_243, scratch.path()).unwrap().contains("permission denied"));
}

#[test]
fn what_the_superuser_makes_in_a_users_directory_is_the_users() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scratch = Scratch::new();
    fs::create_dir(scratch.path()).unwrap();
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(scratch.path(), Some(1_001), Some(1_001)).unwrap();
    let store = scratch.store();
    let mut root = member(&store);
    root.submit(vec![configure(vec![parallel(1)])]).unwrap();
    let said = as_user(1_001, 1_001, scratch.path()).unwrap();
    assert!(said.contains("Admit"), "{said}");
    let names = ["pools", "sessions"].map(|name| scratch.path().join(name));
    for folder in &names {
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        for path in files.chain([folder.clone()]) {
            let meta = fs::metadata(&path).unwrap();
            assert_eq!((meta.uid(), meta.gid()), (1_001, 1_001), "{}", path.display());
        }
    }
}

#[test]
fn a_reset_works_whatever_lies_in_the_pools_place() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut first = member(&store);
    first.submit(vec![configure(vec![parallel(1)])]).unwrap();
    let path = store.path_of(&pool());
    let other = store.path_of(&"test/other".parse().unwrap());
    store.log(&"test/other".parse().unwrap()).unwrap();
    let elses = fs::read(other).unwrap();
    let mut newer = fs::read(&path).unwrap();
    standpipe_store_file::fault_injection::set_format(&mut newer, 9);
    drop(first);
    for content in [&b""[..], b"junk", &elses, &newer, &[0xff; 9_000]] {
        fs::write(&path, content).unwrap();
        assert!(store.reset(&pool()).unwrap());
        let mut anew = member(&store);
        anew.submit(vec![configure(vec![parallel(1)])]).unwrap();
        assert!(admitted(&ask(&mut anew)).is_some());
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(store.reset(&pool()).unwrap());
    // A file of another pool, or a directory, does not make this pool unusable.
    fs::write(&path, &elses).unwrap();
    member(&store).submit(vec![configure(vec![parallel(1)])]).unwrap();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    member(&store).submit(vec![configure(vec![parallel(1)])]).unwrap();
    assert!(path.is_file());
}

#[test]
fn b53_a_full_disk_is_an_error_and_loses_nothing() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path()).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs"])
        .arg(scratch.path())
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        return;
    }
    let store = scratch.store();
    let mut made = member(&store);
    made.submit(vec![configure(vec![parallel(2)])]).unwrap();
    // Another pool does not fit.
    let error = store.log(&"test/other".parse().unwrap()).err().map(|error| error.to_string());
    // The first pool continues: its space was preallocated.
    let filler = fs::write(scratch.path().join("filler"), vec![1; 8 << 20]);
    let lease = admitted(&ask(&mut made));
    let settled = made.submit(vec![commit(lease.unwrap())]);
    let names = store.pools();
    // So does a process that starts now, and its session is seen to live.
    let other = scratch.store();
    let session = other.begin_session();
    let is_seen = session.as_ref().is_ok_and(|session| lives(&store, *session));
    let admitted_too = admitted(&ask(&mut member(&other)));
    drop((made, store, other));
    // Lazily, because a child that another test just forked keeps every open file until its exec.
    let unmounted = Command::new("umount").arg("--lazy").arg(scratch.path()).status();
    assert!(error.as_ref().is_some_and(|error| error.contains("disk is full")), "{error:?}");
    assert!(filler.is_err(), "the disk was not full");
    assert!(settled.is_ok());
    assert!(is_seen, "{session:?}");
    assert!(admitted_too.is_some());
    assert_eq!(names.unwrap(), [pool()], "nothing half made is left");
    assert!(unmounted.unwrap().success());
}

/// A simulated machine with clocks and reboots.
#[derive(Default)]
struct Machine {
    boot: Arc<AtomicU64>,
    wall: Arc<AtomicU64>,
}

impl Machine {
    fn new() -> Self {
        let machine = Self::default();
        machine.boot.store(1_000_000, Ordering::Relaxed);
        machine.wall.store(bounds::SPAN.0 * 2, Ordering::Relaxed);
        machine
    }

    fn pass(&self, seconds: u64) {
        self.boot.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
        self.wall.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }

    fn store(&self, scratch: &Scratch, start: u64) -> FileStore {
        let clock = |value: &Arc<AtomicU64>| -> Clock {
            let value = Arc::clone(value);
            Arc::new(move || Instant(value.load(Ordering::Relaxed)))
        };
        let time = Time::machine(clock(&self.boot), clock(&self.wall), start);
        FileStore::open_with(scratch.path(), Options { time, ..Options::default() }).unwrap()
    }
}

fn count(member: &mut standpipe_store::Participant<standpipe_store_file::FileLog>) -> usize {
    (0..10).filter(|_| admitted(&ask(member)).is_some()).count()
}

#[test]
fn b49_over_a_restart_leases_end_and_what_was_used_is_carried_over() {
    let (scratch, machine) = (Scratch::new(), Machine::new());
    let store = machine.store(&scratch, 1);
    let mut before = member(&store);
    before.submit(vec![configure(vec![per_minute(5), parallel(4)])]).unwrap();
    assert_eq!(count(&mut before), 4, "four slots");
    let kept = before.submit(vec![Action::Heartbeat {
        lease: before.replica().state().facts().leases.keys().next().copied(),
        ttl: Some(Span::secs(600)),
    }]);
    kept.unwrap();
    drop((before, store));
    // Off for twenty seconds; the boot-time clock starts from zero.
    machine.pass(20);
    machine.boot.store(5, Ordering::Relaxed);
    let store = machine.store(&scratch, 2);
    let mut after = member(&store);
    assert_eq!(count(&mut after), 1, "slots are free, but four of five are still used");
    assert_eq!(after.replica().state().facts().leases.len(), 1);
    machine.pass(41);
    assert_eq!(count(&mut after), 3, "the four have aged; one slot is held");
}

#[test]
fn b49_over_a_restart_a_wall_clock_set_back_gives_nothing() {
    let (scratch, machine) = (Scratch::new(), Machine::new());
    let store = machine.store(&scratch, 1);
    let mut before = member(&store);
    before.submit(vec![configure(vec![per_minute(5)])]).unwrap();
    assert_eq!(count(&mut before), 5);
    drop((before, store));
    machine.wall.fetch_sub(3_600_000_000, Ordering::Relaxed);
    machine.boot.store(0, Ordering::Relaxed);
    let mut after = member(&machine.store(&scratch, 2));
    assert_eq!(count(&mut after), 0);
    machine.pass(59);
    assert_eq!(count(&mut after), 0);
    machine.pass(1);
    assert_eq!(count(&mut after), 5);
}

#[test]
fn b49_while_the_machine_runs_its_wall_clock_may_jump_as_it_likes() {
    let (scratch, machine) = (Scratch::new(), Machine::new());
    let store = machine.store(&scratch, 1);
    let mut member = member(&store);
    member.submit(vec![configure(vec![per_minute(5)])]).unwrap();
    assert_eq!(count(&mut member), 5);
    for jump in [3_600_000_000, 0] {
        machine.wall.store(bounds::SPAN.0 + jump, Ordering::Relaxed);
        assert_eq!(count(&mut member), 0, "a jump of the wall clock gave units");
    }
    // Asleep for an hour: the boot-time clock continues.
    machine.pass(3_600);
    assert_eq!(count(&mut member), 5);
}

#[test]
fn b07_a_process_with_an_old_idea_of_now_mints_nothing() {
    // Entries are stamped with the lock held, so a delay before the lock only makes the stamp
    // later. What is left is a clock that goes back.
    let (scratch, machine) = (Scratch::new(), Machine::new());
    let store = machine.store(&scratch, 1);
    let mut member = member(&store);
    let rule = Rule::Bucket { unit: Unit::Requests, amount: 1, period: Span::secs(1), burst: 5 };
    member.submit(vec![configure(vec![Limit::new(rule)])]).unwrap();
    let mut got = count(&mut member);
    let begun = machine.boot.load(Ordering::Relaxed);
    let mut chance = 7_u64;
    let mut latest = begun;
    for _ in 0..500 {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let now = (latest + (chance >> 40) % 2_000_000).saturating_sub(1_000_000);
        machine.boot.store(now, Ordering::Relaxed);
        latest = latest.max(now);
        got += count(&mut member);
        let most = 5 + (latest - begun) / 1_000_000;
        assert!(got as u64 <= most, "{got} of at most {most}");
    }
}

#[test]
fn reset_and_move_say_what_they_cannot_do() {
    let (scratch, elsewhere) = (Scratch::new(), Scratch::new());
    let (store, other) = (scratch.store(), elsewhere.store());
    assert!(!store.reset(&pool()).unwrap(), "there is no such pool");
    assert!(store.move_pool(&pool(), &other).unwrap_err().to_string().contains("no pool"));
    let mut user = member(&store);
    user.submit(vec![configure(vec![per_minute(5)])]).unwrap();
    assert_eq!(count(&mut user), 5);
    drop(user);
    store.move_pool(&pool(), &other).unwrap();
    assert!(store.pools().unwrap().is_empty());
    let mut moved = member(&other);
    assert_eq!(count(&mut moved), 0, "what was used came along");
    member(&store).submit(vec![configure(vec![per_minute(5)])]).unwrap();
    let error = store.move_pool(&pool(), &other).unwrap_err();
    assert!(error.to_string().contains("already"), "{error}");
    assert!(other.reset(&pool()).unwrap());
    let mut anew = member(&other);
    anew.submit(vec![configure(vec![per_minute(5)])]).unwrap();
    assert_eq!(count(&mut anew), 5, "as if nobody had ever used it");
}

#[test]
fn a_call_that_waits_is_woken_by_whoever_makes_room() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.store(), scratch.store());
    let (mut holder, mut waiter) = (member(&one), member(&other));
    holder.submit(vec![configure(vec![parallel(1)])]).unwrap();
    let lease = admitted(&ask(&mut holder)).unwrap();
    let patient = Reserve { patience: Span::secs(60), ..reserve() };
    let outcomes = waiter.submit(vec![Action::from(patient)]).unwrap();
    assert!(matches!(outcomes[0].answer, Answer::Decided(Decision::Wait(_))));
    holder.submit(vec![commit(lease)]).unwrap();
    // The wake-up came before anybody waited, so this returns at once and not after an hour.
    other.wait_for_wake(std::time::Duration::from_secs(3_600));
    other.interrupt();
    other.wait_for_wake(std::time::Duration::from_secs(3_600));
}
