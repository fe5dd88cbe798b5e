//! Looking and acting aside from the screen, so that a store or daemon that hangs stops no key.
//!
//! Invariant: one look at a time, and looking takes at most a part of the time, however much there
//! is to see.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::Message;
use super::picture::Memory;
use super::screen;
use super::source::{Act, Source};

/// A look that took so long is followed by a rest so many times as long.
const REST: u32 = 4;

/// The one that looks.
pub(super) struct Watch(Sender<Act>);

impl Watch {
    pub(super) fn start(
        source: Box<dyn Source>,
        interval: Duration,
        tells: Sender<Message>,
    ) -> Self {
        let (sender, acts) = channel();
        std::thread::spawn(move || go(source, interval, &acts, &tells));
        Self(sender)
    }

    /// Asks for something to be done; what came of it is told in a message.
    pub(super) fn act(&self, act: Act) {
        // One that is gone stumbled, and the view ends for that.
        let _gone = self.0.send(act);
    }
}

fn go(
    mut source: Box<dyn Source>,
    interval: Duration,
    acts: &Receiver<Act>,
    tells: &Sender<Message>,
) {
    let mut memory = Memory::default();
    loop {
        screen::stumble("watch");
        let began = Instant::now();
        let looked = memory.look(&mut *source).map(Box::new);
        let rest = interval.max(began.elapsed() * REST);
        if tells.send(Message::Looked(looked)).is_err() {
            return;
        }
        match acts.recv_timeout(rest) {
            Ok(act) => {
                let done = source.act(&act).map(|()| act.done());
                if tells.send(Message::Acted(done)).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
