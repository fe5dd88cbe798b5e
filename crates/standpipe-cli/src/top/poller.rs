//! A thread that fetches data and performs actions, so that a store or daemon that hangs does not
//! block the keys.
//!
//! Guarantee: one request at a time, and at most a fifth of the time is spent on fetching, however
//! much there is to fetch.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::Message;
use super::data::EventBuffer;
use super::screen;
use super::source::{Action, Source};

/// After a fetch the thread pauses at least this many times as long as the fetch took.
const PAUSE_FACTOR: u32 = 4;

/// The handle of the thread.
pub(super) struct Poller(Sender<Action>);

impl Poller {
    pub(super) fn start(
        source: Box<dyn Source>,
        interval: Duration,
        messages: Sender<Message>,
    ) -> Self {
        let (sender, actions) = channel();
        std::thread::spawn(move || run(source, interval, &actions, &messages));
        Self(sender)
    }

    /// Requests an action; its result arrives as a message.
    pub(super) fn perform(&self, action: Action) {
        // The thread ends early only by a panic, which ends the view too.
        let _gone = self.0.send(action);
    }
}

fn run(
    mut source: Box<dyn Source>,
    interval: Duration,
    actions: &Receiver<Action>,
    messages: &Sender<Message>,
) {
    let mut events = EventBuffer::default();
    loop {
        screen::panic_in_tests("watch");
        let began = Instant::now();
        let fetched = events.fetch(&mut *source).map(Box::new);
        let pause = interval.max(began.elapsed() * PAUSE_FACTOR);
        if messages.send(Message::Fetched(fetched)).is_err() {
            return;
        }
        match actions.recv_timeout(pause) {
            Ok(action) => {
                let done = source.perform(&action).map(|()| action.done());
                if messages.send(Message::ActionDone(done)).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
