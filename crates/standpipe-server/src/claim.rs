//! One daemon per state directory: a locked file that says which process it is, and one beside it
//! that says where it can be reached.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Where a running daemon can be reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    /// Its process.
    pub pid: u32,
    /// Its address.
    pub address: SocketAddr,
    /// Its Unix socket.
    pub socket: Option<PathBuf>,
    /// Whether callers by TCP have to show a token.
    pub token: bool,
}

/// The claim of this process on a state directory. The kernel drops it at any death.
#[derive(Debug)]
pub(crate) struct Claim {
    file: File,
    directory: PathBuf,
}

impl Claim {
    /// Takes the directory, which is made private to its user if it is not there.
    pub(crate) fn take(directory: &Path) -> Result<Self, Failure> {
        make(directory)?;
        let path = pid_file(directory);
        let cannot = |error: &std::io::Error| {
            let what = format!("cannot use {}: {error}", path.display());
            Failure::new(what, "see who owns the directory, or set STANDPIPE_HOME to another")
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(no_links());
        let mut file = options.open(&path).map_err(|error| cannot(&error))?;
        // Somebody may just be looking whether a daemon runs.
        let tries = (0..10).map(|_| {
            let tried = file.try_lock();
            if matches!(tried, Err(TryLockError::WouldBlock)) {
                std::thread::sleep(Duration::from_millis(10));
            }
            tried
        });
        match tries.into_iter().find(Result::is_ok).unwrap_or_else(|| file.try_lock()) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(taken(directory)),
            Err(TryLockError::Error(error)) => return Err(cannot(&error)),
        }
        write_pid(&mut file).map_err(|error| cannot(&error))?;
        Ok(Self { file, directory: directory.to_path_buf() })
    }

    /// Says where it can be reached.
    pub(crate) fn announce(&self, running: &Running) -> Result<(), Failure> {
        let path = announcement(&self.directory);
        let beside = path.with_extension("new");
        let text = serde_json::to_vec(running).unwrap_or_default();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(no_links());
        let written = options
            .open(&beside)
            .and_then(|mut file| file.write_all(&text))
            .and_then(|()| fs::rename(&beside, &path));
        written.map_err(|error| {
            Failure::new(format!("cannot write {}: {error}", path.display()), "is the disk full?")
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // The file itself stays: whoever has it open may be about to lock it.
        let _left_as_it_is = fs::remove_file(announcement(&self.directory));
        let _left_as_it_is = self.file.set_len(0);
    }
}

/// The daemon that runs on a state directory, if one does.
#[must_use]
pub fn running(directory: &Path) -> Option<Running> {
    let file = File::open(pid_file(directory)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        _ => return None,
    }
    let text = fs::read(announcement(directory)).ok()?;
    serde_json::from_slice(&text).ok()
}

fn taken(directory: &Path) -> Failure {
    let pid = || {
        let mut text = String::new();
        File::open(pid_file(directory)).and_then(|mut file| file.read_to_string(&mut text)).ok()?;
        text.trim().parse::<u32>().ok()
    };
    let who = match (running(directory), pid()) {
        (Some(Running { pid, address, .. }), _) => {
            format!("a daemon runs here already: process {pid} on http://{address}/")
        }
        (None, Some(pid)) => format!("a daemon runs here already: process {pid}"),
        (None, None) => "a daemon runs here already".to_owned(),
    };
    let what = format!("{who} ({})", directory.display());
    Failure::new(what, "use that one, stop it with `standpipe down`, or set STANDPIPE_HOME")
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn make(directory: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    if directory.is_dir() {
        return Ok(());
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| {
        let what = format!("cannot make the state directory {}: {error}", directory.display());
        Failure::new(what, "set STANDPIPE_HOME to a directory on a local disk")
    })
}

/// What lies in a shared directory may be a link that somebody else laid.
#[must_use]
pub fn no_links() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

/// Whether others of its group share a directory.
pub(crate) fn is_for_group(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|meta| meta.permissions().mode() & 0o020 != 0)
}

fn pid_file(directory: &Path) -> PathBuf {
    directory.join("daemon.pid")
}

fn announcement(directory: &Path) -> PathBuf {
    directory.join("daemon.json")
}
