//! Reboots: another boot id, another pid namespace or a missing `/proc` is no reboot while a
//! process uses the pool, and a shifted clock is refused.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use standpipe_core::{Action, Instant, Limit, Reserve, Rule, Span, Unit, bounds};
use standpipe_store::{Clock, Liveness, Participant, Store};
use standpipe_store_file::{FileLog, FileStore, Options, Sizes, Time};

use crate::support::{
    Scratch, admitted, ask, commit, configure, member, parallel, pool, reserve, told_to_play,
};

/// Simulated clocks.
struct Clocks {
    boot: Arc<AtomicU64>,
    wall: Arc<AtomicU64>,
}

const HOUR: u64 = 3_600_000_000;

impl Clocks {
    fn new() -> Self {
        let (boot, wall) = (AtomicU64::new(100 * HOUR), AtomicU64::new(bounds::SPAN.0 * 2));
        Self { boot: Arc::new(boot), wall: Arc::new(wall) }
    }

    /// The clocks of a container on the same machine whose wall clock is ahead.
    fn with_wall_ahead(&self, micros: u64) -> Self {
        let wall = AtomicU64::new(self.wall.load(Ordering::Relaxed) + micros);
        Self { boot: Arc::clone(&self.boot), wall: Arc::new(wall) }
    }

    /// The clocks of a process on the same machine whose wall clock is behind.
    fn with_wall_behind(&self, micros: u64) -> Self {
        let wall = AtomicU64::new(self.wall.load(Ordering::Relaxed) - micros);
        Self { boot: Arc::clone(&self.boot), wall: Arc::new(wall) }
    }

    fn store(&self, scratch: &Scratch, boot_id: u64) -> FileStore {
        let options = Options { time: self.time(boot_id), ..Options::default() };
        FileStore::open_with(scratch.path(), options).unwrap()
    }

    fn time(&self, boot_id: u64) -> Time {
        let clock = |value: &Arc<AtomicU64>| -> Clock {
            let value = Arc::clone(value);
            Arc::new(move || Instant(value.load(Ordering::Relaxed)))
        };
        Time::machine(clock(&self.boot), clock(&self.wall), boot_id)
    }

    /// Reboots the machine, which is off for `off` microseconds.
    fn restart(&self, off: u64) {
        self.wall.fetch_add(off, Ordering::Relaxed);
        self.boot.store(5_000_000, Ordering::Relaxed);
    }
}

fn hourly(amount: u64) -> Limit {
    Limit::new(Rule::Window { unit: Unit::Requests, amount, period: Span::secs(3_600) })
}

fn count(member: &mut Participant<FileLog>) -> usize {
    (0..10).filter(|_| admitted(&ask(member)).is_some()).count()
}

#[test]
fn another_boot_id_is_no_restart_while_a_session_holds_its_lock() {
    for (boot_id, ahead) in [(2, 0), (0, 0), (2, 5 * HOUR), (0, 5 * HOUR)] {
        let (scratch, clocks) = (Scratch::new(), Clocks::new());
        let host = clocks.store(&scratch, 1);
        let mut holder = member(&host);
        holder.submit(vec![configure(vec![hourly(3), parallel(1)])]).unwrap();
        let lease = admitted(&ask(&mut holder)).unwrap();
        let container = clocks.with_wall_ahead(ahead).store(&scratch, boot_id);
        let mut beside = member(&container);
        assert_eq!(count(&mut beside), 0, "the slot is held: boot id {boot_id}, {ahead}");
        holder.submit(vec![commit(lease)]).unwrap();
        assert_eq!(count(&mut beside), 1, "one slot");
        beside.refresh().unwrap();
        holder.refresh().unwrap();
        let leases = |member: &Participant<FileLog>| member.replica().state().facts().leases.len();
        assert_eq!((leases(&holder), leases(&beside)), (1, 1));
    }
}

#[test]
fn another_boot_id_is_no_restart_while_the_clocks_go_on() {
    let (scratch, clocks) = (Scratch::new(), Clocks::new());
    let host = clocks.store(&scratch, 1);
    let mut first = member(&host);
    first.submit(vec![configure(vec![parallel(1)])]).unwrap();
    let alone = Reserve { ttl: Some(Span::secs(600)), ..reserve() };
    first.submit(vec![Action::from(alone)]).unwrap();
    drop((first, host));
    // No process is left, but the lease lives until its ttl.
    let mut beside = member(&clocks.store(&scratch, 2));
    assert_eq!(count(&mut beside), 0);
    drop(beside);
    clocks.restart(HOUR / 60);
    assert_eq!(count(&mut member(&clocks.store(&scratch, 2))), 1, "a real restart ends it");
}

/// Its stamps are right, so the wall clock that it stores must not make a later process count a day
/// that has not passed.
#[test]
fn a_process_whose_wall_clock_is_behind_ends_no_period() {
    for (boot_id, restarts) in [(2, false), (1, false), (1, true)] {
        let (scratch, clocks) = (Scratch::new(), Clocks::new());
        let host = clocks.store(&scratch, 1);
        let mut first = member(&host);
        first.submit(vec![configure(vec![hourly(3)])]).unwrap();
        assert_eq!(count(&mut first), 3);
        let mut behind = member(&clocks.with_wall_behind(24 * HOUR).store(&scratch, boot_id));
        behind.submit(vec![Action::Resume { by: None }]).unwrap();
        drop((first, host, behind));
        if restarts {
            clocks.restart(HOUR / 60);
        }
        let mut next = member(&clocks.store(&scratch, 2));
        assert_eq!(count(&mut next), 0, "boot id {boot_id}, restarts: {restarts}");
    }
}

#[test]
fn a_clock_behind_everybody_elses_is_refused() {
    let (scratch, clocks) = (Scratch::new(), Clocks::new());
    let host = clocks.store(&scratch, 1);
    let mut holder = member(&host);
    holder.submit(vec![configure(vec![parallel(1)])]).unwrap();
    let lease = admitted(&ask(&mut holder)).unwrap();
    let behind = Clocks::new();
    behind.boot.store(HOUR, Ordering::Relaxed);
    let store = behind.store(&scratch, 2);
    let error = member(&store).submit(vec![Action::Resume { by: None }]).unwrap_err();
    assert!(error.to_string().contains("clock is behind"), "{error}");
    holder.submit(vec![commit(lease)]).unwrap();
}

#[test]
fn a_shifted_clock_is_refused() {
    let scratch = Scratch::new();
    let time = Clocks::new().time(1).shifted_by(86_400);
    let opened = FileStore::open_with(scratch.path(), Options { time, ..Options::default() });
    let error = opened.unwrap_err().to_string();
    assert!(error.contains("time namespace") && error.contains("86400 s"), "{error}");
    assert!(!scratch.path().exists(), "nothing was touched");
}

/// A process that reserves once and prints the result.
#[test]
fn worker() {
    let Some(home) = told_to_play() else { return };
    let asked = FileStore::open(&home).and_then(|store| {
        let mut member = member(&store);
        let outcomes = member.submit(vec![Action::from(reserve())])?;
        Ok(format!("{:?}", outcomes[0].answer))
    });
    let said = asked.unwrap_or_else(|error| error.to_string());
    let _ = writeln!(std::io::stdout(), "> {said}");
}

/// Returns what a process in such namespaces prints; `None` where they cannot be created.
fn unshared(arguments: &[&str], scratch: &Scratch) -> Option<String> {
    let tried = Command::new("unshare").args(arguments).arg("true").stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        return None;
    }
    let output = Command::new("unshare")
        .args(arguments)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "starts::worker", "--nocapture"])
        .env("STANDPIPE_TEST_WORKER", scratch.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| Some(line.split_once("> ")?.1.to_owned()))
}

#[test]
fn a_process_in_a_shifted_time_namespace_is_refused_and_freezes_nothing() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut holder = member(&store);
    holder.submit(vec![configure(vec![hourly(3)])]).unwrap();
    let ahead = ["--time", "--boottime", "86400", "--fork"];
    let Some(said) = unshared(&ahead, &scratch) else { return };
    assert!(said.contains("time namespace"), "{said}");
    let before = holder.replica().now();
    assert!(admitted(&ask(&mut holder)).is_some());
    assert!(holder.replica().now() < before + Span::secs(3_600), "its stamps go on");
}

#[test]
fn processes_in_other_namespaces_share_the_pool() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut holder = member(&store);
    holder.submit(vec![configure(vec![parallel(1)])]).unwrap();
    let lease = admitted(&ask(&mut holder)).unwrap();
    let pids = ["--pid", "--fork", "--mount-proc"];
    let no_proc = ["--mount", "--pid", "--fork", "sh", "-c", "umount -l /proc; exec \"$@\"", "sh"];
    for arguments in [&pids[..], &no_proc] {
        let Some(said) = unshared(arguments, &scratch) else { continue };
        assert!(said.contains("Refuse"), "{arguments:?}: the slot is held: {said}");
    }
    holder.submit(vec![commit(lease)]).unwrap();
    for arguments in [&pids[..], &no_proc] {
        let Some(said) = unshared(arguments, &scratch) else { continue };
        assert!(said.contains("Admit"), "{arguments:?}: {said}");
        crate::support::bury_the_dead(&mut holder, &store);
        let leases = holder.replica().state().facts().leases.len();
        assert_eq!(leases, 0, "{arguments:?}: its death is seen from outside");
    }
}

/// At the bounds of a ledger the log has no room for all end events at once.
#[test]
fn b55_a_restart_with_more_endings_than_the_log_has_room_for() {
    let (scratch, clocks) = (Scratch::new(), Clocks::new());
    let open = |boot_id| {
        let sizes = Sizes { log: 4_096, snapshot: 512 << 10 };
        let options = Options { time: clocks.time(boot_id), sizes, ..Options::default() };
        FileStore::open_with(scratch.path(), options).unwrap()
    };
    let store = open(1);
    let mut before = member(&store);
    before.submit(vec![configure(vec![parallel(400)])]).unwrap();
    for _ in 0..400 {
        let alone = Reserve { ttl: Some(Span::secs(600)), ..reserve() };
        before.submit(vec![Action::from(alone)]).unwrap();
    }
    drop((before, store));
    clocks.restart(HOUR / 60);
    let store = open(2);
    let mut after = member(&store);
    after.refresh().unwrap();
    assert_eq!(after.replica().state().facts().leases.len(), 0, "all leases ended");
    assert_eq!(store.take_messages(), [], "nothing was lost");
    assert_eq!(count(&mut after), 10);
}

/// The tests in `damage` keep the boot id; a power loss changes it too.
#[test]
fn b55_damage_and_a_restart_together() {
    let (scratch, clocks) = (Scratch::new(), Clocks::new());
    let store = clocks.store(&scratch, 1);
    let mut before = member(&store);
    before.submit(vec![configure(vec![hourly(5)])]).unwrap();
    assert_eq!(count(&mut before), 5);
    drop(before);
    let path = store.path_of(&pool());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8_192..8_222].iter_mut().for_each(|byte| *byte ^= 0x55);
    std::fs::write(&path, &bytes).unwrap();
    drop(store);
    clocks.restart(HOUR / 60);
    let store = clocks.store(&scratch, 2);
    let mut after = member(&store);
    assert!(after.submit(vec![configure(vec![hourly(5)])]).is_ok(), "it is usable");
    assert_eq!(count(&mut after), 0, "what cannot be read counts as used");
    assert!(store.reset(&pool()).unwrap());
}

#[test]
fn a_living_process_makes_its_missing_session_file_again() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.store(), scratch.store());
    let session = store.begin_session().unwrap();
    assert_eq!(other.liveness(session), Liveness::Alive);
    for file in std::fs::read_dir(scratch.path().join("sessions")).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    assert_eq!(other.liveness(session), Liveness::Unknown);
    store.renew_session(session);
    assert_eq!(other.liveness(session), Liveness::Alive);
    drop(store);
    assert_eq!(other.liveness(session), Liveness::Dead);
}
