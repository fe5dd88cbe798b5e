//! A provider's answer whose body is read while it passes.
//!
//! The bytes are not kept, so an answer of any length costs the same memory. What was read so far
//! is known at any time: a stream that breaks off is settled by it.

use std::fmt;

use standpipe_core::{Amounts, Unit};
use standpipe_dialect::{Dialect, StreamReader, Usage};

use super::reply::{Reply, used};

/// An answer whose body passes in chunks. [`Pool::read_reply`](crate::Pool::read_reply) begins one.
///
/// ```
/// # use standpipe::config::{Settings, StoreUrl};
/// # use standpipe::{Limit, Reply, Request, Rule, Standpipe, Unit};
/// # fn main() -> Result<(), standpipe::Error> {
/// # let tap = Standpipe::builder().settings(Settings::default());
/// # let tap = tap.store(StoreUrl::Memory).open()?;
/// # let pool = tap.pool("anthropic/doc-stream")?;
/// # pool.limit(vec![Limit::new(Rule::Parallel { amount: 5 })]).blocking()?;
/// let lease = pool.reserve(Request::by("blog")).blocking()?;
/// let mut reply = pool.read_reply(Reply::new(200).header("content-type", "text/event-stream"));
/// reply.feed(b"data: {\"type\":\"message_start\",");
/// reply.feed(b"\"message\":{\"usage\":{\"input_tokens\":25}}}\n\n");
/// assert_eq!(reply.used().of(&Unit::InputTokens), Some(25)); // known before the stream ends
/// lease.answered(reply.end()).blocking()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StreamedReply {
    head: Reply,
    dialect: Dialect,
    reader: StreamReader,
}

/// Shows neither headers nor what was read of the body.
impl fmt::Debug for StreamedReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedReply").field("head", &self.head).finish_non_exhaustive()
    }
}

impl StreamedReply {
    pub(crate) const fn new(head: Reply, dialect: Dialect) -> Self {
        Self { head, dialect, reader: StreamReader::new(dialect) }
    }

    /// Reads the next bytes of the body.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.reader.feed(bytes);
    }

    /// Returns what the call used, as far as the answer has stated it.
    #[must_use]
    pub fn used(&self) -> Amounts {
        used(self.dialect, self.reader.usage())
    }

    /// Returns the input of the call once the answer has stated it. It is final then, long before
    /// the output is.
    #[must_use]
    pub fn known_input(&self) -> Option<u64> {
        self.reader.is_input_known().then(|| self.used().of(&Unit::InputTokens)).flatten()
    }

    /// Returns whether the answer is complete.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.reader.finished()
    }

    /// Ends an answer whose body arrived whole.
    pub fn end(self) -> Reply {
        let usage = *self.reader.usage();
        self.head.streamed(self.reader.refused().cloned(), usage)
    }

    /// Ends an answer that broke off. The output that arrived counts although the provider did not
    /// state it: a caller that disconnects must not get it for nothing.
    pub fn cut(self) -> Reply {
        let stated = *self.reader.usage();
        // About four bytes of text are a token.
        let seen = self.reader.text_bytes().div_ceil(4);
        let output = stated.output_tokens.unwrap_or(0).max(seen);
        let usage = Usage { output_tokens: Some(output), ..stated };
        self.head.streamed(self.reader.refused().cloned(), usage)
    }
}
