//! The daemon of a scene: the process itself, and what starts another one whenever it ends.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Signal, set_parent_process_death_signal};
use standpipe::{Error, PoolName, Standpipe, StoreUrl};
use standpipe_server::{Log, Options};

use crate::record::{Recorder, now};
use crate::scene::send;
use crate::setup::{NAMED, PARENT};
use crate::worker::Args;

/// Runs the daemon in this process until a signal ends it.
///
/// # Errors
/// When it cannot begin.
pub fn run(args: &Args) -> Result<(), String> {
    // A driver that is killed leaves no daemon behind.
    let _unsupported = set_parent_process_death_signal(Some(Signal::KILL));
    let options = Options {
        config: Some(args.path("config")),
        store: None,
        listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        log: Log::default(),
    };
    standpipe_server::run(&options, |_| ()).map_err(|failure| failure.to_string())
}

/// Waits until the limits of a version of the file are in force, and changes nothing.
///
/// # Errors
/// When that takes longer than 30 s.
pub fn reloaded(args: &Args) -> Result<(), String> {
    let recorder = Recorder::open(&args.path("log"))?;
    let mut last = String::new();
    for _ in 0..600 {
        match versions(args) {
            Ok(versions) if versions.iter().all(|at| *at >= Some(args.number("version"))) => {
                recorder.write("configured", 0, "-", "");
                return Ok(());
            }
            Ok(versions) => last = format!("versions {versions:?}"),
            Err(error) => last = error.to_string(),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let version = args.number("version");
    Err(format!("version {version} of the file was not in force within 30 s: {last}"))
}

/// The version of the file by which each pool goes.
fn versions(args: &Args) -> Result<Vec<Option<u64>>, Error> {
    let store = StoreUrl::File(Some(args.path("store")));
    let settings = standpipe::Settings::default();
    let tap =
        Standpipe::builder().settings(settings).store(store).home(args.path("home")).open()?;
    let names = NAMED.iter().chain([&PARENT]).filter_map(|name| name.parse::<PoolName>().ok());
    names.map(|name| Ok(tap.existing_pool(&name).status().blocking()?.origin.version)).collect()
}

/// How a daemon is started.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Programs in front of it.
    pub wrap: Vec<String>,
    /// Variables, for the next one only.
    pub once: Vec<(String, String)>,
}

/// A daemon that is replaced whenever it ends.
#[derive(Debug)]
pub struct Daemon {
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    child: Option<Child>,
    start: Start,
    errors: PathBuf,
    /// It goes on whenever it is stopped.
    resumes: bool,
    ends: bool,
}

impl Daemon {
    /// Starts the first one. What they write to standard error is appended to `errors`.
    #[must_use]
    pub fn start(start: Start, errors: PathBuf) -> Self {
        let shared = Shared { child: None, start, errors, resumes: false, ends: false };
        let shared = Arc::new(Mutex::new(shared));
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            while lock(&theirs).keeps_running() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Self { shared, thread: Some(thread) }
    }

    /// Sends a signal to the one that runs, if one does.
    pub fn signal(&self, signal: Signal) {
        lock(&self.shared).signal(signal);
    }

    /// From now on it goes on whenever it is stopped: one that stops itself may do so only later.
    pub fn resume(&self) {
        lock(&self.shared).resumes = true;
    }

    /// Changes how the next ones are started.
    pub fn change(&self, change: impl FnOnce(&mut Start)) {
        change(&mut lock(&self.shared).start);
    }

    /// Ends it in good order.
    ///
    /// # Errors
    /// When that takes longer than 20 s.
    pub fn end(mut self) -> Result<(), String> {
        self.resume();
        lock(&self.shared).ends = true;
        self.signal(Signal::TERM);
        let bound = now() + 20_000_000;
        while now() < bound {
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.stop();
        Err("the daemon did not end within 20 s of SIGTERM".to_owned())
    }

    fn stop(&mut self) {
        lock(&self.shared).ends = true;
        self.signal(Signal::KILL);
        let _joined = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// Starts another one if the last one has ended. Returns whether one runs or will.
    fn keeps_running(&mut self) -> bool {
        let runs = self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
        if runs && self.resumes {
            self.signal(Signal::CONT);
        }
        if runs {
            return true;
        }
        self.child = None;
        if !self.ends {
            // One that cannot be started is tried again.
            self.child = self.spawn().ok();
        }
        !self.ends
    }

    fn spawn(&mut self) -> std::io::Result<Child> {
        let Start { words, wrap, once } = &mut self.start;
        let all: Vec<&String> = wrap.iter().chain(words.iter()).collect();
        let errors = File::options().create(true).append(true).open(&self.errors)?;
        let mut command = Command::new(all.first().ok_or(std::io::ErrorKind::InvalidInput)?);
        command.args(&all[1..]).envs(once.drain(..));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn()
    }

    fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            send(child, signal);
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces the configuration file of the daemon as a whole.
///
/// # Errors
/// When it cannot be written.
pub fn write_config(path: &Path, text: &str) -> Result<(), String> {
    let draft = path.with_extension("draft");
    let written = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
