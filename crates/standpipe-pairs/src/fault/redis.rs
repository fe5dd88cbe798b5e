//! Faults of Redis servers and of the network before them.

mod servers;

use std::fs;
use std::time::Duration;

use super::Fault;
use crate::record::now;
use crate::scene::{How, Scene};
use crate::setup::Setup;

pub use servers::{Network, Servers};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A process of the clients is hurt as on the file store.
    Process(super::file::Act),
    /// The server is killed and starts with its data.
    Restart,
    /// The server is killed and starts without its data.
    RestartEmpty,
    /// The replica takes over with everything.
    Failover,
    /// The replica takes over without the last writes.
    LossyFailover,
    /// The replica takes over, and soon after a fresh replica of it does.
    TwoFailovers,
    /// Two servers take writes. With `min-replicas-to-write` one of them refuses to.
    SplitBrain {
        /// Whether the servers have that setting.
        guarded: bool,
    },
    /// The network is bad for a while.
    Network(Network),
    /// Answers are lost.
    LostAnswers,
    /// The server hangs.
    Hang,
    /// Writes fail for want of memory.
    Oom,
    /// Writes fail for want of replicas.
    NoReplicas,
    /// The server is read-only.
    ReadOnly,
    /// Writes fail because saving failed.
    MisConf,
    /// All data is deleted.
    FlushAll,
    /// One key of a pool is deleted.
    DeleteKey(&'static str),
    /// A key of a pool is overwritten by somebody else.
    ForeignValue(&'static str),
    /// Bytes are appended to a pool's log.
    ForeignBytes,
    /// The list of pools has another type.
    ForeignList,
    /// The list of pools is deleted.
    DeleteList,
    /// Keys are evicted to make room for others.
    Evict,
    /// Scripts are forgotten.
    ScriptFlush,
    /// Connections are closed by the server.
    KillClients,
    /// The user may do nothing for a while.
    Acl,
    /// The clock of the servers is set forward.
    ClockForward,
    /// The clock of the servers is set back.
    ClockBack,
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Fault> {
    let fault = |name: &str, act| Fault { name: name.to_owned(), act: super::Act::Redis(act) };
    let mut faults: Vec<Fault> = NAMED.iter().map(|(name, act)| fault(name, *act)).collect();
    for key in ["head", "log", "snapshot", "previous"] {
        faults.push(fault(&format!("delete-{key}"), Act::DeleteKey(key)));
        faults.push(fault(&format!("foreign-{key}"), Act::ForeignValue(key)));
    }
    faults
}

const NAMED: &[(&str, Act)] = &[
    ("kill", Act::Process(super::file::Act::Kill)),
    ("stop", Act::Process(super::file::Act::Stop)),
    ("fork", Act::Process(super::file::Act::Fork)),
    ("exec", Act::Process(super::file::Act::Exec)),
    ("change-kind", Act::Process(super::file::Act::Change(super::file::Change::Kind))),
    ("restart", Act::Restart),
    ("restart-empty", Act::RestartEmpty),
    ("failover", Act::Failover),
    ("lossy-failover", Act::LossyFailover),
    ("two-failovers", Act::TwoFailovers),
    ("split-brain", Act::SplitBrain { guarded: false }),
    ("split-brain-min-replicas", Act::SplitBrain { guarded: true }),
    ("cut", Act::Network(Network::Cut)),
    ("stall", Act::Network(Network::Stalled)),
    ("lag", Act::Network(Network::Lagging)),
    ("trickle", Act::Network(Network::Trickling)),
    ("lost-answers", Act::LostAnswers),
    ("hang", Act::Hang),
    ("oom", Act::Oom),
    ("no-replicas", Act::NoReplicas),
    ("read-only", Act::ReadOnly),
    ("misconf", Act::MisConf),
    ("flushall", Act::FlushAll),
    ("foreign-bytes", Act::ForeignBytes),
    ("foreign-list", Act::ForeignList),
    ("delete-list", Act::DeleteList),
    ("evict", Act::Evict),
    ("script-flush", Act::ScriptFlush),
    ("kill-clients", Act::KillClients),
    ("acl", Act::Acl),
    ("clock-forward", Act::ClockForward),
    ("clock-back", Act::ClockBack),
];

/// What must be there before the processes start.
pub(super) fn prepare(act: Act, scene: &mut Scene) -> Result<(), String> {
    let servers = scene.servers.as_mut().ok_or("there is no server")?;
    match act {
        Act::ClockForward | Act::ClockBack => {
            servers.replace(|options| options.movable_clock = true);
        }
        Act::SplitBrain { guarded } => {
            if guarded {
                servers.replace(|options| options.args = GUARD.map(str::to_owned).to_vec());
            }
            elsewhere(scene)?;
        }
        _ => {}
    }
    Ok(())
}

/// The settings that prevent a split brain, as `docs/redis.md` has them.
const GUARD: [&str; 4] = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"];

/// The configuration of processes that use the second way.
const ELSEWHERE: &str = "control/elsewhere.toml";

/// Two more processes, which reach the servers by the second way.
fn elsewhere(scene: &mut Scene) -> Result<(), String> {
    let path = scene.base.join(ELSEWHERE);
    if path.exists() {
        return Ok(());
    }
    let store = scene.servers.as_ref().map(Servers::second_url).unwrap_or_default();
    let setup = Setup { store, ..scene.setup() };
    fs::write(&path, setup.toml()).map_err(|error| error.to_string())?;
    for _ in 0..2 {
        let words = vec![format!("config={}", path.display())];
        scene.start(&How { words, ..How::default() })?;
    }
    Ok(())
}

/// Sets the bounds of spec section 2: in a split brain each limit once per side, and with `share`
/// (cut off + joined in the last minute) / N limits more. All processes of a scene can be cut off,
/// and all joined in the last minute; N is at least the number of those that run from the
/// beginning.
fn permit(scene: &mut Scene) {
    let Some(servers) = scene.servers.as_ref() else { return };
    let processes = scene.workers.len() as u64 + servers.more_processes;
    let least = if scene.base.join(ELSEWHERE).exists() { 5 } else { 3 };
    let shares = match servers.on_failure {
        "share" => (2 * processes).div_ceil(least),
        _ => 0,
    };
    scene.permitted.local = servers.on_failure == "open";
    (scene.permitted.times, scene.permitted.shares) = (servers.sides, shares);
}

pub(super) fn inject(act: Act, scene: &mut Scene) -> Result<(), String> {
    if let Act::Process(act) = act {
        return super::file::inject(act, scene);
    }
    let pool = ["slots", "window", "bucket"][scene.random.below(3) as usize];
    let chance = scene.random.below(1_000);
    let servers = scene.servers.as_mut().ok_or("there is no server")?;
    let key = |part: &str| format!("standpipe:{{pairs/{pool}}}:{part}");
    match act {
        Act::Process(_) => {}
        Act::Restart => servers.restart(true),
        Act::RestartEmpty => servers.restart(false),
        Act::Failover | Act::LossyFailover | Act::TwoFailovers if servers.is_split() => {}
        Act::Failover => fail_over(scene, false)?,
        Act::LossyFailover => fail_over(scene, true)?,
        Act::TwoFailovers => {
            fail_over(scene, false)?;
            std::thread::sleep(Duration::from_millis(chance));
            fail_over(scene, true)?;
        }
        Act::SplitBrain { .. } if servers.is_split() => {}
        Act::SplitBrain { guarded } => {
            servers.split(guarded)?;
            servers.sides = if guarded { 1 } else { 2 };
            // The promoted server pauses its pools for two seconds, and calls return after that.
            let short = guarded && servers.on_failure == "open";
            let lasts = if short { 2_000 } else { 5_000 };
            std::thread::sleep(Duration::from_millis(lasts + chance / 2));
        }
        Act::Network(network) => servers.network(network),
        Act::LostAnswers => servers.lose_answers(1 + chance as usize % 6),
        Act::Hang => servers.hang(true),
        Act::Oom => servers.run(&["CONFIG", "SET", "maxmemory", "1"]),
        Act::NoReplicas => servers.run(&["CONFIG", "SET", "min-replicas-to-write", "5"]),
        Act::ReadOnly => servers.run(&["REPLICAOF", "127.0.0.1", "1"]),
        Act::MisConf => cannot_save(servers)?,
        Act::FlushAll => servers.run(&["FLUSHALL"]),
        Act::DeleteKey(part) => servers.run(&["DEL", &key(part)]),
        Act::ForeignValue(part) => servers.run(&["SET", &key(part), "not ours"]),
        Act::ForeignBytes => servers.run(&["APPEND", &key("log"), "not ours"]),
        Act::ForeignList => servers.run(&["SET", "standpipe:pools", "not ours"]),
        Act::DeleteList => servers.run(&["DEL", "standpipe:pools"]),
        Act::Evict => evict(servers, chance)?,
        Act::ScriptFlush => servers.run(&["SCRIPT", "FLUSH"]),
        Act::KillClients => servers.run(&["CLIENT", "KILL", "TYPE", "normal"]),
        Act::Acl => servers.run(&["ACL", "SETUSER", "default", "-@all"]),
        Act::ClockForward => {
            scene.permitted.clock_ahead.push(now());
            servers.move_clock(1_000 + 90 * chance.cast_signed());
        }
        Act::ClockBack => servers.move_clock(-100 - 3 * chance.cast_signed()),
    }
    if makes_unavailable(act) {
        outlast(act, scene);
    }
    Ok(())
}

/// Whether pools are decided without the store if this lasts.
const fn makes_unavailable(act: Act) -> bool {
    matches!(
        act,
        Act::Network(_)
            | Act::Hang
            | Act::Oom
            | Act::NoReplicas
            | Act::ReadOnly
            | Act::MisConf
            | Act::Acl
    )
}

/// Lets an outage last longer than the second after which a store counts as unavailable: always
/// where that makes a difference, else now and then. With `open` it is over soon after, because a
/// bucket needs as long to refill as everybody took from it without limit.
fn outlast(act: Act, scene: &mut Scene) {
    let more = match scene.servers.as_ref().map(|servers| servers.on_failure) {
        Some("open") => 300,
        Some("share") => 1_000,
        _ if scene.random.below(3) == 0 => 1_000,
        _ => return,
    };
    // A call that gets no answer fails after a second.
    let silent = matches!(act, Act::Hang | Act::Network(Network::Stalled));
    let least = if silent { 2_100 } else { 1_100 };
    std::thread::sleep(Duration::from_millis(least + scene.random.below(more)));
}

fn fail_over(scene: &mut Scene, lossy: bool) -> Result<(), String> {
    let servers = scene.servers.as_mut().ok_or("there is no server")?;
    if !servers.fail_over(lossy)? {
        scene.permitted.replaced(now());
    }
    Ok(())
}

/// Saving fails, because a directory is in the place of the file.
fn cannot_save(servers: &Servers) -> Result<(), String> {
    let path = servers.directory().join("dump.rdb");
    // A server that followed another one has such a file.
    let _absent = fs::remove_file(&path);
    let _present = fs::create_dir(&path);
    servers.run(&["CONFIG", "SET", "save", "3600 1"]);
    for _ in 0..200 {
        servers.run(&["BGSAVE"]);
        if servers.ask(&["INFO"])?.contains("rdb_last_bgsave_status:err") {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err("the server saves in spite of everything".to_owned())
}

/// Fills the memory with other keys until some are evicted.
fn evict(servers: &Servers, chance: u64) -> Result<(), String> {
    let info = servers.ask(&["INFO"])?;
    let used = info.lines().find_map(|line| line.trim_end().strip_prefix("used_memory:"));
    let used: u64 = used.and_then(|used| used.parse().ok()).ok_or("no figure for memory")?;
    let policy = if chance.is_multiple_of(2) { "allkeys-random" } else { "allkeys-lru" };
    servers.run(&["CONFIG", "SET", "maxmemory-policy", policy]);
    servers.run(&["CONFIG", "SET", "maxmemory", &(used + 100_000).to_string()]);
    let filler = "x".repeat(10_000);
    for number in 0..40 {
        servers.run(&["SET", &format!("other:{number}"), &filler]);
    }
    Ok(())
}

pub(super) fn end(act: Act, scene: &mut Scene) -> Result<(), String> {
    let servers = scene.servers.as_mut().ok_or("there is no server")?;
    if let Act::Process(act) = act {
        servers.more_processes += match act {
            // One that starts its own program anew, and those that bring other limits.
            super::file::Act::Exec => 1,
            super::file::Act::Change(_) => 2,
            _ => 0,
        };
        permit(scene);
        return super::file::end(act, scene);
    }
    permit(scene);
    let servers = scene.servers.as_mut().ok_or("there is no server")?;
    match act {
        Act::Network(network) => servers.network_ends(network),
        Act::Hang => servers.hang(false),
        Act::Oom => servers.run(&["CONFIG", "SET", "maxmemory", "0"]),
        Act::NoReplicas => servers.any_replicas(),
        Act::ReadOnly => servers.run(&["REPLICAOF", "NO", "ONE"]),
        Act::MisConf => {
            let _absent = fs::remove_dir(servers.directory().join("dump.rdb"));
            servers.run(&["CONFIG", "SET", "save", ""]);
        }
        Act::Evict => {
            servers.run(&["CONFIG", "SET", "maxmemory", "0"]);
            servers.run(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        }
        Act::Acl => servers.run(&["ACL", "SETUSER", "default", "+@all"]),
        Act::SplitBrain { guarded } => {
            servers.unite();
            if !guarded {
                // What dead processes did on the side that is given up is lost.
                scene.permitted.replaced(now());
            }
        }
        _ => {}
    }
    Ok(())
}
