//! Opens the sockets the daemon listens on: a TCP address and a Unix socket.
//!
//! If an address is in use, the error names the program that holds it.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;

use crate::failure::Failure;

/// How long the program that holds the port may take to identify itself.
const IDENTIFY_TIMEOUT: Duration = Duration::from_millis(500);

/// The length of the accept queue; the system may allow less.
const BACKLOG: i32 = 4_096;

/// Listens on an address.
pub(crate) fn tcp(address: SocketAddr) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address);
    if let Ok(listener) = &bound {
        // The standard library uses 128. Beyond that the kernel drops the first packet, and the
        // client retries only after a second.
        let _as_it_was = rustix::net::listen(listener, BACKLOG);
    }
    bound.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            let Holder { who, stop } = holder_of(address);
            let what = format!("{address} is in use by {who}");
            Failure::new(what, format!("{stop}, or choose another address with --listen"))
        }
        ErrorKind::PermissionDenied => {
            let what = format!("no permission to listen on {address}: {error}");
            Failure::new(what, "choose a port of 1024 or above with --listen")
        }
        ErrorKind::AddrNotAvailable => {
            let what = format!("{address} is not an address of this machine");
            Failure::new(what, "choose another with --listen, for example 127.0.0.1:8377")
        }
        _ => Failure::new(format!("cannot listen on {address}: {error}"), "try another --listen"),
    })
}

/// Listens on a Unix socket that only its owner, or in a shared directory its group, may open.
pub(crate) fn unix(path: &Path, group: bool) -> Result<UnixListener, Failure> {
    remove_stale(path)?;
    // With the umask the socket is private from the start; a later chmod would leave a gap.
    let hidden = if group { Mode::XGRP } else { Mode::RWXG };
    let before = rustix::process::umask(Mode::XUSR | hidden | Mode::RWXO);
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    bound.map_err(|error| {
        let what = format!("cannot listen on {}: {error}", path.display());
        let remedy = match error.kind() {
            ErrorKind::InvalidInput => "set [server] socket to a path of at most 107 bytes",
            _ => "check the owner of the directory, or set [server] socket to another path",
        };
        Failure::new(what, remedy)
    })
}

/// Removes the socket of a killed daemon; a socket in use is an error.
fn remove_stale(path: &Path) -> Result<(), Failure> {
    let Ok(there) = fs::symlink_metadata(path) else { return Ok(()) };
    if !there.file_type().is_socket() {
        let what = format!("{} exists and is not a socket", path.display());
        return Err(Failure::new(what, "set [server] socket to another path"));
    }
    if UnixStream::connect(path).is_ok() {
        let what = format!("{} is in use by another program", path.display());
        return Err(Failure::new(what, "stop it, or set [server] socket to another path"));
    }
    fs::remove_file(path).map_err(|error| {
        let what = format!("cannot remove the old socket {}: {error}", path.display());
        Failure::new(what, "remove it, or set [server] socket to another path")
    })
}

/// A program that listens on an address.
struct Holder {
    who: String,
    /// How to stop it.
    stop: String,
}

/// The program that listens on an address: a daemon names itself, `/proc` names others.
fn holder_of(address: SocketAddr) -> Holder {
    if let Some(pid) = another_daemon(address) {
        let who = format!("another standpipe daemon (process {pid})");
        let stop = match state_directory_of(pid) {
            Some(directory) => {
                format!("stop it (STANDPIPE_HOME={} standpipe down)", directory.display())
            }
            None => format!("stop it (kill {pid})"),
        };
        return Holder { who, stop };
    }
    let who = from_proc(address).unwrap_or_else(|| "another program".to_owned());
    Holder { who, stop: "stop it".to_owned() }
}

/// The state directory of a daemon, if this user may see it: there its lock is.
fn state_directory_of(pid: u64) -> Option<PathBuf> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    let lock = targets.find(|target| target.ends_with("daemon.pid"))?;
    let directory = lock.parent()?;
    // A hint is typed into a shell.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    let fits = directory.to_str()?.chars().all(is_plain);
    fits.then(|| directory.to_path_buf())
}

/// The process of a daemon that listens on an address.
fn another_daemon(address: SocketAddr) -> Option<u64> {
    let mut stream = TcpStream::connect_timeout(&address, IDENTIFY_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(IDENTIFY_TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(IDENTIFY_TIMEOUT)).ok()?;
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    let _until_timeout = stream.take(8_192).read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let body = text.split_once("\r\n\r\n")?.1;
    let health: serde_json::Value = serde_json::from_str(body).ok()?;
    if health.get("server")? != "standpipe" {
        return None;
    }
    health.get("pid")?.as_u64()
}

/// The process that holds the listening socket, if this user may see it.
#[cfg(target_os = "linux")]
fn from_proc(address: SocketAddr) -> Option<String> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|table| {
        let table = fs::read_to_string(table).ok()?;
        table.lines().skip(1).find_map(|line| listening(line, address.port()))
    })?;
    let wanted = format!("socket:[{inode}]");
    let has_it = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        targets.any(|target| target.as_os_str() == wanted.as_str())
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pid = pids.into_iter().find(has_it)?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| !c.is_control()).collect();
    Some(format!("{name} (process {pid})"))
}

#[cfg(not(target_os = "linux"))]
fn from_proc(_address: SocketAddr) -> Option<String> {
    None
}

/// The inode in a line of `/proc/net/tcp` that listens on that port.
#[cfg(target_os = "linux")]
fn listening(line: &str, port: u16) -> Option<String> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let local = fields.get(1)?.rsplit_once(':')?.1;
    let same = u16::from_str_radix(local, 16).ok()? == port && *fields.get(3)? == LISTEN;
    same.then(|| (*fields.get(9)?).to_owned().into())?
}

/// Raises the limit of open files: every connection is one.
pub fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(65_536).min(65_536);
    if limit.current.is_some_and(|current| current < most) {
        let raised = Rlimit { current: Some(most), maximum: limit.maximum };
        // If this fails, fewer connections can be open.
        let _as_it_was = setrlimit(Resource::Nofile, raised);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_connections_does_not_wait_to_be_accepted() {
        let listener = tcp(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(5)).unwrap();
        let burst: Vec<TcpStream> = (0..400).map(connect).collect();
        assert_eq!(burst.len(), 400);
    }
}
