//! Standpipe on Redis, beside the least a script can do and beside peers: all on one private
//! server, in turns.

mod alone;
mod contest;
mod crowd;
mod fill;
mod flat;
mod foreign;
mod thousand;
mod work;

use std::process::Command;

use standpipe_servers::Server;

pub(crate) use self::work::run as work;
use crate::peers::{Node, Python, redis_version, run as run_quietly};
use crate::scratch::Scratch;
use crate::worker::{ourselves, shown};

/// Where everything runs.
struct Place {
    server: Server,
    home: Scratch,
    python: Result<Python, String>,
    node: Result<Node, String>,
}

/// How many admissions a full window holds.
const FULL: usize = 100_000;

/// A section: its name and what it runs.
type Section = (&'static str, fn(&Place) -> Result<(), String>);

/// The sections, in the order in which they run.
const SECTIONS: [Section; 5] = [
    ("foreign", foreign::run),
    ("alone", alone::run),
    ("crowd", crowd::run),
    ("thousand", thousand::run),
    ("flat", flat::run),
];

/// Runs all sections, or the one that is named.
pub(crate) fn run(only: Option<&str>) -> Result<(), String> {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    if !SECTIONS.iter().any(|(name, _)| wanted(name)) {
        let names: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
        return Err(format!("Redis has no such section; there are {}", names.join(", ")));
    }
    println!("## Redis\n");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    println!("{load} programs wanted the processors in the minute before.\n");
    // Asked first: without a server there would only be a panic.
    let version = redis_version()?;
    let home = Scratch::new()?;
    let (python, node) = (Python::prepare(), Node::prepare());
    let place = Place { server: Server::start(), home, python, node };
    let versions = |prepared: Result<&String, &String>| prepared.unwrap_or_else(|why| why).clone();
    println!(
        "{version}; {}; {}.\n",
        versions(place.python.as_ref().map(|python| &python.versions)),
        versions(place.node.as_ref().map(|node| &node.versions)),
    );
    for (_, section) in SECTIONS.iter().filter(|(name, _)| wanted(name)) {
        section(&place)?;
    }
    Ok(())
}

impl Place {
    /// This program as a worker of a kind on a pool, or a key.
    fn ourselves(&self, kind: &str, pool: &str) -> Result<Command, String> {
        let home = shown(self.home.path());
        ourselves(kind, &format!("{} {pool} {home}", self.server.url()))
    }

    /// Holds the server to these processors.
    fn keep_server_on(&self, processors: &str) -> Result<(), String> {
        let mut taskset = Command::new("taskset");
        let process = self.server.process_id().to_string();
        run_quietly(taskset.args(["-a", "-p", "-c", processors, &process]))
    }

    /// A peer in Python.
    fn python(&self, kind: &str) -> Result<Command, String> {
        let python = self.python.as_ref().map_err(Clone::clone)?;
        if kind.starts_with("token-throttle") && python.minor < 12 {
            return Err("token-throttle needs Python 3.12 or later; there is none here".to_owned());
        }
        Ok(python.redis_pairs(kind, &self.server.url()))
    }

    fn bottleneck(&self) -> Result<Command, String> {
        let node = self.node.as_ref().map_err(Clone::clone)?;
        Ok(node.bottleneck(self.server.port()))
    }
}
