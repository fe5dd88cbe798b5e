//! The daemon: reserve and commit over its Unix socket, beside two calls of a handler on the same
//! stack that reads and answers the same JSON; processor time, memory, and how soon it is ready.

mod client;
mod json_peer;

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use self::client::{Client, lease_of};
pub(crate) use self::json_peer::serve as serve_json;
use crate::hold::built;
use crate::scratch::Scratch;
use crate::table::aim;

/// How many pairs of each are measured, in turns.
const PAIRS: usize = 5_000;
/// How many of each are made before anything is measured.
const WARM: usize = 500;
/// How many wait for the figure of memory.
const WAITERS: usize = 500;
/// How often it is started.
const STARTS: usize = 20;

const POOL: &str = "{\"pool\":\"bench/daemon\",\"agent\":\"bench\"}";

pub(crate) fn run() -> Result<(), String> {
    println!("## The daemon\n");
    println!(
        "Over a Unix socket, one connection kept alive; {PAIRS} pairs of calls of each, taken in \
         turns.\nThe pool has a window, a rate of tokens and calls in flight, on the file store.\n"
    );
    let program = built()?;
    let scratch = Scratch::new()?;
    let config = scratch.path().join("standpipe.toml");
    let text = "[pool.\"bench/daemon\"]\nrequests = \"1G/min\"\ninput_tokens = \"1G/min\"\n\
                parallel = 4000\n\n[pool.\"bench/full\"]\nparallel = 1\n";
    std::fs::write(&config, text).map_err(|error| format!("cannot write: {error}"))?;
    let mut daemon = Daemon::start(&program, scratch.path(), &config)?;
    let idle = daemon.memory()?;
    let pairs = measure(&daemon, scratch.path())?;
    let crowded = crowd(&daemon)?;
    daemon.stop();
    let mut ready = Vec::new();
    for _ in 0..STARTS {
        let began = Instant::now();
        let mut started = Daemon::start(&program, scratch.path(), &config)?;
        ready.push(began.elapsed().as_secs_f64() * 1e3);
        started.stop();
    }
    print(&pairs, idle, crowded, &mut ready);
    Ok(())
}

/// Microseconds of a pair, and of processor time per pair: with the daemon, and with the peer.
struct Pairs {
    daemon: Vec<f64>,
    peer: Vec<f64>,
    daemon_cpu: f64,
    peer_cpu: f64,
}

fn measure(daemon: &Daemon, scratch: &Path) -> Result<Pairs, String> {
    let path = scratch.join("peer.sock");
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["worker", "json-handler"]).arg(&path).stdout(Stdio::piped());
    let mut peer = command.spawn().map_err(|error| format!("no peer: {error}"))?;
    let mut line = String::new();
    if let Some(out) = peer.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
    }
    let mut ours = Client::to(&daemon.socket)?;
    let mut theirs = Client::to(&path.to_string_lossy())?;
    let (mut ours_took, mut theirs_took) = (Vec::new(), Vec::new());
    let mut cpu = (0.0, 0.0);
    for round in 0..WARM + PAIRS {
        if round == WARM {
            cpu = (processor_time(daemon.child.id())?, processor_time(peer.id())?);
        }
        let began = Instant::now();
        let lease = lease_of(&ours.post("/v1/leases", POOL, 201)?)?;
        ours.post(&format!("/v1/leases/{lease}/commit"), "{}", 200)?;
        let took = began.elapsed().as_secs_f64() * 1e6;
        let began = Instant::now();
        theirs.post("/v1/leases", POOL, 200)?;
        theirs.post(&format!("/v1/leases/{lease}/commit"), "{}", 200)?;
        let nothing = began.elapsed().as_secs_f64() * 1e6;
        if round >= WARM {
            ours_took.push(took);
            theirs_took.push(nothing);
        }
    }
    let per_pair = |before: f64, after: f64| (after - before) / PAIRS as f64;
    let daemon_cpu = per_pair(cpu.0, processor_time(daemon.child.id())?);
    let peer_cpu = per_pair(cpu.1, processor_time(peer.id())?);
    let _ended = peer.kill().and_then(|()| peer.wait());
    ours_took.sort_by(f64::total_cmp);
    theirs_took.sort_by(f64::total_cmp);
    Ok(Pairs { daemon: ours_took, peer: theirs_took, daemon_cpu, peer_cpu })
}

/// The processor time of a process so far, in microseconds.
fn processor_time(pid: u32) -> Result<f64, String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let stat = stat.map_err(|error| error.to_string())?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
    // The kernel counts a hundred ticks a second.
    Ok(ticks * 10_000.0)
}

/// Its memory while many wait, each on a connection of its own.
fn crowd(daemon: &Daemon) -> Result<f64, String> {
    let body = |agent: usize| format!("{{\"pool\":\"bench/full\",\"agent\":\"a{agent}\"}}");
    let mut holder = Client::to(&daemon.socket)?;
    holder.post("/v1/leases", &body(0), 201)?;
    let mut waiters: Vec<UnixStream> = Vec::new();
    for agent in 0..WAITERS {
        let mut waiter = Client::to(&daemon.socket)?;
        waiter.send("/v1/leases", &body(agent))?;
        waiters.push(waiter.into_stream());
    }
    let mut looker = Client::to(&daemon.socket)?;
    let waiting = format!("\"waiting\":{WAITERS}");
    while !looker.get("/v1/pools?pool=bench/full&rows=0")?.contains(&waiting) {
        std::thread::yield_now();
    }
    daemon.memory()
}

fn print(pairs: &Pairs, idle: f64, crowded: f64, ready: &mut [f64]) {
    let at = |sorted: &[f64], per_mille: usize| {
        sorted.get(sorted.len() * per_mille / 1_000).copied().unwrap_or(0.0)
    };
    println!("| two calls | median, µs | p99, µs |\n|---|---:|---:|");
    for (name, found) in
        [("reserve and commit", &pairs.daemon), ("the same JSON, twice", &pairs.peer)]
    {
        println!("| {name} | {:.0} | {:.0} |", at(found, 500), at(found, 990));
    }
    ready.sort_by(f64::total_cmp);
    let (times, soon) = (at(&pairs.daemon, 500) / at(&pairs.peer, 500), at(ready, 500));
    println!("\n| aim | reached | |\n|---|---:|---|");
    let text = "reserve and commit at most 2 times two calls of a handler with the same JSON";
    aim(text, Some(format!("{times:.2} ×")), Some(times <= 2.0));
    let cpu = pairs.daemon_cpu / pairs.peer_cpu;
    let shown = format!("{cpu:.2} × ({:.0} µs, {:.0} µs)", pairs.daemon_cpu, pairs.peer_cpu);
    aim("at most 2.5 times its processor time", Some(shown), Some(cpu <= 2.5));
    aim("30 MB resident when idle", Some(format!("{idle:.1} MB")), Some(idle <= 30.0));
    let text = format!("60 MB with {WAITERS} who wait");
    aim(&text, Some(format!("{crowded:.1} MB")), Some(crowded <= 60.0));
    let text = format!("ready in 100 ms (median of {STARTS})");
    aim(&text, Some(format!("{soon:.0} ms")), Some(soon <= 100.0));
    println!();
}

/// A daemon that runs.
struct Daemon {
    child: Child,
    socket: String,
}

impl Daemon {
    fn start(program: &Path, home: &Path, config: &Path) -> Result<Self, String> {
        let mut command = Command::new(program);
        command
            .args(["--json", "--quiet", "up", "--listen", "127.0.0.1:0", "--config"])
            .arg(config)
            .env("STANDPIPE_HOME", home.join("daemon"))
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("no daemon: {error}"))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        let socket = line.split("\"socket\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let socket = socket.ok_or("the daemon did not begin")?.to_owned();
        Ok(Self { child, socket })
    }

    /// Resident, in megabytes.
    fn memory(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
        let kilobytes = line.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
        kilobytes.map(|kilobytes| kilobytes / 1024.0).ok_or_else(|| "no figure".to_owned())
    }

    fn stop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
    }
}
