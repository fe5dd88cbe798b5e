//! A real process with the library: it asks, calls the provider, settles, and writes it all down.
//!
//! Started by the driver with `pairs worker key=value …`. It ends when the file `stop` appears.

mod crowd;

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use standpipe::{Error, Lease, Pool, Request, Standpipe};
use standpipe_sim::Random;

use self::crowd::Crowd;
use crate::http::ProviderClient;
use crate::record::{Recorder, now};
use crate::setup::{CHILD, DAY, NAMED, PARENT, SLOTS};

/// What a process was started with.
#[derive(Clone, Debug)]
pub struct Args {
    words: BTreeMap<String, String>,
}

impl Args {
    /// Reads `key=value` words.
    #[must_use]
    pub fn read(words: impl Iterator<Item = String>) -> Self {
        let pair = |word: String| word.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
        Self { words: words.filter_map(pair).collect() }
    }

    pub(crate) fn get(&self, key: &str) -> &str {
        self.words.get(key).map_or("", String::as_str)
    }

    pub(crate) fn path(&self, key: &str) -> PathBuf {
        PathBuf::from(self.get(key))
    }

    pub(crate) fn number(&self, key: &str) -> u64 {
        self.get(key).parse().unwrap_or_default()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.path("stop").exists()
    }

    /// The words again, with some changed.
    fn words(&self, changed: &[(&str, String)]) -> Vec<String> {
        let mut words = self.words.clone();
        words.extend(changed.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        words.into_iter().map(|(key, value)| format!("{key}={value}")).collect()
    }
}

/// The process's life.
///
/// # Errors
/// When its own record cannot be written.
pub fn run(args: &Args) -> Result<(), String> {
    let recorder = Recorder::open(&args.path("log"))?;
    recorder.write("begin", 0, "-", &std::process::id().to_string());
    let Some(tap) = open(args, &recorder) else { return Ok(()) };
    let mut worker = Worker {
        random: Random::new(args.number("seed")),
        number: 0,
        pools: NAMED.map(|name| tap.pool(name)).into_iter().flatten().collect(),
        provider: ProviderClient::new(args.get("provider"), args.get("agent")),
        args: args.clone(),
        recorder,
        asks: 0,
    };
    let crowd = Crowd::gather(args.get("mode"), &tap, &worker.recorder);
    // A bound, in case the driver was killed.
    let bound = now() + 180_000_000;
    while !args.is_stopped() && now() < bound {
        worker.turn();
    }
    drop((crowd, tap));
    worker.recorder.write("end", 0, "-", "");
    Ok(())
}

/// Opens the tap, again and again while that fails.
fn open(args: &Args, recorder: &Recorder) -> Option<Standpipe> {
    let bound = now() + 180_000_000;
    while !args.is_stopped() && now() < bound {
        let home = args.path("home");
        let mut builder = Standpipe::builder().config(args.path("config")).home(home);
        if args.get("bug") == "own-ledger"
            && let Ok(url) = format!("file:{}.store", args.get("log")).parse()
        {
            builder = builder.store(url);
        }
        match builder.open() {
            Ok(tap) => return Some(tap),
            Err(error) => recorder.write("error", 0, "-", &error.to_string()),
        };
        std::thread::sleep(Duration::from_millis(50));
    }
    recorder.write("end", 0, "-", "never opened");
    None
}

/// How long a call is ready to wait, in milliseconds. A day is too long to wait for.
pub(crate) fn patience(pool: &str, random: &mut Random) -> u64 {
    match random.below(10) {
        _ if pool == DAY => 0,
        0..=5 => 0,
        6..=8 => 300,
        _ => 20_000,
    }
}

/// How long the provider takes for a call, in milliseconds.
pub(crate) fn service(pool: &str, random: &mut Random) -> u64 {
    if pool == SLOTS || pool == CHILD { 2 + random.below(25) } else { 0 }
}

struct Worker {
    args: Args,
    recorder: Recorder,
    random: Random,
    number: u64,
    pools: Vec<Pool>,
    provider: ProviderClient,
    asks: u64,
}

impl Worker {
    /// One call, from the ask to its settlement.
    fn turn(&mut self) {
        let Some(pool) = self.pools.get(self.random.below(self.pools.len() as u64) as usize) else {
            return;
        };
        let pool = pool.clone();
        self.number += 1;
        self.asks += 1;
        let (number, name) = (self.number, pool.name().as_str().to_owned());
        let timeout = patience(&name, &mut self.random);
        let request = Request::by(self.agent()).timeout(Duration::from_millis(timeout));
        self.recorder.write("ask", number, &name, &timeout.to_string());
        match pool.reserve(request).blocking() {
            Ok(lease) => self.call(number, &name, lease),
            Err(error @ Error::Refused(_)) => {
                self.recorder.write("refuse", number, &name, &error.to_string());
                std::thread::sleep(Duration::from_millis(self.random.below(15)));
            }
            Err(error) => {
                self.recorder.write("error", number, &name, &error.to_string());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Its own name; one of very many with `agents`.
    fn agent(&mut self) -> String {
        match self.args.number("agents") {
            0 => self.args.get("agent").to_owned(),
            many => format!("{}-{}", self.args.get("agent"), self.random.below(many)),
        }
    }

    fn call(&mut self, number: u64, name: &str, lease: Lease) {
        let how = if lease.is_local() { "local" } else { "store" };
        self.recorder.write("grant", number, name, &format!("{how} {}", lease.id()));
        if self.number % 16 == 7 {
            match self.args.get("mode") {
                "exec" => self.exec(),
                "fork" => self.fork(),
                _ => {}
            }
        }
        if self.random.below(8) == 0 {
            self.recorder.write("cancel", number, name, "");
            let done = lease.cancel();
            self.done(number, name, done.blocking());
            return;
        }
        let service = service(name, &mut self.random);
        if self.provider.call(name, &lease.id().to_string(), service).is_err() {
            self.recorder.write("unanswered", number, name, "");
        }
        self.recorder.write("settle", number, name, "");
        let id = lease.id().to_string();
        let done = lease.commit([]);
        self.done(number, name, done.blocking());
        self.misbehave(name, &id, service);
    }

    /// The bug that the word `bug` plants, to see that the referee finds it.
    fn misbehave(&mut self, name: &str, settled: &str, service: u64) {
        let lease = match self.args.get("bug") {
            "no-lease" if self.number % 8 == 3 => "",
            "after-commit" if self.number % 8 == 3 => settled,
            _ => return,
        };
        let _unanswered = self.provider.call(name, lease, service);
    }

    fn done(&self, number: u64, name: &str, done: Result<(), Error>) {
        let text = done.err().map_or_else(|| "ok".to_owned(), |error| error.to_string());
        self.recorder.write("done", number, name, &text);
    }

    /// The same program anew in this process, while a lease is held.
    fn exec(&self) {
        let log = format!("{}+", self.args.get("log"));
        self.recorder.write("end", 0, "-", "exec");
        let program = std::env::current_exe().unwrap_or_default();
        let words = self.args.words(&[("log", log), ("mode", String::new())]);
        let error = Command::new(program).arg("worker").args(words).exec();
        self.recorder.write("error", 0, "-", &error.to_string());
    }

    /// A child that shares everything and uses nothing, until the scene ends.
    fn fork(&mut self) {
        self.args = Args::read(self.args.words(&[("mode", String::new())]).into_iter());
        let stop = self.args.path("stop");
        if standpipe_forks::fork() == Some(0) {
            let bound = now() + 180_000_000;
            while !stop.exists() && now() < bound {
                std::thread::sleep(Duration::from_millis(20));
            }
            // Without its destructors, as a child that is killed.
            standpipe_forks::exit_now();
        }
    }
}

/// Brings the configuration to the ledger, and ends.
///
/// # Errors
/// When the ledger does not take it within 30 s.
pub fn configure(args: &Args) -> Result<(), String> {
    let recorder = Recorder::open(&args.path("log"))?;
    for _ in 0..300 {
        match bring(&args.path("config"), &args.path("home")) {
            Ok(()) => {
                recorder.write("configured", 0, "-", "");
                return Ok(());
            }
            Err(error) => recorder.write("error", 0, "-", &error.to_string()),
        };
        std::thread::sleep(Duration::from_millis(100));
    }
    Err("the configuration could not be brought to the ledger within 30 s".to_owned())
}

fn bring(config: &Path, home: &Path) -> Result<(), Error> {
    let tap = Standpipe::builder().config(config).home(home).open()?;
    for name in NAMED.into_iter().chain([PARENT]) {
        tap.pool(name)?.status().blocking()?;
    }
    Ok(())
}

/// Takes the whole capacity of every pool at once, to see that nothing leaked.
///
/// # Errors
/// When that cannot be done within the bound.
pub fn probe(args: &Args) -> Result<(), String> {
    let recorder = Recorder::open(&args.path("log"))?;
    let mut number = 0;
    for part in args.get("capacity").split(',') {
        let Some((name, amount)) = part.split_once('=') else { continue };
        let amount = amount.parse().unwrap_or_default();
        let mut last = String::new();
        let whole = (0..args.number("tries")).any(|_| {
            let taken = take_all(args, &recorder, &mut number, name, amount);
            let failed = taken.err();
            if let Some(error) = &failed {
                last.clone_from(error);
                // What a failed try took has come back by then.
                std::thread::sleep(Duration::from_millis(1_200));
            }
            failed.is_none()
        });
        if !whole {
            return Err(format!("{amount} of {name} cannot be taken: {last}"));
        }
    }
    recorder.write("end", 0, "-", "");
    Ok(())
}

/// Takes so many at once without waiting; gives them back if there are fewer.
fn take_all(
    args: &Args,
    recorder: &Recorder,
    number: &mut u64,
    name: &str,
    amount: u64,
) -> Result<(), String> {
    let words = |error: Error| error.to_string();
    let tap = Standpipe::builder().config(args.path("config")).home(args.path("home")).open();
    let pool = tap.and_then(|tap| tap.pool(name)).map_err(words)?;
    let mut leases: Vec<(u64, Lease)> = Vec::new();
    let mut failed = Ok(());
    for _ in 0..amount {
        *number += 1;
        recorder.write("ask", *number, name, "0");
        match pool.reserve(Request::by("probe").timeout(Duration::ZERO)).blocking() {
            Ok(lease) if lease.is_local() => {
                recorder.write("grant", *number, name, "local");
                leases.push((*number, lease));
                failed = Err("decided without the store".to_owned());
            }
            Ok(lease) => {
                recorder.write("grant", *number, name, "store");
                leases.push((*number, lease));
            }
            Err(error) => {
                recorder.write("refuse", *number, name, &error.to_string());
                failed = Err(format!("{} of {amount}, then: {error}", leases.len()));
                break;
            }
        }
    }
    // The first is a call in any case: after a pause others follow only when one was answered.
    for (at, (number, lease)) in leases.into_iter().enumerate() {
        let settles = failed.is_ok() || at == 0;
        recorder.write(if settles { "settle" } else { "cancel" }, number, name, "");
        let done = if settles { lease.commit([]) } else { lease.cancel() };
        recorder.write("done", number, name, if done.blocking().is_ok() { "ok" } else { "failed" });
    }
    failed
}
