//! Where the daemon listens: an address of this machine, and a Unix socket beside it.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::fs::Mode;

use crate::failure::Failure;

/// How long whoever has the port already may take to say who it is.
const PATIENCE: Duration = Duration::from_millis(500);

/// How many connections may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4_096;

/// Listens on an address.
pub(crate) fn tcp(address: SocketAddr) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address);
    if let Ok(listener) = &bound {
        // The standard library lets 128 wait to be accepted. The kernel drops the first packet of
        // further ones, and they try again after a second.
        let _as_it_was = rustix::net::listen(listener, BACKLOG);
    }
    bound.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            let who = who_listens(address).unwrap_or_else(|| "another program".to_owned());
            let what = format!("{address} is taken by {who}");
            Failure::new(what, "stop it, or choose another address with --listen")
        }
        ErrorKind::PermissionDenied => {
            let what = format!("{address} may not be listened on: {error}");
            Failure::new(what, "choose a port from 1024 on with --listen")
        }
        ErrorKind::AddrNotAvailable => {
            let what = format!("{address} is no address of this machine");
            Failure::new(what, "choose one of its own with --listen, for example 127.0.0.1:8377")
        }
        _ => Failure::new(format!("cannot listen on {address}: {error}"), "try another --listen"),
    })
}

/// Listens on a Unix socket that only its user (and, in a shared directory, its group) may open.
pub(crate) fn unix(path: &Path, group: bool) -> Result<UnixListener, Failure> {
    clear(path)?;
    // Private from its first moment on.
    let hidden = if group { Mode::XGRP } else { Mode::RWXG };
    let before = rustix::process::umask(Mode::XUSR | hidden | Mode::RWXO);
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    bound.map_err(|error| {
        let what = format!("cannot listen on {}: {error}", path.display());
        let remedy = match error.kind() {
            ErrorKind::InvalidInput => "a socket's path has at most 107 bytes: set [server] socket",
            _ => "see who owns the directory, or set [server] socket to another path",
        };
        Failure::new(what, remedy)
    })
}

/// What a daemon that was killed left behind goes; what somebody listens on stays.
fn clear(path: &Path) -> Result<(), Failure> {
    let Ok(there) = fs::symlink_metadata(path) else { return Ok(()) };
    if !there.file_type().is_socket() {
        let what = format!("{} is there and is no socket", path.display());
        return Err(Failure::new(what, "set [server] socket to another path"));
    }
    if UnixStream::connect(path).is_ok() {
        let what = format!("somebody listens on {} already", path.display());
        return Err(Failure::new(what, "stop it, or set [server] socket to another path"));
    }
    fs::remove_file(path).map_err(|error| {
        let what = format!("cannot remove the old socket {}: {error}", path.display());
        Failure::new(what, "remove it, or set [server] socket to another path")
    })
}

/// Who listens on an address: another daemon says so itself, of others the system knows.
fn who_listens(address: SocketAddr) -> Option<String> {
    another_daemon(address).or_else(|| by_the_system(address))
}

fn another_daemon(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let ask = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).ok()?;
    let mut answer = Vec::new();
    let _until_it_is_silent = stream.take(8_192).read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let body = text.split_once("\r\n\r\n")?.1;
    let alive: serde_json::Value = serde_json::from_str(body).ok()?;
    if alive.get("server")? != "standpipe" {
        return None;
    }
    let pid = alive.get("pid")?.as_u64()?;
    Some(format!("another standpipe daemon (process {pid})"))
}

/// The process that has the listening socket open, as far as this user may see.
#[cfg(target_os = "linux")]
fn by_the_system(address: SocketAddr) -> Option<String> {
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
fn by_the_system(_address: SocketAddr) -> Option<String> {
    None
}

/// The inode of a line of `/proc/net/tcp`, if it listens on that port.
#[cfg(target_os = "linux")]
fn listening(line: &str, port: u16) -> Option<String> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let local = fields.get(1)?.rsplit_once(':')?.1;
    let same = u16::from_str_radix(local, 16).ok()? == port && *fields.get(3)? == LISTEN;
    same.then(|| (*fields.get(9)?).to_owned().into())?
}

/// Raises how many files this process may open: each connection is one.
pub fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(65_536).min(65_536);
    if limit.current.is_some_and(|current| current < most) {
        let raised = Rlimit { current: Some(most), maximum: limit.maximum };
        // With fewer, fewer callers are served at once.
        let _as_it_was = setrlimit(Resource::Nofile, raised);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_callers_need_not_wait_until_each_is_accepted() {
        let listener = tcp(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(5)).unwrap();
        let burst: Vec<TcpStream> = (0..400).map(connect).collect();
        assert_eq!(burst.len(), 400);
    }
}
