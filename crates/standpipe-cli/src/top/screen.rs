//! The terminal: raw mode and the alternate screen.
//!
//! Guarantee: however the process ends, short of SIGKILL, `leave` has restored the terminal.

use std::io::{ErrorKind, Stdout, stdin, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;

/// Whether the terminal is in raw mode on the alternate screen.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Whether a thread of this process panicked.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// The terminal while the view uses it.
pub(super) struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    pub(super) fn enter() -> std::io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(restore_terminal_on_panic);
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        activate()?;
        Ok(Self(terminal))
    }

    pub(super) fn draw(&mut self, what: impl FnOnce(&mut Frame<'_>)) -> std::io::Result<()> {
        // A stopped view draws when it is resumed.
        if ACTIVE.load(Ordering::SeqCst) {
            self.0.draw(what)?;
        }
        Ok(())
    }

    /// Clears the screen, so that the next draw is complete. Not by `Terminal::clear`, which
    /// queries the cursor: the reply would arrive among the keys that another thread reads.
    pub(super) fn clear(&mut self) -> std::io::Result<()> {
        execute!(stdout(), Clear(ClearType::All))?;
        self.0 = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(())
    }

    /// Restores the terminal and stops the process, as Ctrl-Z does; returns when it is continued.
    pub(super) fn stop(&mut self) -> std::io::Result<()> {
        leave();
        emulate_default_handler(SIGTSTP)?;
        self.resume()
    }

    /// Takes the terminal again after a stop, whatever state it was left in.
    pub(super) fn resume(&mut self) -> std::io::Result<()> {
        leave();
        activate()?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Waits for terminal events and returns all that have arrived, possibly none.
///
/// # Errors
/// When the terminal was closed. It is checked here, because crossterm would read the end of input
/// in an endless loop.
pub(super) fn next() -> std::io::Result<Vec<Event>> {
    let input = stdin();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    match poll(&mut fds, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    }
    let closed = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    if fds[0].revents().intersects(closed) {
        return Err(ErrorKind::BrokenPipe.into());
    }
    let mut events = Vec::new();
    while event::poll(Duration::ZERO)? {
        events.push(event::read()?);
    }
    Ok(events)
}

fn activate() -> std::io::Result<()> {
    ACTIVE.store(true, Ordering::SeqCst);
    let active = enable_raw_mode().and_then(|()| execute!(stdout(), EnterAlternateScreen, Hide));
    if active.is_err() {
        leave();
    }
    active
}

/// Restores the terminal, once.
pub(super) fn leave() {
    if ACTIVE.swap(false, Ordering::SeqCst) {
        // A closed terminal needs no restoring.
        let _gone = execute!(stdout(), Show, LeaveAlternateScreen);
        let _gone = disable_raw_mode();
    }
}

/// Whether a thread panicked, after which the view must end.
pub(super) fn has_panicked() -> bool {
    PANICKED.load(Ordering::SeqCst)
}

fn restore_terminal_on_panic() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICKED.store(true, Ordering::SeqCst);
        leave();
        default_hook(info);
    }));
}

/// Panics where a test requests it. Does nothing in a release build.
#[cfg(debug_assertions)]
#[expect(clippy::panic, reason = "tests check that the terminal is restored")]
pub(super) fn panic_in_tests(at: &str) {
    if std::env::var("STANDPIPE_TEST_PANIC").is_ok_and(|wanted| wanted == at) {
        panic!("panicked at {at}, as a test requested");
    }
}

#[cfg(not(debug_assertions))]
pub(super) const fn panic_in_tests(_at: &str) {}
