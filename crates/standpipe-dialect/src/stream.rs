//! [`StreamReader`]: reads a streamed response as it passes, for usage and for errors after the
//! 200.
//!
//! Bytes arrive in chunks of any size; a decoder splits them into events and [`events`] reads
//! those. The first byte tells the format: AWS frames start with 0, JSON with a bracket, and
//! everything else is server-sent events. Providers share the shapes of events, so one reader
//! knows them all; only the meaning of an error depends on the dialect.

mod aws_frames;
mod events;
mod json_values;
mod sse;

use crate::answer::Refused;
use crate::dialect::Dialect;
use crate::usage::Usage;

use events::StreamState;

/// Reads a streamed response as it passes.
#[derive(Clone, Debug)]
pub struct StreamReader {
    dialect: Dialect,
    decoder: Decoder,
    state: StreamState,
}

#[derive(Clone, Debug)]
enum Decoder {
    /// Only whitespace so far: the format is not known yet.
    Undetected,
    Sse(sse::SseDecoder),
    Json(json_values::JsonDecoder),
    AwsFrames(aws_frames::FrameDecoder),
}

impl StreamReader {
    /// A reader at the start of a stream.
    #[must_use]
    pub const fn new(dialect: Dialect) -> Self {
        Self { dialect, decoder: Decoder::Undetected, state: StreamState::new() }
    }

    /// Reads the next bytes. The result does not depend on how the stream is cut into chunks.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if matches!(self.decoder, Decoder::Undetected) {
            bytes = bytes.trim_ascii_start();
            self.decoder = match bytes.first() {
                None => Decoder::Undetected,
                Some(0) => Decoder::AwsFrames(aws_frames::FrameDecoder::default()),
                Some(b'{' | b'[') => Decoder::Json(json_values::JsonDecoder::default()),
                Some(_) => Decoder::Sse(sse::SseDecoder::default()),
            };
        }
        let (dialect, state) = (self.dialect, &mut self.state);
        match &mut self.decoder {
            Decoder::Undetected => {}
            Decoder::Sse(decoder) => decoder.feed(bytes, |data| state.on_event(dialect, "", data)),
            Decoder::Json(decoder) => {
                decoder.feed(bytes, |value| state.on_event(dialect, "", value));
                state.finished |= decoder.is_closed();
            }
            Decoder::AwsFrames(decoder) => {
                decoder.feed(bytes, |name, payload| state.on_event(dialect, name, payload));
            }
        }
    }

    /// What the call used, as far as the stream has stated it.
    #[must_use]
    pub const fn usage(&self) -> &Usage {
        &self.state.usage
    }

    /// Whether the input tokens are known, so that they can be settled before the stream ends.
    #[must_use]
    pub const fn is_input_known(&self) -> bool {
        self.state.usage.input_tokens.is_some()
    }

    /// The refusal that came after the 200, if any.
    #[must_use]
    pub const fn refused(&self) -> Option<&Refused> {
        self.state.refused.as_ref()
    }

    /// Whether the stream is complete.
    #[must_use]
    pub const fn finished(&self) -> bool {
        self.state.finished
    }

    /// Bytes of content so far, to estimate the output of a stream that breaks off.
    #[must_use]
    pub const fn text_bytes(&self) -> u64 {
        self.state.text_bytes
    }
}
