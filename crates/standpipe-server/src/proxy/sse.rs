//! Hides the usage event of a stream from a client that did not ask for it.
//!
//! Only whole events are passed on, so that one that arrives in pieces can be held back.

use axum::body::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A larger event is passed on unread.
const MAX_EVENT: usize = 64 * 1024;

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
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Bytes {
        self.partial.extend_from_slice(bytes);
        let mut passed = Vec::with_capacity(self.partial.len());
        let mut rest = std::mem::take(&mut self.partial);
        while let Some(end) = event_end(&rest) {
            let later = rest.split_off(end);
            if !is_usage_only(&rest) {
                passed.append(&mut rest);
            }
            rest = later;
        }
        if rest.len() > MAX_EVENT {
            passed.append(&mut rest);
        }
        self.partial = rest;
        passed.into()
    }

    /// Returns what is left at the end of the stream.
    pub(crate) fn finish(self) -> Bytes {
        if is_usage_only(&self.partial) { Bytes::new() } else { self.partial.into() }
    }
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
                    seen.extend_from_slice(&filter.pass(piece));
                }
                seen.extend_from_slice(&filter.finish());
                assert_eq!(String::from_utf8(seen).unwrap().replace('\r', ""), PASSED, "{size}");
            }
        }
    }

    #[test]
    fn nothing_else_is_held_back_for_ever() {
        let mut filter = UsageFilter::default();
        assert!(filter.pass(b"data: {\"choices\":").is_empty());
        let long = vec![b'x'; MAX_EVENT + 1];
        assert_eq!(filter.pass(&long).len(), long.len() + 17);
        let mut filter = UsageFilter::default();
        assert_eq!(filter.pass(b"event: error\ndata: {\"usage\":1}\n\n").len(), 32);
        filter.pass(b"data: tail");
        assert_eq!(&filter.finish()[..], b"data: tail");
    }
}
