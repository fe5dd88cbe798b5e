//! A streamed answer as it passes: what it used so far, and an error that came after the 200.
//!
//! Bytes come in pieces of any size; a splitter makes events of them and [`events`] reads those.
//! How a stream is split shows in its first byte: frames of AWS begin with 0, JSON with a bracket,
//! and everything else is server-sent events. Events have the same shapes at many providers, so one
//! reader knows them all, and only what an error means is left to the dialect.

mod events;
mod frames;
mod sse;
mod values;

use crate::answer::Refused;
use crate::dialect::Dialect;
use crate::usage::Usage;

use events::Seen;

/// Reads a streamed answer as it passes.
#[derive(Clone, Debug)]
pub struct StreamReader {
    dialect: Dialect,
    splitter: Splitter,
    seen: Seen,
}

#[derive(Clone, Debug)]
enum Splitter {
    /// Nothing but blanks yet.
    Blank,
    Sse(sse::Lines),
    Values(values::Values),
    Frames(frames::Frames),
}

impl StreamReader {
    /// One that has seen nothing yet.
    #[must_use]
    pub const fn new(dialect: Dialect) -> Self {
        Self { dialect, splitter: Splitter::Blank, seen: Seen::new() }
    }

    /// Takes the next bytes. In how many pieces they come makes no difference.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if matches!(self.splitter, Splitter::Blank) {
            bytes = bytes.trim_ascii_start();
            self.splitter = match bytes.first() {
                None => Splitter::Blank,
                Some(0) => Splitter::Frames(frames::Frames::default()),
                Some(b'{' | b'[') => Splitter::Values(values::Values::default()),
                Some(_) => Splitter::Sse(sse::Lines::default()),
            };
        }
        let (dialect, seen) = (self.dialect, &mut self.seen);
        match &mut self.splitter {
            Splitter::Blank => {}
            Splitter::Sse(lines) => lines.feed(bytes, |data| seen.take(dialect, "", data)),
            Splitter::Values(values) => {
                values.feed(bytes, |value| seen.take(dialect, "", value));
                seen.finished |= values.is_closed();
            }
            Splitter::Frames(frames) => {
                frames.feed(bytes, |name, payload| seen.take(dialect, name, payload));
            }
        }
    }

    /// What the call used, as far as it has been told.
    #[must_use]
    pub const fn usage(&self) -> &Usage {
        &self.seen.usage
    }

    /// Whether the input is known: it can be settled while the output still flows.
    #[must_use]
    pub const fn is_input_known(&self) -> bool {
        self.seen.usage.input_tokens.is_some()
    }

    /// The refusal that came after the 200.
    #[must_use]
    pub const fn refused(&self) -> Option<&Refused> {
        self.seen.refused.as_ref()
    }

    /// Whether the stream came to its own end.
    #[must_use]
    pub const fn finished(&self) -> bool {
        self.seen.finished
    }

    /// The bytes of content so far, to estimate the output of a stream that dies.
    #[must_use]
    pub const fn text_bytes(&self) -> u64 {
        self.seen.text_bytes
    }
}
