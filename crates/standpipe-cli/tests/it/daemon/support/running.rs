//! How a test of the command line starts a daemon.

use rustix::process::Signal;

use super::Daemon;
use crate::support::Home;

impl Daemon {
    /// One on a free port.
    #[track_caller]
    pub(crate) fn up(home: &Home) -> Self {
        Self::up_with(home, &["--listen", "127.0.0.1:0"])
    }

    /// One with these words behind `up`.
    #[track_caller]
    pub(crate) fn up_with(home: &Home, words: &[&str]) -> Self {
        Self::of(home, &["--json", "up"], words)
    }

    /// One with these words on its command line.
    #[track_caller]
    pub(crate) fn of(home: &Home, first: &[&str], words: &[&str]) -> Self {
        Self::ready(home.command(first.iter().chain(words).copied()))
    }

    /// Kills it, as a machine in need of memory would.
    pub(crate) fn kill(self) {
        self.signal(Signal::KILL);
        self.ended();
    }
}
