//! Detects that a client disconnected while its call waits.
//!
//! hyper notices a closed connection only once it has read everything before the end of the stream.
//! A pipelined request or a stray line break hides it, so the socket itself is polled.

use std::convert::Infallible;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often the socket is polled.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

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
