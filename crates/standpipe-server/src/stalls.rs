//! A connection whose other end does not read is given up after a while.
//!
//! Reading has its own bounds (headers, bodies, keep-alive); here it is only passed on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How long the other end may not read.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection that does not wait for its reader for ever.
pub(crate) struct Stalls<S> {
    stream: S,
    /// Since it last waited to write.
    alarm: Pin<Box<Sleep>>,
    waits: bool,
}

impl<S> Stalls<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, alarm: Box::pin(sleep(PATIENCE)), waits: false }
    }

    /// What came of writing; a wait that is too long is an error.
    fn watched<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        if !std::mem::replace(&mut self.waits, true) {
            self.alarm.as_mut().reset(Instant::now() + PATIENCE);
        }
        ready!(self.alarm.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other end does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalls<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalls<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watched(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watched(context, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watched(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    /// In the runtime's own time, which passes at once when everybody waits.
    #[tokio::test(start_paused = true)]
    async fn an_end_that_does_not_read_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let mut stream = Stalls::new(ours);
        let began = Instant::now();
        let written = stream.write_all(&[0; 1_000]).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= PATIENCE, "in the time of the test's own clock");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_waited_for() {
        use tokio::io::AsyncReadExt;
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut stream = Stalls::new(ours);
        let reader = tokio::spawn(async move {
            let mut buffer = [0; 64];
            for _ in 0..16 {
                sleep(PATIENCE / 2).await;
                theirs.read_exact(&mut buffer).await.unwrap();
            }
        });
        stream.write_all(&[0; 1_024]).await.unwrap();
        reader.await.unwrap();
    }
}
