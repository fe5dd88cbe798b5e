//! The subscriber: a connection of its own on which this process receives wake-ups.
//!
//! Wake-ups are hints. Who misses one polls a little later, so nothing here is needed for
//! correctness. A thread that starts with the first wait and ends with the store subscribes to two
//! channels: the wake channel of this process, and the channel that announces new logs. A lost
//! connection is a hint, too: the server may have been replaced by one that lacks entries.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Connection, RedisResult, Value, cmd};
use standpipe_store::engine::WakeFlag;

use crate::address::Address;
use crate::connection::{REPLY_TIMEOUT, ServerConnection};

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
    pub(crate) fn wait(self: &Arc<Self>, address: &Arc<Address>, at_most: Duration) {
        self.start(address);
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

    fn start(self: &Arc<Self>, address: &Arc<Address>) {
        if self.started.swap(true, Ordering::Relaxed) || lock(&self.channels).is_none() {
            return;
        }
        let (subscriber, address) = (Arc::clone(self), Arc::clone(address));
        let thread = std::thread::Builder::new().name("standpipe-redis".to_owned());
        // Without the thread waiters only poll, which is slower but correct.
        let _ = thread.spawn(move || subscriber.run(&address));
    }

    fn run(&self, address: &Arc<Address>) {
        let mut backoff = MIN_BACKOFF;
        let mut server = ServerConnection::new(Arc::clone(address));
        while !self.stopped.load(Ordering::Relaxed) {
            if let Ok(connection) = server.dial() {
                backoff = MIN_BACKOFF;
                // Wake-ups may have been missed before this connection.
                self.notify();
                let _lost = self.receive(connection);
                self.epoch.fetch_add(1, Ordering::Relaxed);
                self.notify();
                server.try_next_node();
            }
            std::thread::sleep(backoff);
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }

    /// Subscribes and receives until the connection is lost.
    fn receive(&self, mut connection: Connection) -> RedisResult<()> {
        let Some(Channels { wake, new_log }) = lock(&self.channels).clone() else { return Ok(()) };
        connection.set_write_timeout(Some(REPLY_TIMEOUT))?;
        connection.set_read_timeout(Some(REPLY_TIMEOUT))?;
        let subscribe = cmd("SUBSCRIBE").arg(wake).arg(&new_log).get_packed_command();
        connection.send_packed_command(&subscribe)?;
        connection.recv_response()?;
        connection.recv_response()?;
        let mut pinged = false;
        while !self.stopped.load(Ordering::Relaxed) {
            connection.set_read_timeout(Some(if pinged { REPLY_TIMEOUT } else { PING_AFTER }))?;
            match connection.recv_response() {
                Ok(message) => {
                    if is_on_channel(&message, &new_log) {
                        // The log that this process knows may have been lost.
                        self.epoch.fetch_add(1, Ordering::Relaxed);
                    }
                    pinged = false;
                    self.notify();
                }
                Err(error) if error.is_timeout() && !pinged => {
                    connection.send_packed_command(&cmd("PING").get_packed_command())?;
                    pinged = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_on_channel(message: &Value, channel: &str) -> bool {
    let Value::Array(parts) = message else { return false };
    matches!(parts.get(1), Some(Value::BulkString(name)) if name == channel.as_bytes())
}

/// Locks a mutex. A panic elsewhere cannot leave these values half-written.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
