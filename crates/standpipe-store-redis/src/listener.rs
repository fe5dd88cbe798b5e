//! Wake-ups: a connection of its own on which this process hears that it should look.
//!
//! They are hints: whoever misses one looks by itself a little later. The thread is started when
//! somebody first waits, and ends with the store. That its connection broke is a hint, too: the
//! server may have been replaced by one that lacks something.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use redis::{Connection, RedisResult, Value, cmd};

use crate::address::Address;
use crate::link::{ANSWER, Link};

/// How long the server may say nothing before it is asked whether it is there.
const QUIET: Duration = Duration::from_secs(10);

/// How long to wait before the next attempt, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// Where a process hears that it should look.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    rung: Mutex<bool>,
    changed: Condvar,
    started: AtomicBool,
    stopped: AtomicBool,
    losses: AtomicU64,
    /// Where it is woken, and where it is said that a log was begun.
    channels: Mutex<Option<[String; 2]>>,
}

impl Listener {
    /// The channels to hear: where it is woken, and where it is said that a log was begun. They
    /// are heard from the next connection on.
    pub(crate) fn hear(&self, channels: [String; 2]) {
        *lock(&self.channels) = Some(channels);
    }

    /// Waits for a wake-up, at most so long.
    pub(crate) fn wait(self: &Arc<Self>, address: &Arc<Address>, at_most: Duration) {
        self.start(address);
        let rung = lock(&self.rung);
        let waited = self.changed.wait_timeout_while(rung, at_most, |rung| !*rung);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }

    pub(crate) fn ring(&self) {
        *lock(&self.rung) = true;
        self.changed.notify_all();
    }

    /// How often its connection was lost.
    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// Ends the thread, as soon as it notices.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn start(self: &Arc<Self>, address: &Arc<Address>) {
        if self.started.swap(true, Ordering::Relaxed) || lock(&self.channels).is_none() {
            return;
        }
        let (listener, address) = (Arc::clone(self), Arc::clone(address));
        let thread = std::thread::Builder::new().name("standpipe-redis".to_owned());
        // Without the thread waiters only look a little less often.
        let _ = thread.spawn(move || listener.run(&address));
    }

    fn run(&self, address: &Arc<Address>) {
        let mut pause = FIRST_PAUSE;
        while !self.stopped.load(Ordering::Relaxed) {
            if let Ok(connection) = Link::new(Arc::clone(address)).connection() {
                pause = FIRST_PAUSE;
                // What was said meanwhile was not heard.
                self.ring();
                let _lost = self.listen(connection);
                self.losses.fetch_add(1, Ordering::Relaxed);
                self.ring();
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Hears until the connection is lost.
    fn listen(&self, mut connection: Connection) -> RedisResult<()> {
        let Some([own, begun]) = lock(&self.channels).clone() else { return Ok(()) };
        connection.set_write_timeout(Some(ANSWER))?;
        connection.set_read_timeout(Some(ANSWER))?;
        let subscribe = cmd("SUBSCRIBE").arg(own).arg(&begun).get_packed_command();
        connection.send_packed_command(&subscribe)?;
        connection.recv_response()?;
        connection.recv_response()?;
        let mut asked = false;
        while !self.stopped.load(Ordering::Relaxed) {
            connection.set_read_timeout(Some(if asked { ANSWER } else { QUIET }))?;
            match connection.recv_response() {
                Ok(said) => {
                    if is_on(&said, &begun) {
                        // What this process knows may have been lost.
                        self.losses.fetch_add(1, Ordering::Relaxed);
                    }
                    asked = false;
                    self.ring();
                }
                Err(error) if error.is_timeout() && !asked => {
                    connection.send_packed_command(&cmd("PING").get_packed_command())?;
                    asked = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether this is a message on a channel.
fn is_on(said: &Value, channel: &str) -> bool {
    let Value::Array(parts) = said else { return false };
    matches!(parts.get(1), Some(Value::BulkString(name)) if name == channel.as_bytes())
}

/// What these mutexes guard is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
