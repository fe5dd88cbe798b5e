//! One run: a store, the processes that use it, and what was done to them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use standpipe_sim::{ProviderServer, Random};

use crate::fault::daemon;
use crate::fault::redis::Servers;
use crate::provider::{self, ProviderCall};
use crate::record::{self, now};
use crate::referee::{Era, Permitted};
use crate::setup::{BUCKET, CHILD, Pool, SLOTS, Setup};

/// A process that draws on the pools.
#[derive(Debug)]
pub struct Worker {
    /// The process, or the program that wraps it.
    pub child: Child,
    /// Its name, which is also its agent and the name of its record.
    pub name: String,
    /// A signal to the child reaches the worker itself.
    pub direct: bool,
}

impl Worker {
    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }
}

/// Sends a signal to a process, which may have ended already.
pub fn send(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ended = kill_process(pid, signal);
    }
}

/// How a process is started.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// Programs in front of it.
    pub wrap: Vec<String>,
    /// Variables.
    pub env: Vec<(String, String)>,
    /// More `key=value` words for it.
    pub words: Vec<String>,
    /// The wrapping program does not become the worker but starts it.
    pub indirect: bool,
    /// It is a client of the daemon. None is killed or stopped: its leases would outlive it by
    /// their ttl.
    pub client: bool,
}

/// One run.
#[derive(Debug)]
pub struct Scene {
    /// Where everything of this run is.
    pub base: PathBuf,
    /// The program `pairs`.
    pub program: PathBuf,
    /// Chance.
    pub random: Random,
    /// The processes.
    pub workers: Vec<Worker>,
    /// The limits over time.
    pub eras: Vec<Era>,
    /// What the scene permits.
    pub permitted: Permitted,
    /// The machine's boot id, if it is not the real one.
    pub boot: Option<PathBuf>,
    /// The servers, on Redis.
    pub servers: Option<Servers>,
    /// The daemon, where there is one.
    pub daemon: Option<daemon::Place>,
    /// What a fault keeps until it ends.
    pub kept: Vec<(String, PathBuf)>,
    /// Mounts to undo.
    pub mounts: Vec<PathBuf>,
    configuring: Vec<(String, Child)>,
    provider: Option<ProviderServer>,
    started: u64,
}

impl Scene {
    /// A scene on the file store, or on servers.
    ///
    /// # Errors
    /// When its directory or the provider cannot be made.
    pub fn new(program: &Path, seed: u64, servers: Option<Servers>) -> Result<Self, String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let base = std::env::temp_dir().join(format!("sp-pairs-{}-{count}", std::process::id()));
        for part in ["", "logs", "control", "store", "home"] {
            let path = base.join(part);
            fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let mode = match part {
                "store" => 0o2770,
                // The library does not use a state directory that everybody may write to.
                "home" => 0o700,
                _ => 0o777,
            };
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(mode));
        }
        let url = match &servers {
            Some(servers) => servers.url(),
            None => format!("file:{}", base.join("store").display()),
        };
        let mut setup = Setup::new(url);
        if let Some(servers) = &servers {
            setup.on_store_failure = servers.on_failure;
        }
        draw_day(&mut setup, seed);
        let provider = provider::start(&setup)?;
        let scene = Self {
            base,
            program: program.to_owned(),
            random: Random::new(seed),
            workers: Vec::new(),
            eras: vec![Era { begins: 0, sure: 0, setup }],
            permitted: Permitted::default(),
            boot: None,
            servers,
            daemon: None,
            kept: Vec::new(),
            mounts: Vec::new(),
            configuring: Vec::new(),
            provider: Some(provider),
            started: 0,
        };
        scene.write_config(&scene.eras[0].setup)?;
        Ok(scene)
    }

    /// The limits that were last brought to the ledger.
    #[must_use]
    pub fn setup(&self) -> Setup {
        self.eras.last().map_or_else(|| Setup::new(String::new()), |era| era.setup.clone())
    }

    fn write_config(&self, setup: &Setup) -> Result<PathBuf, String> {
        let path = self.base.join(format!("control/standpipe-{}.toml", setup.version));
        fs::write(&path, setup.toml()).map_err(|error| error.to_string())?;
        let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o644));
        Ok(path)
    }

    /// Every call that the provider saw so far.
    #[must_use]
    pub fn seen(&self) -> Vec<ProviderCall> {
        let log = self.provider.as_ref().map(ProviderServer::log).unwrap_or_default();
        log.into_iter().map(ProviderCall::from).collect()
    }

    /// The directory of the file store.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.base.join("store")
    }

    /// The pool files, in order.
    #[must_use]
    pub fn pool_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.store().join("pools")).into_iter().flatten().flatten();
        let is_pool = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "pool");
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_pool).collect();
        files.sort();
        files
    }

    /// One of the pool files.
    pub fn a_pool_file(&mut self) -> Option<PathBuf> {
        let files = self.pool_files();
        files.get(self.random.below(files.len() as u64) as usize).cloned()
    }

    /// A command that runs this program as `part`.
    fn command(&mut self, part: &str, name: &str, how: &How) -> Command {
        let mut words = how.wrap.clone();
        if let Some(boot) = &self.boot {
            words.splice(0..0, with_boot_id(boot));
        }
        words.push(self.program.display().to_string());
        words.push(part.to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(how.env.iter().cloned());
        let base = self.base.display();
        let version = self.setup().version;
        command.arg(format!("config={base}/control/standpipe-{version}.toml"));
        command.arg(format!("log={base}/logs/{name}")).arg(format!("agent={name}"));
        command.arg(format!("home={base}/home")).arg(format!("stop={base}/control/stop"));
        command.arg(format!("seed={}", self.random.draw()));
        if let Some(provider) = &self.provider {
            command.arg(format!("provider={}", provider.address()));
        }
        let errors = fs::File::create(self.base.join(format!("logs/{name}.err")));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(errors.map_or_else(|_| Stdio::null(), Stdio::from));
        command.args(&how.words);
        command
    }

    /// Starts one more worker.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(&mut self, how: &How) -> Result<usize, String> {
        self.started += 1;
        let name = format!("w{}", self.started);
        let part = if how.client { "client" } else { "worker" };
        let child = self.command(part, &name, how).spawn().map_err(|error| error.to_string())?;
        let direct = !how.indirect && !how.client;
        self.workers.push(Worker { child, name, direct });
        Ok(self.workers.len() - 1)
    }

    /// One of the workers that a signal reaches and that still run.
    pub fn a_worker(&mut self) -> Option<usize> {
        let running = |worker: &mut Worker| {
            worker.direct && worker.child.try_wait().is_ok_and(|ended| ended.is_none())
        };
        let alive: Vec<usize> =
            (0..self.workers.len()).filter(|at| running(&mut self.workers[*at])).collect();
        alive.get(self.random.below(alive.len() as u64) as usize).copied()
    }

    /// Brings changed limits to the ledger, by a process that may have to wait for the end of
    /// another fault.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn configure(&mut self, change: impl FnOnce(&mut Setup)) -> Result<(), String> {
        self.change("configure", change)
    }

    /// Changes the limits; a process that is started as `part` reports when they are in force.
    pub(crate) fn change(
        &mut self,
        part: &str,
        change: impl FnOnce(&mut Setup),
    ) -> Result<(), String> {
        let mut setup = self.setup();
        setup.version += 1;
        change(&mut setup);
        self.write_config(&setup)?;
        let name = format!("configure{}", setup.version);
        let words =
            vec![format!("version={}", setup.version), format!("store={}", self.store().display())];
        self.eras.push(Era { begins: now(), sure: u64::MAX, setup });
        let child = self.command(part, &name, &How { words, ..How::default() }).spawn();
        self.configuring.push((name, child.map_err(|error| error.to_string())?));
        Ok(())
    }

    /// Waits until all changed limits are in force.
    ///
    /// # Errors
    /// When the ledger does not take them.
    pub fn configured(&mut self) -> Result<(), String> {
        let mut failed = Ok(());
        for (name, child) in std::mem::take(&mut self.configuring) {
            failed = self.wait_for(child, &name, 60).and(failed);
            let lines = record::read(&self.base.join("logs").join(&name));
            let sure = lines.iter().find(|line| line.kind == "configured").map(|line| line.at);
            let is_it = |era: &&mut Era| name == format!("configure{}", era.setup.version);
            if let (Some(era), Some(sure)) = (self.eras.iter_mut().find(is_it), sure) {
                era.sure = sure;
            }
        }
        failed
    }

    /// Waits for a process that should end with success, after the faults have ended.
    fn wait_for(&self, mut child: Child, name: &str, seconds: u64) -> Result<(), String> {
        let bound = now() + seconds * 1_000_000;
        loop {
            // One that stops itself at a labelled point may do so only now, and hold up the others.
            self.workers.iter().for_each(|worker| worker.signal(Signal::CONT));
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    let errors = self.base.join(format!("logs/{name}.err"));
                    let errors = fs::read_to_string(errors).unwrap_or_default();
                    return Err(format!("{name} ended with {status}: {}", errors.trim()));
                }
                _ if now() > bound => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("{name} did not end within {seconds} s"));
                }
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Lets all workers end, and returns those that do not.
    pub fn stop(&mut self) -> Vec<String> {
        let _ = fs::write(self.base.join("control/stop"), "");
        let bound = now() + 60_000_000;
        let mut stuck = Vec::new();
        let mut running = std::mem::take(&mut self.workers);
        while !running.is_empty() {
            running.retain_mut(|worker| worker.child.try_wait().is_ok_and(|end| end.is_none()));
            for worker in &mut running {
                // One that stops itself at a labelled point may do so only now.
                worker.signal(Signal::CONT);
                if now() > bound {
                    stuck.push(worker.name.clone());
                    let _ = worker.child.kill();
                    let _ = worker.child.wait();
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        stuck
    }

    /// Takes the whole capacity with a new process.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn probe(&mut self) -> Result<(), String> {
        let mut setup = self.setup();
        // Slots of processes whose death cannot be tested return after two minutes, too late for
        // a real run. The pairs in virtual time wait for them.
        let has_slots = |pool: &Pool| pool.name == SLOTS || pool.name == CHILD;
        setup.pools.retain(|pool| !has_slots(pool) || !self.permitted.slow_reclaim);
        // A bucket from which everybody took without limit is full again only after minutes.
        setup.pools.retain(|pool| pool.name != BUCKET || !self.permitted.local);
        let words = vec![format!("capacity={}", setup.capacity()), "tries=20".to_owned()];
        let how = How { words, ..How::default() };
        let child = self.command("probe", "probe", &how).spawn();
        self.wait_for(child.map_err(|error| error.to_string())?, "probe", 60)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        drop(self.daemon.take());
        for worker in &mut self.workers {
            worker.signal(Signal::CONT);
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
        for (_, child) in &mut self.configuring {
            let _ = child.kill();
            let _ = child.wait();
        }
        drop(self.provider.take());
        for mount in self.mounts.drain(..).rev() {
            let _ = Command::new("umount").arg("-l").arg(&mount).status();
        }
        if std::env::var_os("PAIRS_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.base);
        }
    }
}

/// Draws when the day begins, at least two hours ahead. A reset cannot be awaited in real time,
/// because the ledger releases units only five seconds after it.
fn draw_day(setup: &mut Setup, seed: u64) {
    let mut random = Random::new(seed);
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let left = 120 + random.below(20 * 60);
    let (zone, offset) = ZONES[random.below(ZONES.len() as u64) as usize];
    let minute = (wall / 60 + left + offset) % (24 * 60);
    let text = format!("{:02}:{:02} {zone}", minute / 60, minute % 60);
    setup.days_begin(&text, now(), (left * 60 - wall % 60) * 1_000_000);
}

/// Zones without daylight saving time, and by how many minutes they are ahead of UTC, modulo a day.
const ZONES: [(&str, u64); 4] =
    [("UTC", 0), ("Asia/Kolkata", 330), ("America/Phoenix", 1_020), ("Asia/Tokyo", 540)];

/// Words that run a program with this file in place of the machine's boot id.
#[must_use]
pub fn with_boot_id(file: &Path) -> Vec<String> {
    let script =
        format!("mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$@\"", file.display());
    in_mounts(&script)
}

/// Words that run a program after a script in a mount namespace of its own.
#[must_use]
pub fn in_mounts(script: &str) -> Vec<String> {
    ["unshare", "-m", "sh", "-c", script, "sh"].map(str::to_owned).to_vec()
}
