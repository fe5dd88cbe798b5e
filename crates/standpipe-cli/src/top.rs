//! `top`: how pools stand, live, and a few keys to act on them.
//!
//! `source` looks and acts, `watch` does so aside from the screen, `state` is what is on it and
//! what a key does to that, `draw` is how it looks, `screen` the terminal itself. Invariant: every
//! figure is one of the snapshot that `status --json` prints.

mod draw;
#[cfg(test)]
mod fixture;
mod pane;
mod picture;
mod rows;
mod screen;
mod signals;
pub(crate) mod source;
mod state;
mod watch;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyEventKind};
use standpipe::escape;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::show::style::Style;
use picture::Picture;
use screen::Screen;
use signals::Signal;
use source::{Done, Source};
use state::{Effect, State};
use watch::Watch;

/// How long the screen is left as it is when nothing comes.
const QUIET: Duration = Duration::from_secs(1);
/// How long an act that was asked for is waited for when somebody quits.
const LAST_ACT: Duration = Duration::from_secs(3);

/// What the screen waits for.
#[derive(Debug)]
enum Message {
    /// From the terminal.
    Input(Event),
    /// The terminal is gone.
    NoInput,
    Signal(Signal),
    Looked(Result<Box<Picture>, String>),
    Acted(Result<Done, String>),
}

/// How a view ended, and what is left to say.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) exit: Exit,
    pub(crate) said: Vec<String>,
}

/// Shows what a source sees until somebody quits.
///
/// # Errors
/// When the terminal cannot be used.
pub(crate) fn run(
    source: Box<dyn Source>,
    style: Style,
    interval: Duration,
) -> Result<Over, Failure> {
    let state = State::new(escape::text(&source.place()).into_owned(), interval);
    let (sender, messages) = channel();
    let system = |error: std::io::Error| Failure::system("the terminal cannot be used", &error);
    signals::listen(sender.clone()).map_err(system)?;
    let screen = Screen::enter().map_err(system)?;
    listen_to_keys(sender.clone());
    let watch = Watch::start(source, interval, sender);
    let mut view = View { state, style, screen, watch, messages, pending: 0 };
    let exit = view.run().map_err(system)?;
    Ok(view.end(exit))
}

/// All that is alive while there is a picture.
struct View {
    state: State,
    style: Style,
    screen: Screen,
    watch: Watch,
    messages: Receiver<Message>,
    /// Acts that were asked for and not answered.
    pending: usize,
}

impl View {
    fn run(&mut self) -> std::io::Result<Exit> {
        loop {
            self.screen.draw(|frame| draw::draw(frame, self.style, &mut self.state))?;
            screen::stumble("draw");
            let mut next = self.messages.recv_timeout(QUIET);
            loop {
                match next {
                    Ok(message) => {
                        if let Some(exit) = self.hear(message)? {
                            return Ok(exit);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Internal),
                }
                // Whatever else has come is heard before the next picture.
                next = self.messages.try_recv().map_err(|_| RecvTimeoutError::Timeout);
            }
            if screen::has_stumbled() {
                return Ok(Exit::Internal);
            }
        }
    }

    fn hear(&mut self, message: Message) -> std::io::Result<Option<Exit>> {
        match message {
            Message::Input(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                let effect = self.state.update(key);
                return self.follow(effect);
            }
            Message::Input(_) => {}
            // Whoever closed the terminal hung up.
            Message::NoInput => return Ok(Some(Exit::Code(129))),
            Message::Signal(Signal::End(number)) => return Ok(Some(Exit::Code(number))),
            Message::Signal(Signal::Resized) => self.screen.clear()?,
            Message::Signal(Signal::Stop) => self.screen.stop()?,
            Message::Signal(Signal::GoOn) => self.screen.again()?,
            Message::Looked(looked) => self.state.looked(looked.map(|picture| *picture)),
            Message::Acted(acted) => {
                self.pending = self.pending.saturating_sub(1);
                self.state.acted(acted);
            }
        }
        Ok(None)
    }

    fn follow(&mut self, effect: Effect) -> std::io::Result<Option<Exit>> {
        match effect {
            Effect::Nothing => {}
            Effect::Quit => return Ok(Some(Exit::Ok)),
            Effect::Suspend => self.screen.stop()?,
            Effect::Redraw => self.screen.clear()?,
            Effect::Act(act) => {
                self.pending += 1;
                self.watch.act(act);
            }
        }
        Ok(None)
    }

    /// Gives the terminal back. What was asked for last is still waited for a moment, and told.
    fn end(mut self, exit: Exit) -> Over {
        screen::leave();
        let mut said = Vec::new();
        let until = Instant::now() + LAST_ACT;
        while self.pending > 0 && exit == Exit::Ok {
            let left = until.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(Message::Acted(acted)) => {
                    self.pending -= 1;
                    said.push(acted.map_or_else(|error| error, |done| done.to_string()));
                }
                Ok(_) => {}
                Err(_) => {
                    said.push("the last thing that was asked for is not answered yet".to_owned());
                    break;
                }
            }
        }
        Over { exit, said }
    }
}

/// A thread that waits for keys; it ends with the process.
fn listen_to_keys(sender: Sender<Message>) {
    std::thread::spawn(move || {
        while let Ok(came) = screen::next() {
            for event in came {
                if sender.send(Message::Input(event)).is_err() {
                    return;
                }
            }
        }
        // Nobody to tell is nobody who looks.
        let _gone = sender.send(Message::NoInput);
    });
}
