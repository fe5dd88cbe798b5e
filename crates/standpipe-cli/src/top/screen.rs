//! The terminal: taken for the view, and always given back as it was.
//!
//! Invariant: whatever ends the process, short of a kill that nobody can see, `leave` ran before.

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

/// Whether the terminal is ours.
static OURS: AtomicBool = AtomicBool::new(false);
/// Whether something in this process panicked.
static STUMBLED: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours.
pub(super) struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    pub(super) fn enter() -> std::io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(leave_before_a_panic_is_told);
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        take()?;
        Ok(Self(terminal))
    }

    pub(super) fn draw(&mut self, what: impl FnOnce(&mut Frame<'_>)) -> std::io::Result<()> {
        // One who has not come back from the background draws when it has.
        if OURS.load(Ordering::SeqCst) {
            self.0.draw(what)?;
        }
        Ok(())
    }

    /// All of it is drawn anew the next time. Not by `Terminal::clear`: that asks where the cursor
    /// is, and the answer would come in among the keys that another thread reads.
    pub(super) fn clear(&mut self) -> std::io::Result<()> {
        execute!(stdout(), Clear(ClearType::All))?;
        self.0 = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(())
    }

    /// Gives the terminal back and stops, as everybody does on Ctrl-Z; comes back when continued.
    pub(super) fn stop(&mut self) -> std::io::Result<()> {
        leave();
        emulate_default_handler(SIGTSTP)?;
        self.again()
    }

    /// After a stop: whatever the terminal was made meanwhile, it is ours again.
    pub(super) fn again(&mut self) -> std::io::Result<()> {
        leave();
        take()?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Waits for what comes from the terminal next: all that came. It may come back with nothing.
///
/// # Errors
/// When the terminal is gone. That is looked for here, because a reader that is told "nothing more"
/// by a terminal that hung up asks again at once, for ever.
pub(super) fn next() -> std::io::Result<Vec<Event>> {
    let keys = stdin();
    let mut ears = [PollFd::new(&keys, PollFlags::IN)];
    match poll(&mut ears, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    if ears[0].revents().intersects(gone) {
        return Err(ErrorKind::BrokenPipe.into());
    }
    let mut came = Vec::new();
    while event::poll(Duration::ZERO)? {
        came.push(event::read()?);
    }
    Ok(came)
}

fn take() -> std::io::Result<()> {
    OURS.store(true, Ordering::SeqCst);
    let taken = enable_raw_mode().and_then(|()| execute!(stdout(), EnterAlternateScreen, Hide));
    if taken.is_err() {
        leave();
    }
    taken
}

/// Gives the terminal back, once.
pub(super) fn leave() {
    if OURS.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs nothing.
        let _gone = execute!(stdout(), Show, LeaveAlternateScreen);
        let _gone = disable_raw_mode();
    }
}

/// Whether some thread panicked: the view cannot go on as if nothing had been.
pub(super) fn has_stumbled() -> bool {
    STUMBLED.load(Ordering::SeqCst)
}

fn leave_before_a_panic_is_told() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        STUMBLED.store(true, Ordering::SeqCst);
        leave();
        told(info);
    }));
}

/// Panics where a test wants it; nothing in a program that people run.
#[cfg(debug_assertions)]
#[expect(clippy::panic, reason = "only so that tests see what is left behind")]
pub(super) fn stumble(at: &str) {
    if std::env::var("STANDPIPE_TEST_STUMBLE").is_ok_and(|wanted| wanted == at) {
        panic!("stumbled at {at}, as a test wants");
    }
}

#[cfg(not(debug_assertions))]
pub(super) const fn stumble(_at: &str) {}
