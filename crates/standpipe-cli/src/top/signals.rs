//! Signals as messages of the view: end, stop, continue, resize.

use std::sync::mpsc::Sender;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};

use super::Message;
use crate::process::signals::Signals;

/// What a signal means for a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// End with this code.
    End(u8),
    /// Restore the terminal and stop until continued.
    Stop,
    /// The process was continued.
    Continued,
    /// The terminal has another size.
    Resized,
}

/// Starts a thread that turns signals into messages.
///
/// # Errors
/// When the operating system refuses a handler.
pub(super) fn listen(sender: Sender<Message>) -> std::io::Result<()> {
    let signals = Signals::listen_with(&[SIGTSTP])?;
    std::thread::spawn(move || {
        loop {
            signals.wait(None);
            for signal in signals.take().into_iter().filter_map(classify) {
                if sender.send(Message::Signal(signal)).is_err() {
                    return;
                }
            }
        }
    });
    Ok(())
}

fn classify(signal: i32) -> Option<Signal> {
    match signal {
        SIGHUP | SIGINT | SIGQUIT | SIGTERM => u8::try_from(128 + signal).ok().map(Signal::End),
        SIGTSTP => Some(Signal::Stop),
        SIGCONT => Some(Signal::Continued),
        SIGWINCH => Some(Signal::Resized),
        _ => None,
    }
}
