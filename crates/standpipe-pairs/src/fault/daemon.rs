//! Faults of the daemon, of its clients and of the store under it.

pub mod crowd;

use rustix::process::Signal;
use standpipe_store_file::failpoint;

use self::crowd::Stage;
use super::file::{self, Change};
use super::{Fault, labelled};
use crate::daemon::{Daemon, Start, write_config};
use crate::scene::{How, Scene, in_mounts};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is killed.
    Kill,
    /// The next one kills itself at this labelled point.
    KillAt(&'static str),
    /// The next one stops itself there, and goes on in the end.
    StopAt(&'static str),
    /// It is stopped, and goes on in the end.
    Stop,
    /// It ends in good order.
    Terminate,
    /// It reads changed limits, and in the end the ones before.
    ReloadGood,
    /// It is to read a file that cannot be used, and in the end a good one.
    ReloadBad,
    /// Clients whose connections end.
    Vanish(Stage),
    /// Connections that send a byte now and then.
    SlowHeads,
    /// More clients than may wait at once.
    ManyWaiters,
    /// It sees the pools read-only for a while.
    ReadOnly,
    /// Something happens to the store or to a process that uses it directly.
    Beside(file::Act),
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Fault> {
    let fault = |name: String, act| Fault { name, act: super::Act::Daemon(act) };
    let named = NAMED.iter().map(|(name, act)| fault((*name).to_owned(), *act));
    let kills = failpoint::ALL.iter().map(|at| fault(labelled("kill-at", at), Act::KillAt(at)));
    let stops = ["session locked", "lock taken", "head written"];
    let stops = stops.iter().map(|at| fault(labelled("stop-at", at), Act::StopAt(at)));
    named.chain(kills).chain(stops).collect()
}

const NAMED: &[(&str, Act)] = &[
    ("kill", Act::Kill),
    ("stop", Act::Stop),
    ("terminate", Act::Terminate),
    ("reload-good", Act::ReloadGood),
    ("reload-bad", Act::ReloadBad),
    ("vanish-head", Act::Vanish(Stage::Head)),
    ("vanish-body", Act::Vanish(Stage::Body)),
    ("vanish-waiting", Act::Vanish(Stage::Waiting)),
    ("vanish-granted", Act::Vanish(Stage::Granted)),
    ("vanish-held", Act::Vanish(Stage::Held)),
    ("slow-heads", Act::SlowHeads),
    ("many-waiters", Act::ManyWaiters),
    ("store-readonly", Act::ReadOnly),
    ("store-full", Act::Beside(file::Act::DiskFull)),
    ("store-no-inodes", Act::Beside(file::Act::NoInodes)),
    ("store-deleted", Act::Beside(file::Act::Delete)),
    ("store-damaged", Act::Beside(file::Act::FlipBit)),
    ("store-change-kind", Act::Beside(file::Act::Change(Change::Kind))),
    ("store-change-presence", Act::Beside(file::Act::Change(Change::Presence))),
    ("worker-kill", Act::Beside(file::Act::Kill)),
    ("worker-stop", Act::Beside(file::Act::Stop)),
    ("worker-fork", Act::Beside(file::Act::Fork)),
];

/// More than the daemon lets wait at once, which is 2,048.
const WAITERS: usize = 2_300;
/// Connections with slow heads; the daemon has 4,096 in all.
const SLOW: usize = 400;

/// What belongs to the daemon of a scene.
#[derive(Debug)]
pub struct Place {
    daemon: Daemon,
    /// Connections that stay open until their fault ends.
    crowds: Vec<crowd::Crowd>,
    /// Limits that were changed, to be changed back.
    changes: Vec<Change>,
}

impl Place {
    /// Ends the daemon in good order.
    ///
    /// # Errors
    /// When it does not end.
    pub fn end(self) -> Result<(), String> {
        self.daemon.end()
    }
}

/// Starts the daemon, two clients of it and a process that uses the store directly.
///
/// # Errors
/// When a process cannot be started.
pub fn begin(scene: &mut Scene) -> Result<(), String> {
    let config = scene.base.join("control/daemon.toml");
    write_config(&config, &scene.setup().toml())?;
    let words = vec![
        scene.program.display().to_string(),
        "daemon".to_owned(),
        format!("config={}", config.display()),
    ];
    let start = Start { words, ..Start::default() };
    let daemon = Daemon::start(start, scene.base.join("logs/daemon.err"));
    scene.daemon = Some(Place { daemon, crowds: Vec::new(), changes: Vec::new() });
    scene.start(&How::default())?;
    let words = vec![format!("store={}", scene.store().display())];
    let client = How { words, client: true, ..How::default() };
    (0..2).try_for_each(|_| scene.start(&client).map(drop))
}

pub(super) fn prepare(act: Act, scene: &mut Scene) -> Result<(), String> {
    match act {
        Act::Beside(act) => file::prepare(act, scene),
        _ => Ok(()),
    }
}

pub(super) fn inject(act: Act, scene: &mut Scene) -> Result<(), String> {
    let directory = scene.store();
    match act {
        Act::Beside(act) => file::inject(act, scene),
        Act::ReloadGood => reload_good(scene),
        Act::ReloadBad => reload_bad(scene),
        Act::Vanish(stage) => {
            let crowd = crowd::vanish(stage, &directory, &mut scene.random);
            gather(scene, crowd)
        }
        Act::SlowHeads => gather(scene, crowd::slow_heads(&directory, SLOW)),
        Act::ManyWaiters => {
            let crowd = crowd::waiters(&directory, WAITERS, &mut scene.random);
            gather(scene, crowd)
        }
        Act::Kill => signal(scene, Signal::KILL),
        Act::Stop => signal(scene, Signal::STOP),
        Act::Terminate => signal(scene, Signal::TERM),
        Act::KillAt(label) => armed(scene, "STANDPIPE_KILL_AT", label),
        Act::StopAt(label) => armed(scene, "STANDPIPE_STOP_AT", label),
        Act::ReadOnly => {
            let pools = directory.join("pools").display().to_string();
            let script = format!(
                "mount --bind {pools} {pools} && mount -o remount,bind,ro {pools} && exec \"$@\""
            );
            place(scene)?.daemon.change(|start| start.wrap = in_mounts(&script));
            signal(scene, Signal::KILL)
        }
    }
}

pub(super) fn end(act: Act, scene: &mut Scene) -> Result<(), String> {
    match act {
        Act::Beside(act) => file::end(act, scene),
        Act::Stop | Act::StopAt(_) => {
            place(scene)?.daemon.resume();
            Ok(())
        }
        Act::Vanish(_) | Act::SlowHeads | Act::ManyWaiters => {
            // Crowds are alike: which of two ends first does not matter.
            place(scene)?.crowds.pop();
            Ok(())
        }
        Act::ReloadGood => match place(scene)?.changes.pop() {
            Some(change) => reload(scene, change, false),
            None => Ok(()),
        },
        Act::ReloadBad => {
            let text = scene.setup().toml();
            write_config(&scene.base.join("control/daemon.toml"), &text)?;
            signal(scene, Signal::HUP)
        }
        Act::ReadOnly => {
            place(scene)?.daemon.change(|start| start.wrap.clear());
            signal(scene, Signal::KILL)
        }
        Act::Kill | Act::KillAt(_) | Act::Terminate => Ok(()),
    }
}

fn place(scene: &mut Scene) -> Result<&mut Place, String> {
    scene.daemon.as_mut().ok_or_else(|| "there is no daemon".to_owned())
}

fn signal(scene: &mut Scene, signal: Signal) -> Result<(), String> {
    place(scene)?.daemon.signal(signal);
    Ok(())
}

fn gather(scene: &mut Scene, crowd: Result<crowd::Crowd, String>) -> Result<(), String> {
    place(scene)?.crowds.push(crowd?);
    Ok(())
}

/// Replaces the daemon by one that does something at a labelled point.
fn armed(scene: &mut Scene, variable: &str, label: &str) -> Result<(), String> {
    let once = label.starts_with("session") || label.starts_with("pool");
    let time = if once { 1 } else { 1 + scene.random.below(40) };
    let variable = (variable.to_owned(), format!("{label}:{time}"));
    place(scene)?.daemon.change(|start| start.once = vec![variable]);
    signal(scene, Signal::KILL)
}

fn reload_good(scene: &mut Scene) -> Result<(), String> {
    let changes = [
        Change::Kind,
        Change::Period,
        Change::Burst,
        Change::Presence,
        Change::Amount,
        Change::Slack,
        Change::Enforce,
    ];
    let change = changes[scene.random.below(changes.len() as u64) as usize];
    place(scene)?.changes.push(change);
    reload(scene, change, true)
}

/// The daemon brings changed limits to the ledger; another process reports when they are in force.
fn reload(scene: &mut Scene, change: Change, begin: bool) -> Result<(), String> {
    scene.change("reloaded", |setup| file::changed(setup, change, begin))?;
    let text = scene.setup().toml();
    write_config(&scene.base.join("control/daemon.toml"), &text)?;
    signal(scene, Signal::HUP)
}

/// A file that cannot be used: the limits before stay in force.
fn reload_bad(scene: &mut Scene) -> Result<(), String> {
    let text = scene.setup().toml();
    let texts = [
        "nonsense".to_owned(),
        text.replace("parallel = 64", "parallel = 0"),
        text.replace("store = \"file:", "store = \"nothing:"),
        text.chars().take(text.len() / 2).collect(),
    ];
    let bad = &texts[scene.random.below(texts.len() as u64) as usize];
    write_config(&scene.base.join("control/daemon.toml"), bad)?;
    signal(scene, Signal::HUP)
}
