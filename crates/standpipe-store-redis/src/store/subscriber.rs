//! The subscriber: a connection of its own on which this process receives wake-ups.
//!
//! Wake-ups are hints. Who misses one polls a little later, so nothing here is needed for
//! correctness. A thread that starts with the first wait and ends with the store subscribes to two
//! channels: the wake channel of this process, and the channel that announces new logs. A lost
//! connection is a hint, too: the server may have been replaced by one that lacks entries.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use standpipe_store::engine::WakeFlag;

use crate::connection::deadline::Deadline;
use crate::connection::dial::Dialled;
use crate::connection::error::Failure;
use crate::connection::servers::Servers;
use crate::connection::{CONNECT_TIMEOUT, REPLY_TIMEOUT};
use crate::protocol::resp::{Command, Reply, cmd};

/// How long the server may be silent before it gets a `PING`.
const PING_AFTER: Duration = Duration::from_secs(10);

const MIN_BACKOFF: Duration = Duration::from_millis(20);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// Receives the wake-ups of this process.
#[derive(Debug, Default)]
pub(crate) struct WakeSubscriber {
    woken: WakeFlag,
    started: AtomicBool,
    stopped: AtomicBool,
    epoch: AtomicU64,
    channels: Mutex<Option<Channels>>,
}

/// The channels of this process.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    /// Wakes the sessions of this process.
    pub(crate) wake: String,
    /// Announces new logs to everybody.
    pub(crate) new_log: String,
}

impl WakeSubscriber {
    /// Sets the channels. They take effect with the next connection.
    pub(crate) fn set_channels(&self, channels: Channels) {
        *lock(&self.channels) = Some(channels);
    }

    /// Waits for a wake-up or until `at_most` has passed.
    pub(crate) fn wait(self: &Arc<Self>, servers: &Arc<Servers>, at_most: Duration) {
        self.start(servers);
        self.woken.wait(at_most);
    }

    /// Ends the present wait, or else the next one.
    pub(crate) fn notify(&self) {
        self.woken.set();
    }

    /// Returns a number that grows with every lost connection and every announced log.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Makes the thread end when it next wakes.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn start(self: &Arc<Self>, servers: &Arc<Servers>) {
        if self.started.swap(true, Ordering::Relaxed) || lock(&self.channels).is_none() {
            return;
        }
        let (subscriber, servers) = (Arc::clone(self), Arc::clone(servers));
        let thread = std::thread::Builder::new().name("standpipe-redis".to_owned());
        // Without the thread waiters only poll, which is slower but correct.
        let _ = thread.spawn(move || subscriber.run(&servers));
    }

    fn run(&self, servers: &Arc<Servers>) {
        let mut backoff = MIN_BACKOFF;
        while !self.stopped.load(Ordering::Relaxed) {
            if let Ok(mut dialled) = servers.dial(None, Deadline::within(CONNECT_TIMEOUT)) {
                backoff = MIN_BACKOFF;
                // Wake-ups may have been missed before this connection.
                self.notify();
                let lost = self.receive(&mut dialled);
                self.epoch.fetch_add(1, Ordering::Relaxed);
                self.notify();
                if let (Err(failure), Some(node)) = (lost, &dialled.node)
                    && failure.is_timeout()
                {
                    servers.record_answer(node, false);
                }
            }
            std::thread::sleep(backoff);
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }

    /// Subscribes and receives until the connection is lost.
    fn receive(&self, dialled: &mut Dialled) -> Result<(), Failure> {
        let Some(Channels { wake, new_log }) = lock(&self.channels).clone() else { return Ok(()) };
        let mut subscribe = cmd("SUBSCRIBE");
        send(dialled, subscribe.arg(wake).arg(&new_log))?;
        let deadline = Deadline::within(REPLY_TIMEOUT);
        dialled.stream.receive(deadline)?;
        dialled.stream.receive(deadline)?;
        let mut pinged = false;
        while !self.stopped.load(Ordering::Relaxed) {
            let wait = if pinged { REPLY_TIMEOUT } else { PING_AFTER };
            match dialled.stream.receive(Deadline::within(wait)) {
                Ok(message) => {
                    if is_on_channel(&message, &new_log) {
                        // The log that this process knows may have been lost.
                        self.epoch.fetch_add(1, Ordering::Relaxed);
                    }
                    pinged = false;
                    self.notify();
                }
                Err(failure) if failure.is_timeout() && !pinged => {
                    send(dialled, &cmd("PING"))?;
                    pinged = true;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }
}

fn send(dialled: &mut Dialled, command: &Command) -> Result<(), Failure> {
    let mut packed = Vec::new();
    command.encode_to(&mut packed);
    Ok(dialled.stream.send(&packed, Deadline::within(REPLY_TIMEOUT))?)
}

fn is_on_channel(message: &Reply, channel: &str) -> bool {
    let Reply::Array(parts) = message else { return false };
    matches!(parts.get(1), Some(Reply::Bulk(name)) if name == channel.as_bytes())
}

/// Locks a mutex. A panic elsewhere cannot leave these values half-written.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
