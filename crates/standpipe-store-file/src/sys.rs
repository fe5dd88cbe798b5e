//! Where the operating system is touched, by safe calls only. What differs between systems is here
//! and nowhere else.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::process::{Flock, FlockType};
use standpipe_store::hash;

/// Microseconds since the machine started, sleep included.
pub(crate) fn boot_micros() -> u64 {
    #[cfg(target_os = "linux")]
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    #[cfg(not(target_os = "linux"))]
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000)
        .saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000)
}

/// Microseconds since 1970, as the machine believes.
pub(crate) fn wall_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Which start of the machine this is. Where the system does not say, always the same: then a
/// restart shows only in the clock's going back, and stamps wait until it has caught up.
pub(crate) fn boot_id() -> u64 {
    let id = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    hash(1, &id)
}

/// When a process started, in the system's own unit; none when there is no such process.
#[must_use]
pub fn process_started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, so fields are counted behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Whether a process is stopped.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state =
        stat.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().next());
    matches!(state, Some("T" | "t"))
}

/// The process that holds the lock of an open file, as far as the system tells.
pub(crate) fn lock_holder(file: &File) -> Option<u32> {
    let meta = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    // The list is read in pieces and may change between them, so that a line is missed.
    (0..5).find_map(|_| lock_line(&wanted))
}

fn lock_line(wanted: &str) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let held = |line: &&str| line.contains("FLOCK") && !line.contains("->");
    let line =
        locks.lines().filter(held).find(|line| line.split(' ').any(|word| word == wanted))?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    words.get(4)?.parse().ok()
}

/// Reserves room for a file on its disk, so that writing to it later cannot fail for lack of it.
pub(crate) fn preallocate(file: &File, length: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, length) {
        Ok(()) => return Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    file.set_len(length)
}

/// Opens a file to read and write. Where the system allows it, without noting each read in the
/// file's times, which would cost as much as the read.
pub(crate) fn open_quietly(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(rustix::io::Errno::PERM) => {}
        opened => return Ok(File::from(opened?)),
    }
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// What tells the file at a path from every other: its device and its number there.
///
/// Nothing else is asked for: who asks for a file's times makes the next write to it slower.
#[cfg(target_os = "linux")]
pub(crate) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use rustix::fs::{AtFlags, StatxFlags};
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

fn identity_by_stat(path: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

/// Takes the record lock of a file, which the system drops when this process ends, and which a
/// child of it does not inherit. Answers whether it could be had.
pub(crate) fn lock_record(file: &File) -> io::Result<bool> {
    match rustix::fs::fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Who holds the record lock of a file. `Some(0)` is somebody this process cannot see.
pub(crate) fn record_holder(file: &File) -> io::Result<Option<u32>> {
    let wanted = Flock::from(FlockType::WriteLock);
    let found = rustix::process::fcntl_getlk(file, &wanted)?;
    Ok(found.map(|lock| lock.pid.map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs())))
}

/// Makes a named pipe.
pub(crate) fn make_fifo(path: &Path, mode: u32) -> io::Result<()> {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_bits_truncate(mode), 0)?;
    Ok(rustix::fs::chmod(path, Mode::from_bits_truncate(mode))?)
}

/// Opens a named pipe to listen at. It is open for writing too, so that it never ends.
pub(crate) fn open_fifo(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Writes a byte to a named pipe that somebody listens at; else nothing.
pub(crate) fn ring(path: &Path) {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(pipe) = rustix::fs::open(path, flags, Mode::empty()) {
        ring_open(&pipe);
    }
}

/// Writes a byte to an open pipe. A full one has been rung already.
pub(crate) fn ring_open(pipe: &OwnedFd) {
    let _ = rustix::io::write(pipe, &[1]);
}

/// Waits until one of the pipes has something, at most so long, and empties them.
pub(crate) fn listen(pipes: &[Arc<OwnedFd>], at_most: Duration) {
    let mut fds: Vec<PollFd<'_>> =
        pipes.iter().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)).collect();
    let timeout = Timespec {
        tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    let _ = rustix::event::poll(&mut fds, Some(&timeout));
    let mut rung = [0; 256];
    for pipe in pipes {
        while rustix::io::read(pipe, &mut rung).is_ok_and(|read| read == rung.len()) {}
    }
}

/// Lets others run: whoever waits for what was just given back should get it.
pub(crate) fn give_way() {
    std::thread::yield_now();
}

/// The name of the network file system a directory lies on, if it lies on one.
pub(crate) fn network_file_system(directory: &Path) -> io::Result<Option<&'static str>> {
    #[cfg(target_os = "linux")]
    {
        let kind = rustix::fs::statfs(directory)?.f_type;
        let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Ok(network_kind(kind.cast_unsigned() & 0xffff_ffff, directory, &mounts))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = directory;
        Ok(None)
    }
}

/// The file system a directory lies on, as the machine names it.
pub(crate) fn file_system(directory: &Path) -> Option<String> {
    mounted_as(directory, &fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// How many bytes this user may still write there.
pub(crate) fn free_bytes(directory: &Path) -> io::Result<u64> {
    let room = rustix::fs::statvfs(directory)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// By the number the kernel gives each kind; user-space ones all share a number and are told apart
/// by what they are mounted as.
fn network_kind(magic: u64, directory: &Path, mounts: &dyn Fn() -> String) -> Option<&'static str> {
    const KINDS: &[(u64, &str)] = &[
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB"),
        (0x5346_414f, "AFS"),
        (0x7375_7245, "Coda"),
        (0x0102_1997, "9P"),
        (0x00c3_6400, "Ceph"),
        (0x0bd0_0bd0, "Lustre"),
        (0x4750_4653, "GPFS"),
        (0x7461_636f, "OCFS2"),
        (0x0116_1970, "GFS2"),
        (0x1983_0326, "BeeGFS"),
        (0x786f_4256, "a shared folder of VirtualBox"),
    ];
    const FUSE: u64 = 0x6573_5546;
    const REMOTE: &[(&str, &str)] = &[
        ("fuse.sshfs", "SSHFS"),
        ("fuse.glusterfs", "GlusterFS"),
        ("fuse.ceph", "Ceph"),
        ("fuse.s3fs", "S3"),
        ("fuse.goofys", "S3"),
        ("fuse.mount-s3", "S3"),
        ("fuse.gcsfuse", "Google Cloud Storage"),
        ("fuse.rclone", "rclone"),
        ("fuse.davfs", "WebDAV"),
        ("fuse.curlftpfs", "FTP"),
        ("fuse.juicefs", "JuiceFS"),
    ];
    if magic == FUSE {
        let kind = mounted_as(directory, &mounts())?;
        return REMOTE.iter().find(|(name, _)| *name == kind).map(|(_, shown)| *shown);
    }
    KINDS.iter().find(|(number, _)| *number == magic).map(|(_, name)| *name)
}

/// The type of the mount a directory lies on: the longest mount point that leads to it.
fn mounted_as(directory: &Path, mounts: &str) -> Option<String> {
    let mount = |line: &str| -> Option<(usize, String)> {
        let point = line.split(' ').nth(4)?.replace("\\040", " ");
        let kind = line.split_once(" - ")?.1.split(' ').next()?;
        let leads = directory.starts_with(Path::new(OsStr::new(&point)));
        leads.then(|| (point.len(), kind.to_owned()))
    };
    mounts.lines().filter_map(mount).max().map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b51_network_file_systems_are_recognised() {
        let here = Path::new("/mnt/far/standpipe");
        let none = || String::new();
        assert_eq!(network_kind(0x6969, here, &none), Some("NFS"));
        assert_eq!(network_kind(0xff53_4d42, here, &none), Some("CIFS"));
        // ext4, tmpfs, overlay, btrfs, xfs
        for local in [0xef53, 0x0102_1994, 0x794c_7630, 0x9123_683e, 0x5846_5342] {
            assert_eq!(network_kind(local, here, &none), None);
        }
        let mounts = || {
            "22 1 0:21 / / rw - ext4 /dev/vda rw\n\
             36 22 0:40 / /mnt rw - fuse.local local rw\n\
             37 36 0:41 / /mnt/far rw - fuse.sshfs me@host: rw\n"
                .to_owned()
        };
        assert_eq!(network_kind(0x6573_5546, here, &mounts), Some("SSHFS"));
        assert_eq!(network_kind(0x6573_5546, Path::new("/mnt/near"), &mounts), None);
    }

    #[test]
    fn a_living_process_has_a_start_and_a_missing_one_has_none() {
        assert!(process_started(std::process::id()).is_some());
        assert_eq!(process_started(u32::MAX), None);
        assert!(!is_stopped(std::process::id()));
    }
}
