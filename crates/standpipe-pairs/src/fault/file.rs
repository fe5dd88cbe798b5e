//! Faults of processes, files and one machine.

mod directory;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use standpipe_store_file::failpoint;

use super::{Fault, labelled};
use crate::record::now;
use crate::scene::{How, Scene, in_mounts, with_boot_id};
use crate::setup::{BUCKET, PERIOD, Rule, SLOTS, Setup, WINDOW, pool_of};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A process kills itself at this labelled point.
    KillAt(&'static str),
    /// A process stops itself there, and goes on in the end.
    StopAt(&'static str),
    /// A process is killed, another takes its place.
    Kill,
    /// A process is stopped, and goes on in the end.
    Stop,
    /// Forks and leaves the child alone.
    Fork,
    /// Starts its own program anew.
    Exec,
    /// Cannot start threads.
    NoThreads,
    /// Another user of the group.
    OtherUser,
    /// Everybody is killed and starts under another boot id.
    Reboot,
    /// Another boot id beside the living ones.
    OtherBootId,
    /// No `/proc`.
    NoProc,
    /// A pid namespace of its own.
    PidNamespace,
    /// A time namespace ahead by a day.
    TimeNamespace,
    /// A bit of a pool file is flipped.
    FlipBit,
    /// A page of a pool file is zero.
    ZeroPage,
    /// A pool file is cut.
    Truncate,
    /// A page of a pool file is as it was before.
    OldPage,
    /// A pool file is deleted.
    Delete,
    /// A pool file is replaced by an older copy.
    Restore,
    /// A pool file is replaced by something else.
    Replace,
    /// The files of sessions are deleted.
    DeleteSessions,
    /// No space is left.
    DiskFull,
    /// No inode is left.
    NoInodes,
    /// One process sees the directory read-only.
    ReadOnly,
    /// One process's wall clock is off by so many days.
    WallClock(i8),
    /// The limits change.
    Change(Change),
    /// More agents than the ledger distinguishes.
    ManyAgents,
    /// More leases than a ledger may have.
    ManyLeases,
    /// More waiters than a ledger may have.
    ManyWaiters,
    /// The store's directory is deleted and made again.
    DeleteDirectory,
    /// The directory of sessions cannot be written to.
    LockSessions,
}

/// How limits change; the end changes them back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// From window to bucket and back.
    Kind,
    /// A longer period.
    Period,
    /// A larger burst.
    Burst,
    /// Limits are removed and restored.
    Presence,
    /// A lower amount.
    Amount,
    /// A cap for everybody named.
    Cap,
    /// A floor for somebody.
    Floor,
    /// More slack.
    Slack,
    /// Nothing is enforced for a while.
    Enforce,
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Fault> {
    let name = |name: String, act| Fault { name, act: super::Act::File(act) };
    let mut faults: Vec<Fault> =
        failpoint::ALL.iter().map(|at| name(labelled("kill-at", at), Act::KillAt(at))).collect();
    let stops = ["session locked", "lock taken", "entry written", "head written", "lock released"];
    faults.extend(stops.iter().map(|at| name(labelled("stop-at", at), Act::StopAt(at))));
    faults.extend(NAMED.iter().map(|(words, act)| name((*words).to_owned(), *act)));
    faults
}

const NAMED: &[(&str, Act)] = &[
    ("kill", Act::Kill),
    ("stop", Act::Stop),
    ("fork", Act::Fork),
    ("exec", Act::Exec),
    ("no-threads", Act::NoThreads),
    ("other-user", Act::OtherUser),
    ("reboot", Act::Reboot),
    ("other-boot-id", Act::OtherBootId),
    ("no-proc", Act::NoProc),
    ("pid-namespace", Act::PidNamespace),
    ("time-namespace", Act::TimeNamespace),
    ("flip-bit", Act::FlipBit),
    ("zero-page", Act::ZeroPage),
    ("truncate", Act::Truncate),
    ("old-page", Act::OldPage),
    ("delete", Act::Delete),
    ("restore", Act::Restore),
    ("replace", Act::Replace),
    ("delete-sessions", Act::DeleteSessions),
    ("disk-full", Act::DiskFull),
    ("no-inodes", Act::NoInodes),
    ("read-only", Act::ReadOnly),
    ("wall-clock-ahead", Act::WallClock(1)),
    ("wall-clock-behind", Act::WallClock(-1)),
    ("change-kind", Act::Change(Change::Kind)),
    ("change-period", Act::Change(Change::Period)),
    ("change-burst", Act::Change(Change::Burst)),
    ("change-presence", Act::Change(Change::Presence)),
    ("change-amount", Act::Change(Change::Amount)),
    ("change-cap", Act::Change(Change::Cap)),
    ("change-floor", Act::Change(Change::Floor)),
    ("change-slack", Act::Change(Change::Slack)),
    ("change-enforce", Act::Change(Change::Enforce)),
    ("many-agents", Act::ManyAgents),
    ("many-leases", Act::ManyLeases),
    ("many-waiters", Act::ManyWaiters),
    ("delete-directory", Act::DeleteDirectory),
    ("sessions-read-only", Act::LockSessions),
];

/// A small disk, where one has to be filled.
pub(super) fn prepare(act: Act, scene: &mut Scene) -> Result<(), String> {
    if !matches!(act, Act::DiskFull | Act::NoInodes) || !scene.mounts.is_empty() {
        return Ok(());
    }
    let store = scene.store();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=64m,nr_inodes=4000,mode=2770", "pairs"]).arg(&store);
    run(&mut mount)?;
    scene.mounts.push(store);
    Ok(())
}

pub(super) fn inject(act: Act, scene: &mut Scene) -> Result<(), String> {
    scene.permitted.hindered |= matches!(act, Act::Stop | Act::StopAt(_) | Act::NoThreads);
    match act {
        Act::KillAt(label) => armed(scene, "STANDPIPE_KILL_AT", label),
        Act::StopAt(label) => armed(scene, "STANDPIPE_STOP_AT", label),
        Act::Kill => kill(scene),
        Act::Stop => {
            if let Some(at) = scene.a_worker() {
                scene.workers[at].signal(Signal::STOP);
            }
            Ok(())
        }
        Act::Fork => with_word(scene, "mode=fork"),
        Act::Exec => with_word(scene, "mode=exec"),
        Act::ManyAgents => with_word(scene, "agents=4000"),
        Act::ManyLeases => with_word(scene, "mode=leases"),
        Act::ManyWaiters => with_word(scene, "mode=waiters"),
        Act::DeleteDirectory => directory::delete(scene),
        Act::LockSessions => directory::lock_sessions(scene),
        Act::NoThreads => other_user(scene, &["prlimit", "--nproc=1"]),
        Act::OtherUser => other_user(scene, &[]),
        Act::Reboot => reboot(scene),
        Act::OtherBootId => {
            let wrap = with_boot_id(&new_boot_id(scene)?);
            start(scene, How { wrap, ..How::default() })
        }
        Act::NoProc => {
            let wrap = in_mounts("mount -t tmpfs none /proc && exec \"$@\"");
            start(scene, How { wrap, ..How::default() })
        }
        Act::PidNamespace => apart(scene, &["unshare", "-pf", "--kill-child", "--mount-proc"]),
        Act::TimeNamespace => {
            apart(scene, &["unshare", "-T", "--boottime", "86400", "-f", "--kill-child"])
        }
        Act::FlipBit | Act::ZeroPage | Act::Truncate | Act::OldPage => damage(act, scene),
        Act::Delete | Act::Restore | Act::Replace => replace(act, scene),
        Act::DeleteSessions => {
            scene.permitted.slow_reclaim = true;
            let sessions = fs::read_dir(scene.store().join("sessions")).into_iter().flatten();
            for entry in sessions.flatten() {
                let _ = fs::remove_file(entry.path());
            }
            Ok(())
        }
        Act::DiskFull => fill(&scene.store().join("filler")),
        Act::NoInodes => no_inodes(&scene.store().join("fillers")),
        Act::ReadOnly => {
            let store = scene.store().display().to_string();
            let script = format!(
                "mount --bind {store} {store} && mount -o remount,bind,ro {store} && exec \"$@\""
            );
            start(scene, How { wrap: in_mounts(&script), ..How::default() })
        }
        Act::WallClock(days) => {
            let library = standpipe_servers::faketime_library().display().to_string();
            let env = [
                ("LD_PRELOAD", library),
                ("FAKETIME", format!("{days:+}d")),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ];
            let env = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
            start(scene, How { env, ..How::default() })
        }
        Act::Change(change) => reconfigure(change, scene, true),
    }
}

pub(super) fn end(act: Act, scene: &mut Scene) -> Result<(), String> {
    match act {
        Act::Stop | Act::StopAt(_) => {
            // A process that stops itself only after this goes on when the scene ends.
            scene.workers.iter().for_each(|worker| worker.signal(Signal::CONT));
        }
        Act::DiskFull => {
            let _ = fs::remove_file(scene.store().join("filler"));
        }
        Act::NoInodes => {
            let _ = fs::remove_dir_all(scene.store().join("fillers"));
        }
        Act::Change(change) => reconfigure(change, scene, false)?,
        Act::LockSessions => directory::unlock_sessions(scene),
        _ => {}
    }
    Ok(())
}

fn start(scene: &mut Scene, how: How) -> Result<(), String> {
    scene.start(&how).map(|_| ())
}

fn with_word(scene: &mut Scene, word: &str) -> Result<(), String> {
    start(scene, How { words: vec![word.to_owned()], ..How::default() })
}

fn armed(scene: &mut Scene, variable: &str, label: &str) -> Result<(), String> {
    let once = label.starts_with("session") || label.starts_with("pool");
    let time = if once { 1 } else { 1 + scene.random.below(12) };
    let env = vec![(variable.to_owned(), format!("{label}:{time}"))];
    start(scene, How { env, ..How::default() })
}

fn kill(scene: &mut Scene) -> Result<(), String> {
    if let Some(at) = scene.a_worker() {
        scene.workers[at].signal(Signal::KILL);
    }
    start(scene, How::default())
}

/// A process of a user of its own in the directory's group.
fn other_user(scene: &mut Scene, more: &[&str]) -> Result<(), String> {
    // A user per scene: the limit counts the processes of a user on the whole machine.
    let user = 60_000 + scene.random.below(5_000);
    let group =
        fs::metadata(scene.store()).map_or(0, |data| std::os::unix::fs::MetadataExt::gid(&data));
    let mut wrap = vec!["setpriv".to_owned(), format!("--reuid={user}")];
    wrap.extend([format!("--regid={group}"), "--clear-groups".to_owned()]);
    wrap.extend(more.iter().map(|word| (*word).to_owned()));
    start(scene, How { wrap, ..How::default() })
}

/// A process whose wrapping program waits for it.
fn apart(scene: &mut Scene, wrap: &[&str]) -> Result<(), String> {
    let wrap = wrap.iter().map(|word| (*word).to_owned()).collect();
    start(scene, How { wrap, indirect: true, ..How::default() })
}

fn new_boot_id(scene: &mut Scene) -> Result<std::path::PathBuf, String> {
    let (high, low) = (scene.random.draw(), scene.random.draw());
    let path = scene.base.join(format!("control/boot-{low:016x}"));
    let text = format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}\n",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    );
    fs::write(&path, text).map_err(|error| error.to_string())?;
    let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o444));
    Ok(path)
}

/// Everybody dies, and the machine has another boot id from then on.
fn reboot(scene: &mut Scene) -> Result<(), String> {
    let count = scene.workers.len().min(4);
    for worker in &mut scene.workers {
        worker.signal(Signal::KILL);
        let _ = worker.child.wait();
    }
    scene.boot = Some(new_boot_id(scene)?);
    (0..count).try_for_each(|_| start(scene, How::default()))
}

const PAGE: u64 = 4_096;

fn damage(act: Act, scene: &mut Scene) -> Result<(), String> {
    let Some(path) = scene.a_pool_file() else { return Ok(()) };
    let file = fs::File::options().read(true).write(true).open(&path).map_err(words)?;
    let length = file.metadata().map_err(words)?.len();
    // Most of a file is empty; harm where something is.
    let at = if scene.random.below(3) == 0 {
        scene.random.below(length)
    } else {
        scene.random.below(length.min(16 * PAGE))
    };
    let page = at / PAGE * PAGE;
    scene.permitted.lost.push(now());
    scene.permitted.harmed.extend(pool_of(&path));
    match act {
        Act::FlipBit => {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).map_err(words)?;
            byte[0] ^= 1 << scene.random.below(8);
            file.write_all_at(&byte, at).map_err(words)
        }
        Act::ZeroPage => file.write_all_at(&[0; PAGE as usize], page).map_err(words),
        Act::Truncate => file.set_len(scene.random.below(length)).map_err(words),
        _ => {
            let mut old = vec![0; PAGE as usize];
            let read = file.read_exact_at(&mut old, page);
            std::thread::sleep(std::time::Duration::from_millis(100));
            scene.permitted.rolled_back(now());
            read.and_then(|()| file.write_all_at(&old, page)).map_err(words)
        }
    }
}

fn replace(act: Act, scene: &mut Scene) -> Result<(), String> {
    let Some(path) = scene.a_pool_file() else { return Ok(()) };
    scene.permitted.lost.push(now());
    scene.permitted.harmed.extend(pool_of(&path));
    match act {
        Act::Delete => fs::remove_file(&path).map_err(words),
        Act::Restore => {
            let copy = path.with_extension("copy");
            fs::copy(&path, &copy).map_err(words)?;
            std::thread::sleep(std::time::Duration::from_millis(150));
            scene.permitted.replaced(now());
            fs::rename(&copy, &path).map_err(words)
        }
        _ => {
            let draft = path.with_extension("draft");
            fs::write(&draft, "not a ledger").map_err(words)?;
            fs::rename(&draft, &path).map_err(words)
        }
    }
}

fn fill(path: &Path) -> Result<(), String> {
    let mut file = fs::File::create(path).map_err(words)?;
    while file.write_all(&[1; 65_536]).is_ok() {}
    while file.write_all(&[1]).is_ok() {}
    Ok(())
}

fn no_inodes(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(words)?;
    let made = (0..100_000).map(|number| fs::File::create(folder.join(number.to_string())));
    let _ = made.take_while(Result::is_ok).count();
    Ok(())
}

fn reconfigure(change: Change, scene: &mut Scene, begin: bool) -> Result<(), String> {
    scene.configure(|setup| changed(setup, change, begin))
}

/// Changes the limits, or changes them back.
pub(crate) fn changed(setup: &mut Setup, change: Change, begin: bool) {
    let either = |there: Rule, back: Rule| if begin { there } else { back };
    let agents = |text: &str| if begin { text.to_owned() } else { String::new() };
    let mut rule = |name, rule| {
        if let Some(pool) = setup.pool_mut(name) {
            pool.rule = rule;
        }
    };
    let (window, bucket) = (Rule::Window(20, PERIOD), Rule::Bucket(20, PERIOD, 5));
    match change {
        Change::Kind => {
            rule(WINDOW, either(Rule::Bucket(20, PERIOD, 20), window));
            rule(BUCKET, either(Rule::Window(5, PERIOD / 4), bucket));
        }
        Change::Period => {
            rule(WINDOW, either(Rule::Window(30, 2 * PERIOD), window));
            rule(BUCKET, either(Rule::Bucket(30, 2 * PERIOD, 5), bucket));
        }
        Change::Burst => rule(BUCKET, either(Rule::Bucket(20, PERIOD, 9), bucket)),
        Change::Presence => {
            rule(WINDOW, either(Rule::Absent, window));
            rule(BUCKET, either(Rule::Absent, bucket));
        }
        Change::Amount => {
            rule(WINDOW, either(Rule::Window(9, PERIOD), window));
            rule(SLOTS, either(Rule::Parallel(1), Rule::Parallel(2)));
        }
        Change::Cap => {
            setup.agents = agents("\n[agent.w1]\ncap = { requests = \"5/s\" }\n");
        }
        Change::Floor => {
            setup.agents = agents("\n[agent.w1]\nfloor = \"40%\"\n[agent.w2]\nfloor = \"40%\"\n");
        }
        Change::Slack => {
            let lines = if begin { vec!["slack = \"300ms\"".to_owned()] } else { Vec::new() };
            setup.pools.iter_mut().for_each(|pool| pool.lines.clone_from(&lines));
        }
        Change::Enforce => setup.pools.iter_mut().for_each(|pool| pool.enforced = !begin),
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(words)?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {errors}")) }
}

fn words(error: std::io::Error) -> String {
    error.to_string()
}
