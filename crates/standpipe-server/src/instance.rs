//! One daemon per state directory: `daemon.pid` is locked, `daemon.json` has the addresses.
//!
//! The kernel releases the lock at any death, so a leftover file never blocks a new daemon.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The addresses of a running daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    /// Its process id.
    pub pid: u32,
    /// Its TCP address.
    pub address: SocketAddr,
    /// Its Unix socket.
    pub socket: Option<PathBuf>,
    /// Whether callers over TCP need a token.
    pub token: bool,
}

impl Running {
    /// Returns the TCP address at which this machine reaches a daemon that listens on every one.
    #[must_use]
    pub const fn address_here(&self) -> SocketAddr {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        SocketAddr::new(ip, self.address.port())
    }
}

/// This process's lock on a state directory.
#[derive(Debug)]
pub(crate) struct InstanceLock {
    file: File,
    directory: PathBuf,
}

impl InstanceLock {
    /// Locks the directory, and creates it for this user only if it does not exist.
    pub(crate) fn acquire(directory: &Path) -> Result<Self, Failure> {
        create(directory)?;
        let path = pid_file(directory);
        let cannot = |error: &std::io::Error| {
            let what = format!("cannot use {}: {error}", path.display());
            Failure::new(what, "check the owner of the directory, or set STANDPIPE_HOME")
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(no_links());
        let mut file = options.open(&path).map_err(|error| cannot(&error))?;
        // `running` takes a shared lock for a moment to see whether a daemon runs.
        let tries = (0..10).map(|_| {
            let tried = file.try_lock();
            if matches!(tried, Err(TryLockError::WouldBlock)) {
                std::thread::sleep(Duration::from_millis(10));
            }
            tried
        });
        match tries.into_iter().find(Result::is_ok).unwrap_or_else(|| file.try_lock()) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(directory)),
            Err(TryLockError::Error(error)) => return Err(cannot(&error)),
        }
        write_pid(&mut file).map_err(|error| cannot(&error))?;
        Ok(Self { file, directory: directory.to_path_buf() })
    }

    /// Publishes the addresses of the daemon.
    pub(crate) fn announce(&self, running: &Running) -> Result<(), Failure> {
        let path = address_file(&self.directory);
        let beside = path.with_extension("new");
        let text = serde_json::to_vec(running).unwrap_or_default();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(no_links());
        let written = options
            .open(&beside)
            .and_then(|mut file| file.write_all(&text))
            .and_then(|()| fs::rename(&beside, &path));
        written.map_err(|error| {
            Failure::new(
                format!("cannot write {}: {error}", path.display()),
                "check for free disk space",
            )
        })
    }
}

impl Drop for InstanceLock {
    fn drop(&mut self) {
        // The file stays: another process may have it open and be about to lock it.
        let _left_as_it_is = fs::remove_file(address_file(&self.directory));
        let _left_as_it_is = self.file.set_len(0);
    }
}

/// The daemon that runs on a state directory, if any.
#[must_use]
pub fn running(directory: &Path) -> Option<Running> {
    let file = File::open(pid_file(directory)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        _ => return None,
    }
    let text = fs::read(address_file(directory)).ok()?;
    serde_json::from_slice(&text).ok()
}

fn in_use(directory: &Path) -> Failure {
    let pid = || {
        let mut text = String::new();
        File::open(pid_file(directory)).and_then(|mut file| file.read_to_string(&mut text)).ok()?;
        text.trim().parse::<u32>().ok()
    };
    let who = match (running(directory), pid()) {
        (Some(running), _) => {
            let (pid, address) = (running.pid, running.address_here());
            format!("a daemon is already running: process {pid} on http://{address}/")
        }
        (None, Some(pid)) => format!("a daemon is already running: process {pid}"),
        (None, None) => "a daemon is already running".to_owned(),
    };
    let what = format!("{who} ({})", directory.display());
    Failure::new(what, "use it, stop it with `standpipe down`, or set STANDPIPE_HOME")
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn create(directory: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    if directory.is_dir() {
        return Ok(());
    }
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    created.map_err(|error| {
        let what = format!("cannot create the state directory {}: {error}", directory.display());
        Failure::new(what, "set STANDPIPE_HOME to a directory on a local disk")
    })
}

/// The open flag that rejects symbolic links, which another user may place in a shared directory.
#[must_use]
pub fn no_links() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

/// Whether the group of a directory may write to it.
pub(crate) fn is_for_group(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|meta| meta.permissions().mode() & 0o020 != 0)
}

fn pid_file(directory: &Path) -> PathBuf {
    directory.join("daemon.pid")
}

fn address_file(directory: &Path) -> PathBuf {
    directory.join("daemon.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_on_every_address_is_reached_on_loopback() {
        for (listens, here) in [
            ("0.0.0.0:8377", "127.0.0.1:8377"),
            ("[::]:8377", "[::1]:8377"),
            ("192.0.2.7:8377", "192.0.2.7:8377"),
        ] {
            let address = listens.parse().unwrap();
            let running = Running { pid: 1, address, socket: None, token: true };
            assert_eq!(running.address_here().to_string(), here);
        }
    }
}
