//! A stream that fails when its peer does not read for a while.
//!
//! A response to a peer that stopped reading ends within the timeout. Reads have timeouts
//! of their own and are only reported to the connection's slot.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::budget::ConnectionSlot;

/// How long a write may make no progress.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A stream whose writes fail with `TimedOut` when the peer does not read.
pub(crate) struct WriteTimeout<S> {
    stream: S,
    slot: Arc<ConnectionSlot>,
    /// Boxed once per connection and reset for each blocked write.
    timer: Pin<Box<Sleep>>,
    blocked: bool,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, slot: Arc<ConnectionSlot>) -> Self {
        Self { stream, slot, timer: Box::pin(sleep(TIMEOUT)), blocked: false }
    }

    /// Passes a write's result on; a write that is blocked for too long is an error.
    fn bounded<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.blocked = false;
            return written;
        }
        if !std::mem::replace(&mut self.blocked, true) {
            self.timer.as_mut().reset(Instant::now() + TIMEOUT);
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.slot.bytes_arrived();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bounded(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.bounded(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bounded(context, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.bounded(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::budget::ConnectionBudget;
    use tokio::io::AsyncWriteExt;

    fn slot() -> Arc<ConnectionSlot> {
        Arc::new(ConnectionBudget::new(1).acquire().unwrap())
    }

    /// The runtime's clock is paused, so the timeout passes without waiting.
    #[tokio::test(start_paused = true)]
    async fn a_write_to_a_peer_that_does_not_read_times_out() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let mut stream = WriteTimeout::new(ours, slot());
        let began = Instant::now();
        let written = stream.write_all(&[0; 1_000]).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_gets_everything() {
        use tokio::io::AsyncReadExt;
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut stream = WriteTimeout::new(ours, slot());
        let reader = tokio::spawn(async move {
            let mut buffer = [0; 64];
            for _ in 0..16 {
                sleep(TIMEOUT / 2).await;
                theirs.read_exact(&mut buffer).await.unwrap();
            }
        });
        stream.write_all(&[0; 1_024]).await.unwrap();
        reader.await.unwrap();
    }
}
