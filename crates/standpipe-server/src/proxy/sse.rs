//! Hides the usage event of a stream from a client that did not ask for it.
//!
//! Only whole events are passed on, so that one that arrives in pieces can be held back.

use axum::body::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A larger event is passed on unread.
const MAX_EVENT: usize = 64 * 1024;

/// The member of an event that states the usage.
const USAGE: &[u8] = b"\"usage\"";

/// Removes the event that states only the usage.
#[derive(Default)]
pub(crate) struct UsageFilter {
    /// The beginning of an event whose end has not arrived.
    partial: Vec<u8>,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<IgnoredAny>,
    #[serde(default)]
    usage: Option<IgnoredAny>,
}

impl UsageFilter {
    /// Returns what of the next bytes the client gets.
    pub(crate) fn pass(&mut self, bytes: Bytes) -> Bytes {
        // Nearly every piece is whole events without usage, and is not copied.
        if self.partial.is_empty() && ends_event(&bytes) && !states_usage(&bytes) {
            return bytes;
        }
        // An end that was not there before can only be in the new bytes, or just before them.
        let mut searched = self.partial.len().saturating_sub(3);
        self.partial.extend_from_slice(&bytes);
        let mut passed = Vec::with_capacity(self.partial.len());
        let mut begin = 0;
        while let Some(length) = event_end(&self.partial[searched.max(begin)..]) {
            let end = searched.max(begin) + length;
            if !is_usage_only(&self.partial[begin..end]) {
                passed.extend_from_slice(&self.partial[begin..end]);
            }
            (begin, searched) = (end, end);
        }
        if self.partial.len() - begin > MAX_EVENT {
            passed.extend_from_slice(&self.partial[begin..]);
            begin = self.partial.len();
        }
        self.partial.drain(..begin);
        passed.into()
    }

    /// Returns what is left at the end of the stream.
    pub(crate) fn finish(self) -> Bytes {
        if is_usage_only(&self.partial) { Bytes::new() } else { self.partial.into() }
    }
}

/// Whether the bytes end with an event.
fn ends_event(bytes: &[u8]) -> bool {
    bytes.ends_with(b"\n\n") || bytes.ends_with(b"\r\n\r\n")
}

/// Whether the usage may be stated in the bytes.
fn states_usage(bytes: &[u8]) -> bool {
    bytes.windows(USAGE.len()).any(|window| window == USAGE)
}

/// Where the first whole event ends, its empty line included.
fn event_end(bytes: &[u8]) -> Option<usize> {
    let ends = [&b"\n\n"[..], b"\r\n\r\n"];
    let found = ends.iter().filter_map(|end| {
        let at = bytes.windows(end.len()).position(|window| window == *end)?;
        Some(at + end.len())
    });
    found.min()
}

fn is_usage_only(event: &[u8]) -> bool {
    let Some(data) = event.strip_prefix(b"data:") else { return false };
    serde_json::from_slice::<Chunk>(data.trim_ascii())
        .is_ok_and(|chunk| chunk.choices.is_empty() && chunk.usage.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9}}\n\ndata: [DONE]\n\n";
    const PASSED: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n\
        data: [DONE]\n\n";

    #[test]
    fn the_usage_event_is_hidden_however_the_stream_is_cut() {
        for stream in [STREAM.to_owned(), STREAM.replace('\n', "\r\n")] {
            for size in 1..stream.len() {
                let mut filter = UsageFilter::default();
                let mut seen = Vec::new();
                for piece in stream.as_bytes().chunks(size) {
                    seen.extend_from_slice(&filter.pass(Bytes::copy_from_slice(piece)));
                }
                seen.extend_from_slice(&filter.finish());
                assert_eq!(String::from_utf8(seen).unwrap().replace('\r', ""), PASSED, "{size}");
            }
        }
    }

    #[test]
    fn nothing_else_is_held_back_for_ever() {
        let mut filter = UsageFilter::default();
        assert!(filter.pass(Bytes::from_static(b"data: {\"choices\":")).is_empty());
        let long = vec![b'x'; MAX_EVENT + 1];
        assert_eq!(filter.pass(long.clone().into()).len(), long.len() + 17);
        let mut filter = UsageFilter::default();
        let error = Bytes::from_static(b"event: error\ndata: {\"usage\":1}\n\n");
        assert_eq!(filter.pass(error.clone()), error);
        filter.pass(Bytes::from_static(b"data: tail"));
        assert_eq!(&filter.finish()[..], b"data: tail");
    }
}
