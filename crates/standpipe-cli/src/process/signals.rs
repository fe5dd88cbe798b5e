//! Signals as something to look at: a handler raises a flag and rings a bell, and the one thread
//! there is looks when the bell rings.

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

/// What is passed on to a child.
const PASSED_ON: [i32; 9] =
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGCONT];

/// What ends a wait for admission.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// The signals that came, and a bell that rings when one does.
pub(crate) struct Signals {
    raised: Vec<(i32, Arc<AtomicBool>)>,
    over: Arc<AtomicBool>,
    hears: UnixStream,
    bell: Arc<Bell>,
}

/// Ends a [`Signals::wait`] from another thread.
pub(crate) struct Bell(UnixStream);

impl Signals {
    /// From now on signals no longer end this process; they are here to be taken. Those that our
    /// caller has us ignore, as `nohup` does, stay ignored, by us and by our children.
    ///
    /// # Errors
    /// When the operating system refuses a handler.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Self::listen_also(&[])
    }

    /// The same, for some more signals.
    ///
    /// # Errors
    /// As [`Signals::listen`].
    pub(crate) fn listen_also(more: &[i32]) -> std::io::Result<Self> {
        let (hears, rings) = UnixStream::pair()?;
        hears.set_nonblocking(true)?;
        rings.set_nonblocking(true)?;
        let ignored = ignored();
        let mut raised = Vec::new();
        let over = Arc::new(AtomicBool::new(false));
        for signal in PASSED_ON.into_iter().chain([SIGCHLD]).chain(more.iter().copied()) {
            if ignored & bit(signal) != 0 && signal != SIGCHLD {
                continue;
            }
            if ENDING.contains(&signal) {
                signal_hook::flag::register_conditional_default(signal, Arc::clone(&over))?;
            }
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            signal_hook::low_level::pipe::register(signal, rings.try_clone()?)?;
            raised.push((signal, flag));
        }
        Ok(Self { raised, over, hears, bell: Arc::new(Bell(rings)) })
    }

    /// Waits until a signal comes, the bell is rung, or so long. It may come back early.
    pub(crate) fn wait(&self, at_most: Option<Duration>) {
        let limit = at_most.and_then(|length| Timespec::try_from(length).ok());
        let mut ears = [PollFd::new(&self.hears, PollFlags::IN)];
        // A wait cut short by a signal is a wait that came back early.
        if poll(&mut ears, limit.as_ref()).is_ok() {
            self.hush();
        }
    }

    /// The signals to pass on that came since the last time.
    pub(crate) fn take(&self) -> Vec<i32> {
        let came = self.raised.iter().filter(|(_, flag)| flag.swap(false, Ordering::SeqCst));
        came.map(|(signal, _)| *signal).filter(|signal| *signal != SIGCHLD).collect()
    }

    /// The first signal that came and means "end".
    pub(crate) fn take_ending(&self) -> Option<i32> {
        self.take().into_iter().find(|signal| ENDING.contains(signal))
    }

    /// From now on a signal that means "end" ends this process again.
    pub(crate) fn end_us_again(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    fn hush(&self) {
        let mut bin = [0; 64];
        let mut hears = &self.hears;
        loop {
            match hears.read(&mut bin) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // A full pipe rings already.
        let _rings_already = (&self.0).write(&[0]);
    }
}

/// Whether the terminal sends this signal to everyone in the foreground, and we are there: then a
/// child in our group has it already.
pub(crate) fn child_has_it_too(signal: i32) -> bool {
    if !matches!(signal, SIGINT | SIGQUIT | SIGWINCH) {
        return false;
    }
    let ours = rustix::process::getpgrp();
    std::fs::File::open("/dev/tty")
        .ok()
        .and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok())
        .is_some_and(|foreground| foreground == ours)
}

/// The signals this process was told to ignore when it was started, one bit each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn bit(signal: i32) -> u64 {
    u32::try_from(signal - 1).ok().and_then(|place| 1_u64.checked_shl(place)).unwrap_or(0)
}
