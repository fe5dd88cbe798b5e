//! Opening, preallocating, identifying and locking files.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, Timestamps};
use rustix::process::{Flock, FlockType};

/// Opens a file for reading and writing, without access-time updates where the system allows it.
///
/// Updating the access time costs as much as the read itself.
pub(crate) fn open_noatime(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        // Only the owner of a file may set the flag.
        Err(rustix::io::Errno::PERM) => {}
        opened => return Ok(File::from(opened?)),
    }
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Allocates disk blocks for a file, so that later writes to it cannot fail on a full disk.
pub(crate) fn preallocate(file: &File, length: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, length) {
        Ok(()) => return Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    file.set_len(length)
}

/// Returns the device and the inode of the file at a path.
///
/// It requests nothing but the inode: a request for the file's times makes the kernel update them
/// on the next write, which slows that write down.
#[cfg(target_os = "linux")]
pub(crate) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use rustix::fs::StatxFlags;
    match rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO) {
        Ok(stat) => {
            let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
            Ok((device, stat.stx_ino))
        }
        Err(rustix::io::Errno::NOSYS) => identity_by_stat(path),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    identity_by_stat(path)
}

/// Returns how many names an open file has.
///
/// It requests nothing else, for the reason given at [`identity`], and names no path: that is a
/// third of the price.
#[cfg(target_os = "linux")]
pub(crate) fn link_count(file: &File) -> io::Result<u64> {
    use rustix::fs::StatxFlags;
    match rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::NLINK) {
        Ok(stat) => Ok(u64::from(stat.stx_nlink)),
        Err(rustix::io::Errno::NOSYS) => Ok(file.metadata()?.nlink()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn link_count(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.nlink())
}

fn identity_by_stat(path: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

/// Whether an open file is the one at a path.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let own = file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    own.is_some() && own == identity(path).ok()
}

/// Tries to take a shared `flock`; `false` means that a process holds it exclusively.
///
/// It is shared so that several processes can test one file at the same time.
pub(crate) fn try_lock_shared(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the process that holds a record lock (`fcntl`) on a file. `Some(0)` is a process in a
/// namespace that this one cannot see.
pub(crate) fn record_lock_holder(file: &File) -> io::Result<Option<u32>> {
    let wanted = Flock::from(FlockType::WriteLock);
    let found = rustix::process::fcntl_getlk(file, &wanted)?;
    Ok(found.map(|lock| lock.pid.map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs())))
}

/// Returns the process that holds the `flock` of a file, where `/proc/locks` shows it.
pub(crate) fn flock_holder(file: &File) -> Option<u32> {
    let meta = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    // The kernel hands out the list in pieces. If it changes between two pieces a line can be
    // missing, so read it several times.
    (0..5).find_map(|_| holder_in_proc_locks(&wanted))
}

fn holder_in_proc_locks(wanted: &str) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // A line with an arrow is a process that waits for the lock.
    let held = |line: &&str| line.contains("FLOCK") && !line.contains("->");
    let line =
        locks.lines().filter(held).find(|line| line.split(' ').any(|word| word == wanted))?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    words.get(4)?.parse().ok()
}

/// Sets a file's modification time to now if it is older than `age`; returns whether it was.
///
/// A file that cannot be read or changed counts as old.
pub(crate) fn touch_if_older(path: &Path, age: Duration) -> bool {
    let modified = fs::metadata(path).and_then(|meta| meta.modified());
    // A time in the future comes from a clock that was set back; `elapsed` fails and it counts as
    // old.
    let since = modified.ok().and_then(|modified| modified.elapsed().ok());
    if since.is_some_and(|since| since < age) {
        return false;
    }
    let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    let _ = rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
    true
}
