//! What the peers need: a Redis server of our own, a Python and a Node with their packages.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::worker::pinned;

/// A Redis server on a free port that keeps nothing.
pub(crate) struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    pub(crate) fn start(directory: &Path, on_one_core: bool) -> Result<Self, String> {
        let port = free_port()?;
        let mut server = Command::new("redis-server");
        server.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        server.args(["--appendonly", "no", "--dir"]).arg(directory);
        let mut server = if on_one_core { pinned(&server) } else { server };
        let spawned = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = spawned.map_err(|error| format!("cannot start redis-server: {error}"))?;
        let redis = Self { child, port };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err("redis-server did not come up in ten seconds".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(redis)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> Result<u16, String> {
    let bound = TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr());
    bound.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

/// The version of Redis, installed if it is missing and we may.
pub(crate) fn redis_version() -> Result<String, String> {
    if output_of("redis-server", &["--version"]).is_none() && rustix::process::geteuid().is_root() {
        let _ = output_of("apt-get", &["install", "-y", "redis-server"]);
    }
    let line = output_of("redis-server", &["--version"]);
    let line = line.ok_or("no redis-server; as root: apt-get install -y redis-server")?;
    let version = line.split(' ').find_map(|word| word.strip_prefix("v="));
    Ok(format!("Redis {}", version.unwrap_or("of an unknown version")))
}

/// A Python with the peers' packages.
pub(crate) struct Python {
    program: PathBuf,
    scripts: PathBuf,
    /// Of Python 3.
    pub(crate) minor: u32,
    /// Its version and theirs.
    pub(crate) versions: String,
}

impl Python {
    /// Makes it in the build directory, once.
    pub(crate) fn prepare() -> Result<Self, String> {
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let home = build_directory()?.join("bench-peers");
        let program = home.join("bin/python3");
        let list = peers.join("requirements.txt");
        let wanted = std::fs::read_to_string(&list).unwrap_or_default();
        let note = home.join("installed.txt");
        if std::fs::read_to_string(&note).ok().as_ref() != Some(&wanted) {
            let found = newest_python().ok_or("no python3; install one with its venv module")?;
            run(Command::new(found).args(["-m", "venv"]).arg(&home))?;
            let mut pip = Command::new(&program);
            run(pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&list))?;
            let kept = std::fs::write(&note, &wanted);
            kept.map_err(|error| format!("cannot write {}: {error}", note.display()))?;
        }
        let python = output_of(&program.display().to_string(), &["--version"]).unwrap_or_default();
        let packages: Vec<String> = wanted
            .lines()
            .filter_map(|line| line.split(';').next())
            .map(|line| line.replace("==", " "))
            .collect();
        let versions = format!("{} ({})", python.trim(), packages.join(", "));
        let minor = minor_of(&python).unwrap_or_default();
        Ok(Self { program, scripts: peers, minor, versions })
    }

    pub(crate) fn pairs(&self, kind: &str, directory: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(self.scripts.join("pairs.py")).arg(kind).arg(directory).stderr(Stdio::null());
        command
    }

    pub(crate) fn redis_pairs(&self, kind: &str, url: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(self.scripts.join("redis_pairs.py")).args([kind, url]).stderr(Stdio::null());
        command
    }
}

/// A Node with the peers' packages.
pub(crate) struct Node {
    home: PathBuf,
    /// Its version and theirs.
    pub(crate) versions: String,
}

impl Node {
    /// Makes it in the build directory, once.
    pub(crate) fn prepare() -> Result<Self, String> {
        const PACKAGES: [&str; 2] = ["bottleneck@2.19.5", "ioredis@6.0.0"];
        let node = output_of("node", &["--version"]).ok_or("no node")?;
        let home = build_directory()?.join("bench-node");
        let wanted = PACKAGES.join(", ");
        let note = home.join("installed.txt");
        if std::fs::read_to_string(&note).ok().as_ref() != Some(&wanted) {
            let made = std::fs::create_dir_all(&home);
            made.map_err(|error| format!("cannot make {}: {error}", home.display()))?;
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&home);
            run(npm.args(PACKAGES).stderr(Stdio::null()))?;
            let kept = std::fs::write(&note, &wanted);
            kept.map_err(|error| format!("cannot write {}: {error}", note.display()))?;
        }
        let versions = format!("Node {} ({})", node.trim(), wanted.replace('@', " "));
        Ok(Self { home, versions })
    }

    pub(crate) fn bottleneck(&self, port: u16) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/bottleneck.mjs");
        let mut command = Command::new("node");
        command.arg(script).arg(&self.home).arg(port.to_string()).stderr(Stdio::null());
        command
    }
}

/// The newest that runs: of the path, or of pyenv.
fn newest_python() -> Option<String> {
    let mut candidates = vec!["python3".to_owned()];
    if let Some(root) = output_of("pyenv", &["root"]) {
        let versions = std::fs::read_dir(Path::new(root.trim()).join("versions"));
        let found = versions.into_iter().flatten().flatten().map(|entry| entry.path());
        candidates.extend(found.map(|path| path.join("bin/python3").display().to_string()));
    }
    candidates.extend((12..16).map(|minor| format!("python3.{minor}")));
    let minor = |program: &String| minor_of(&output_of(program, &["--version"])?);
    candidates.into_iter().filter(|program| minor(program).is_some()).max_by_key(minor)
}

fn minor_of(version: &str) -> Option<u32> {
    version.strip_prefix("Python 3.")?.split('.').next()?.parse().ok()
}

/// Where cargo put this program.
pub(crate) fn build_directory() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("no program: {error}"))?;
    let directory = program.parent().and_then(Path::parent);
    Ok(directory.ok_or("this program is nowhere")?.to_owned())
}

/// Runs a program that must succeed, without its output.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let ended = command.stdout(Stdio::null()).stdin(Stdio::null()).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{:?} ended with {status}", command.get_program())),
        Err(error) => Err(format!("cannot start {:?}: {error}", command.get_program())),
    }
}

/// The output of a program, if it succeeds.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}
