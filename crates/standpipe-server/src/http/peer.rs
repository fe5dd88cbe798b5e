//! The client's end of a connection: whether it is still there, and which process it is.
//!
//! hyper notices a closed connection only once it has read everything before the end of the stream.
//! A pipelined request or a stray line break hides it, so the socket itself is polled.

use std::convert::Infallible;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;

/// How often the socket is polled.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The most that is read of a client's environment, in bytes.
const MAX_ENVIRONMENT: u64 = 1 << 20;

/// The client's end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer(Option<Arc<OwnedFd>>);

impl Peer {
    /// The peer of this connection. Without a free file descriptor a disconnect goes unnoticed.
    pub(crate) fn of(stream: &impl AsFd) -> Self {
        Self(stream.as_fd().try_clone_to_owned().ok().map(Arc::new))
    }

    /// Whether the client has closed the connection.
    pub(crate) fn is_disconnected(&self) -> bool {
        self.0.as_deref().is_some_and(is_closed)
    }

    /// Returns a variable of the client's environment. It is known only on a Unix socket, for a
    /// process of the same user on this machine.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let credentials = socket_peercred(self.0.as_deref()?).ok()?;
        let path = format!("/proc/{}/environ", credentials.pid.as_raw_nonzero());
        let mut all = Vec::new();
        File::open(path).ok()?.take(MAX_ENVIRONMENT).read_to_end(&mut all).ok()?;
        let mut entries = all.split(|byte| *byte == 0);
        let value = entries.find_map(|entry| {
            entry.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="))
        })?;
        String::from_utf8(value.to_vec()).ok().filter(|value| !value.is_empty())
    }

    /// Resolves when the client has closed the connection.
    pub(crate) async fn disconnected(&self) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            if self.is_disconnected() {
                return;
            }
        }
    }
}

/// The event of a peer that has closed its sending half.
#[cfg(target_os = "linux")]
const CLOSED: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const CLOSED: PollFlags = PollFlags::HUP;

fn is_closed(stream: &OwnedFd) -> bool {
    let closed = CLOSED | PollFlags::HUP | PollFlags::ERR;
    let mut polled = [PollFd::new(stream, CLOSED)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().intersects(closed)
}

impl<S: Send + Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or(Self(None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_environment_of_a_client_is_known_on_a_unix_socket_only() {
        let (one, _other) = UnixStream::pair().unwrap();
        let (name, value) = std::env::vars().find(|(_, value)| !value.is_empty()).unwrap();
        assert_eq!(Peer::of(&one).variable(&name), Some(value));
        assert_eq!(Peer::of(&one).variable("STANDPIPE_NO_SUCH_VARIABLE"), None);
        assert_eq!(Peer(None).variable(&name), None);
    }
}
