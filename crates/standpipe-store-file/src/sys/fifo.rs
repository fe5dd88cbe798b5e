//! Named pipes as wake-ups between processes: one byte in the pipe wakes its reader.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{CWD, FileType, Mode, OFlags};

/// Creates a named pipe and opens it for reading and writing.
///
/// The reader holds the write end too, so that the pipe never reports end of file.
pub(crate) fn create(path: &Path, mode: u32) -> io::Result<File> {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_bits_truncate(mode), 0)?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let pipe = rustix::fs::open(path, flags, Mode::empty())?;
    rustix::fs::fchmod(&pipe, Mode::from_bits_truncate(mode))?;
    Ok(File::from(pipe))
}

/// Writes a byte to the pipe at `path` if a process reads it; does nothing otherwise.
pub(crate) fn notify_path(path: &Path) {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(pipe) = rustix::fs::open(path, flags, Mode::empty()) {
        notify(&pipe);
    }
}

/// Writes a byte to an open pipe. A full pipe already has a wake-up pending.
pub(crate) fn notify(pipe: &OwnedFd) {
    let _ = rustix::io::write(pipe, &[1]);
}

/// Waits at most `timeout` until one of the pipes is readable, then drains all of them.
pub(crate) fn wait(pipes: &[Arc<OwnedFd>], timeout: Duration) {
    let mut fds: Vec<PollFd<'_>> =
        pipes.iter().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)).collect();
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    let _ = rustix::event::poll(&mut fds, Some(&timeout));
    let mut buffer = [0; 256];
    for pipe in pipes {
        while rustix::io::read(pipe, &mut buffer).is_ok_and(|read| read == buffer.len()) {}
    }
}
