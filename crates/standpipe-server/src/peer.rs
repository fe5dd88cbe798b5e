//! The other end of a connection: whether it is still there, while its call waits.
//!
//! The server that reads requests notices an end that closes, but not behind bytes it has not come
//! to yet: of a second request that was sent at once, or only a line break too many.

use std::convert::Infallible;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(1);

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer(Option<Arc<OwnedFd>>);

impl Peer {
    /// Of this connection. Without a file descriptor to spare nothing is seen.
    pub(crate) fn of(stream: &impl AsFd) -> Self {
        Self(stream.as_fd().try_clone_to_owned().ok().map(Arc::new))
    }

    /// Whether nobody is there any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.as_deref().is_some_and(is_closed)
    }

    /// Ends when nobody is there any more.
    pub(crate) async fn goes_away(&self) {
        loop {
            tokio::time::sleep(EVERY).await;
            if self.is_gone() {
                return;
            }
        }
    }
}

/// The other end sends no more.
#[cfg(target_os = "linux")]
const CLOSED: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const CLOSED: PollFlags = PollFlags::HUP;

fn is_closed(stream: &OwnedFd) -> bool {
    let gone = CLOSED | PollFlags::HUP | PollFlags::ERR;
    let mut asked = [PollFd::new(stream, CLOSED)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&at_once)).is_ok() && asked[0].revents().intersects(gone)
}

impl<S: Send + Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or(Self(None)))
    }
}
