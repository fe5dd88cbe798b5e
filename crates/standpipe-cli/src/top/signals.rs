//! Signals as messages: what ends the view, stops it, or lets it go on.

use std::sync::mpsc::Sender;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};

use super::Message;
use crate::process::signals::Signals;

/// What a signal means for a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// End with this code.
    End(u8),
    /// Give the terminal back and wait to be continued.
    Stop,
    /// We were continued.
    GoOn,
    /// The terminal has another size.
    Resized,
}

/// From now on signals are messages.
///
/// # Errors
/// When the operating system refuses a handler.
pub(super) fn listen(sender: Sender<Message>) -> std::io::Result<()> {
    let signals = Signals::listen_also(&[SIGTSTP])?;
    std::thread::spawn(move || {
        loop {
            signals.wait(None);
            for signal in signals.take().into_iter().filter_map(meaning) {
                if sender.send(Message::Signal(signal)).is_err() {
                    return;
                }
            }
        }
    });
    Ok(())
}

fn meaning(signal: i32) -> Option<Signal> {
    match signal {
        SIGHUP | SIGINT | SIGQUIT | SIGTERM => u8::try_from(128 + signal).ok().map(Signal::End),
        SIGTSTP => Some(Signal::Stop),
        SIGCONT => Some(Signal::GoOn),
        SIGWINCH => Some(Signal::Resized),
        _ => None,
    }
}
