//! `top`: a live view of the pools, with keys for a few actions.
//!
//! `source` fetches data and performs actions, `poller` does so on its own thread, `state` holds
//! what is shown and handles keys, `draw` renders it, `screen` owns the terminal. Guarantee: every
//! figure is one of the snapshot that `status --json` prints.

mod data;
mod draw;
#[cfg(test)]
mod fixture;
mod pane;
mod poller;
mod rows;
mod screen;
mod signals;
pub(crate) mod source;
mod state;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyEventKind};
use standpipe::escape;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::show::style::Style;
use data::ViewData;
use poller::Poller;
use screen::Screen;
use signals::Signal;
use source::{Done, Source};
use state::{Effect, State};

/// The longest time between two redraws.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);
/// How long quitting waits for the result of an action.
const FINAL_ACTION_TIMEOUT: Duration = Duration::from_secs(3);

/// An input of the view's main loop.
#[derive(Debug)]
enum Message {
    /// A terminal event.
    Input(Event),
    /// The terminal was closed.
    NoInput,
    Signal(Signal),
    Fetched(Result<Box<ViewData>, String>),
    ActionDone(Result<Done, String>),
}

/// How the view ended, with notes to print.
#[derive(Debug)]
pub(crate) struct ViewEnd {
    pub(crate) exit: Exit,
    pub(crate) messages: Vec<String>,
}

/// Shows the data of a source until the user quits.
///
/// # Errors
/// When the terminal cannot be used.
pub(crate) fn run(
    source: Box<dyn Source>,
    style: Style,
    interval: Duration,
) -> Result<ViewEnd, Failure> {
    let state = State::new(escape::text(&source.location()).into_owned(), interval);
    let (sender, messages) = channel();
    let system = |error: std::io::Error| Failure::system("the terminal cannot be used", &error);
    signals::listen(sender.clone()).map_err(system)?;
    let screen = Screen::enter().map_err(system)?;
    spawn_key_reader(sender.clone());
    let poller = Poller::start(source, interval, sender);
    let mut view = View { state, style, screen, poller, messages, pending: 0 };
    let exit = view.run().map_err(system)?;
    Ok(view.finish(exit))
}

/// The running view.
struct View {
    state: State,
    style: Style,
    screen: Screen,
    poller: Poller,
    messages: Receiver<Message>,
    /// The number of actions without a result.
    pending: usize,
}

impl View {
    fn run(&mut self) -> std::io::Result<Exit> {
        loop {
            self.screen.draw(|frame| draw::draw(frame, self.style, &mut self.state))?;
            screen::panic_in_tests("draw");
            let mut next = self.messages.recv_timeout(REDRAW_INTERVAL);
            loop {
                match next {
                    Ok(message) => {
                        if let Some(exit) = self.handle(message)? {
                            return Ok(exit);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Internal),
                }
                // Handle everything that has arrived before drawing again.
                next = self.messages.try_recv().map_err(|_| RecvTimeoutError::Timeout);
            }
            if screen::has_panicked() {
                return Ok(Exit::Internal);
            }
        }
    }

    fn handle(&mut self, message: Message) -> std::io::Result<Option<Exit>> {
        match message {
            Message::Input(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                let effect = self.state.update(key);
                return self.apply(effect);
            }
            Message::Input(_) => {}
            // As after SIGHUP.
            Message::NoInput => return Ok(Some(Exit::Code(129))),
            Message::Signal(Signal::End(number)) => return Ok(Some(Exit::Code(number))),
            Message::Signal(Signal::Resized) => self.screen.clear()?,
            Message::Signal(Signal::Stop) => self.screen.stop()?,
            Message::Signal(Signal::Continued) => self.screen.resume()?,
            Message::Fetched(fetched) => self.state.on_fetched(fetched.map(|data| *data)),
            Message::ActionDone(done) => {
                self.pending = self.pending.saturating_sub(1);
                self.state.on_action_done(done);
            }
        }
        Ok(None)
    }

    fn apply(&mut self, effect: Effect) -> std::io::Result<Option<Exit>> {
        match effect {
            Effect::Nothing => {}
            Effect::Quit => return Ok(Some(Exit::Ok)),
            Effect::Suspend => self.screen.stop()?,
            Effect::Redraw => self.screen.clear()?,
            Effect::Perform(action) => {
                self.pending += 1;
                self.poller.perform(action);
            }
        }
        Ok(None)
    }

    /// Restores the terminal and collects the results of actions that are still running.
    fn finish(mut self, exit: Exit) -> ViewEnd {
        screen::leave();
        let mut messages = Vec::new();
        let until = Instant::now() + FINAL_ACTION_TIMEOUT;
        while self.pending > 0 && exit == Exit::Ok {
            let left = until.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(Message::ActionDone(done)) => {
                    self.pending -= 1;
                    messages.push(done.map_or_else(|error| error, |done| done.to_string()));
                }
                Ok(_) => {}
                Err(_) => {
                    messages.push("the last action has no result yet".to_owned());
                    break;
                }
            }
        }
        ViewEnd { exit, messages }
    }
}

/// Starts the thread that reads keys. It ends with the process.
fn spawn_key_reader(sender: Sender<Message>) {
    std::thread::spawn(move || {
        while let Ok(events) = screen::next() {
            for event in events {
                if sender.send(Message::Input(event)).is_err() {
                    return;
                }
            }
        }
        // Without a receiver the view has ended already.
        let _gone = sender.send(Message::NoInput);
    });
}
