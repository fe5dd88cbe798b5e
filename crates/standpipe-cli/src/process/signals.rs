//! Signals for a single-threaded program: a handler sets a flag and writes to a socket, and
//! [`Signals::wait`] polls the socket.
//!
//! Guarantee: a signal that the caller had us ignore, as `nohup` does, stays ignored by us and by
//! our children.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
};

/// The signals that are forwarded to a child.
const FORWARDED: [i32; 9] =
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGCONT];

/// The signals that end a wait for admission.
const TERMINATING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// The signals that have arrived, and a waker for each arrival.
pub(crate) struct Signals {
    flags: Vec<(i32, Arc<AtomicBool>)>,
    /// Set when terminating signals have their default action again.
    default_action: Arc<AtomicBool>,
    receiver: UnixStream,
    waker: Arc<SignalWaker>,
}

/// Ends a [`Signals::wait`] from another thread.
pub(crate) struct SignalWaker(UnixStream);

impl Signals {
    /// Installs the handlers. From now on signals do not end this process but are returned by
    /// [`Signals::take`].
    ///
    /// # Errors
    /// When the operating system refuses a handler.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Self::listen_with(&[])
    }

    /// As [`Signals::listen`], for more signals.
    ///
    /// # Errors
    /// As [`Signals::listen`].
    pub(crate) fn listen_with(more: &[i32]) -> std::io::Result<Self> {
        let (receiver, sender) = UnixStream::pair()?;
        receiver.set_nonblocking(true)?;
        sender.set_nonblocking(true)?;
        let ignored = ignored();
        let mut flags = Vec::new();
        let default_action = Arc::new(AtomicBool::new(false));
        for signal in FORWARDED.into_iter().chain([SIGCHLD]).chain(more.iter().copied()) {
            if ignored & bit(signal) != 0 && signal != SIGCHLD {
                continue;
            }
            if TERMINATING.contains(&signal) {
                signal_hook::flag::register_conditional_default(
                    signal,
                    Arc::clone(&default_action),
                )?;
            }
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
            flags.push((signal, flag));
        }
        Ok(Self { flags, default_action, receiver, waker: Arc::new(SignalWaker(sender)) })
    }

    /// Waits for a signal, a wake-up, or the timeout. It may return early.
    pub(crate) fn wait(&self, at_most: Option<Duration>) {
        let limit = at_most.and_then(|length| Timespec::try_from(length).ok());
        let mut fds = [PollFd::new(&self.receiver, PollFlags::IN)];
        // A poll interrupted by a signal is an early return.
        if poll(&mut fds, limit.as_ref()).is_ok() {
            self.drain();
        }
    }

    /// Returns the signals to forward that arrived since the last call.
    pub(crate) fn take(&self) -> Vec<i32> {
        let arrived = self.flags.iter().filter(|(_, flag)| flag.swap(false, Ordering::SeqCst));
        arrived.map(|(signal, _)| *signal).filter(|signal| *signal != SIGCHLD).collect()
    }

    /// Returns the first terminating signal that arrived.
    pub(crate) fn take_terminating(&self) -> Option<i32> {
        self.take().into_iter().find(|signal| TERMINATING.contains(signal))
    }

    /// Restores the default action of terminating signals: they end this process again.
    pub(crate) fn restore_default_action(&self) {
        self.default_action.store(true, Ordering::SeqCst);
    }

    pub(crate) fn waker(&self) -> Arc<SignalWaker> {
        Arc::clone(&self.waker)
    }

    fn drain(&self) {
        let mut buffer = [0; 64];
        let mut receiver = &self.receiver;
        loop {
            match receiver.read(&mut buffer) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

impl Wake for SignalWaker {
    fn wake(self: Arc<Self>) {
        // A full socket wakes the receiver already.
        let _wakes_already = (&self.0).write(&[0]);
    }
}

/// Whether the terminal sent this signal to the whole foreground process group, and we belong to
/// it: then a child in our group has received it already.
pub(crate) fn child_received_too(signal: i32) -> bool {
    if !matches!(signal, SIGINT | SIGQUIT | SIGWINCH) {
        return false;
    }
    let ours = rustix::process::getpgrp();
    std::fs::File::open("/dev/tty")
        .ok()
        .and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok())
        .is_some_and(|foreground| foreground == ours)
}

/// Returns the signals that were ignored when this process started, one bit each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn bit(signal: i32) -> u64 {
    u32::try_from(signal - 1).ok().and_then(|place| 1_u64.checked_shl(place)).unwrap_or(0)
}
