//! Reads the usage from the messages of a realtime session as they pass.
//!
//! A session has many responses, and the `response.done` of each states what it used. Messages are
//! not kept beyond that: sound is recognised by its first bytes and skipped. What cannot be read
//! (compressed, too long, not WebSocket at all) counts no tokens and passes unchanged.

use serde::Deserialize;
use standpipe::Unit;

/// The longest message that is read, in bytes. A `response.done` repeats the text, not the sound.
const MAX_MESSAGE: usize = 1024 * 1024;
/// How many bytes of a message say whether it is a piece of an answer, which states no usage.
const BEGINNING: usize = 256;
/// The codes of frames with text and with more of the same message (RFC 6455, section 5.2).
const TEXT: u8 = 1;
const CONTINUATION: u8 = 0;
/// The smallest code of a control frame, which may come between the frames of a message.
const CONTROL: u8 = 8;

/// The usage of all responses so far.
#[derive(Debug, Default)]
pub(crate) struct SessionUsage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    total: u64,
    /// The head of a frame that has not arrived whole.
    head: Vec<u8>,
    /// What follows of the current frame, and whether it belongs to a message that is read.
    rest: u64,
    is_read: bool,
    is_last: bool,
    message: Vec<u8>,
    /// The current message is not read to its end.
    skips: bool,
    /// The bytes are not frames of a server.
    is_unreadable: bool,
}

#[derive(Deserialize)]
struct Event {
    r#type: String,
    response: Option<Response>,
}

#[derive(Deserialize)]
struct Response {
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    total_tokens: Option<u64>,
}

impl SessionUsage {
    /// What the session used, for the ledger.
    pub(crate) fn amounts(&self) -> [(Unit, u64); 3] {
        [
            (Unit::InputTokens, self.input),
            (Unit::OutputTokens, self.output),
            (Unit::Tokens, self.total),
        ]
    }

    /// Reads bytes of the provider. Returns whether they stated more usage.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> bool {
        let before = self.total;
        while !self.is_unreadable {
            if self.rest == 0 {
                let Some(head) = self.next_head(&mut bytes) else { break };
                self.begin_frame(&head);
                continue;
            }
            let count = usize::try_from(self.rest).unwrap_or(usize::MAX).min(bytes.len());
            let (own, later) = bytes.split_at(count);
            self.rest -= count as u64;
            bytes = later;
            self.collect(own);
            if self.rest > 0 {
                break;
            }
            self.end_frame();
        }
        self.total != before
    }

    /// The next head, once it is whole; takes its bytes.
    fn next_head(&mut self, bytes: &mut &[u8]) -> Option<Vec<u8>> {
        loop {
            let wanted = match self.head.get(1).map(|second| second & 0x7f) {
                Some(127) => 10,
                Some(126) => 4,
                _ => 2,
            };
            if self.head.len() == wanted {
                return Some(std::mem::take(&mut self.head));
            }
            let (first, rest) = bytes.split_first()?;
            self.head.push(*first);
            *bytes = rest;
        }
    }

    fn begin_frame(&mut self, head: &[u8]) {
        let (first, second) = (head[0], head[1]);
        let (code, is_compressed) = (first & 0x0f, first & 0x70 != 0);
        // Servers do not mask (RFC 6455, section 5.1).
        if second & 0x80 != 0 {
            self.is_unreadable = true;
            return;
        }
        self.rest = match head.len() {
            2 => u64::from(second),
            _ => head[2..].iter().fold(0, |length, byte| (length << 8) | u64::from(*byte)),
        };
        self.is_read = code < CONTROL;
        if !self.is_read {
            return;
        }
        self.is_last = first & 0x80 != 0;
        if code != CONTINUATION {
            self.message.clear();
            self.skips = code != TEXT || is_compressed;
        }
        if self.rest == 0 {
            self.end_frame();
        }
    }

    fn collect(&mut self, bytes: &[u8]) {
        if !self.is_read || self.skips {
            return;
        }
        let had_beginning = self.message.len() >= BEGINNING;
        self.message.extend_from_slice(bytes);
        let has_beginning = self.message.len() >= BEGINNING;
        let is_piece = || {
            let beginning = &self.message[..BEGINNING];
            beginning.windows(7).any(|window| window == b".delta\"")
        };
        if self.message.len() > MAX_MESSAGE || (!had_beginning && has_beginning && is_piece()) {
            self.skips = true;
            self.message = Vec::new();
        }
    }

    /// Reads the message that ends with this frame, if one does.
    fn end_frame(&mut self) {
        if !self.is_read || !self.is_last {
            return;
        }
        let message = std::mem::take(&mut self.message);
        if self.skips {
            return;
        }
        let Ok(event) = serde_json::from_slice::<Event>(&message) else { return };
        let usage = event.response.and_then(|response| response.usage);
        if let Some(usage) = usage.filter(|_| event.r#type == "response.done") {
            let sum = usage.input_tokens.saturating_add(usage.output_tokens);
            self.input = self.input.saturating_add(usage.input_tokens);
            self.output = self.output.saturating_add(usage.output_tokens);
            self.total = self.total.saturating_add(usage.total_tokens.unwrap_or(sum));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            length @ ..126 => frame.push(u8::try_from(length).unwrap()),
            length @ ..65_536 => {
                frame.push(126);
                frame.extend(u16::try_from(length).unwrap().to_be_bytes());
            }
            length => {
                frame.push(127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(payload);
        frame
    }

    fn done(input: u64, output: u64, padding: usize) -> String {
        let (padding, sum) = ("x".repeat(padding), input.saturating_add(output));
        let usage = format!(
            "{{\"input_tokens\":{input},\"output_tokens\":{output},\"total_tokens\":{sum}}}"
        );
        format!(
            "{{\"event_id\":\"e\",\"response\":{{\"text\":\"{padding}\",\"usage\":{usage}}},\
             \"type\":\"response.done\"}}"
        )
    }

    fn read(bytes: &[u8], size: usize) -> SessionUsage {
        let mut usage = SessionUsage::default();
        for piece in bytes.chunks(size) {
            usage.feed(piece);
        }
        usage
    }

    #[test]
    fn usage_is_summed_however_the_messages_are_cut() {
        let whole = done(20, 5, 400);
        let (first, second) = whole.split_at(100);
        let sound = format!(
            "{{\"type\":\"response.output_audio.delta\",\"x\":\"{}\"}}",
            "A".repeat(70_000)
        );
        let all = [
            frame(0x81, b"{\"type\":\"session.created\"}"),
            frame(0x81, done(7, 3, 0).as_bytes()),
            frame(0x81, sound.as_bytes()),
            frame(0x81, b""),
            // A message in two frames with a ping between them.
            frame(0x01, first.as_bytes()),
            frame(0x89, b"ping"),
            frame(0x80, second.as_bytes()),
            frame(0x81, done(1, 1, 70_000).as_bytes()),
            frame(0x82, done(500, 500, 0).as_bytes()),
        ];
        let all = all.concat();
        for size in [1, 2, 3, 7, 100, 4_096, all.len()] {
            let usage = read(&all, size);
            assert_eq!((usage.input, usage.output, usage.total), (28, 9, 37), "{size}");
            assert!(usage.message.is_empty() && usage.head.is_empty());
        }
    }

    #[test]
    fn what_cannot_be_read_counts_nothing_and_is_not_kept() {
        let usage = read(&frame(0xc1, done(5, 5, 0).as_bytes()), 9);
        assert_eq!(usage.total, 0, "compressed");
        let long = frame(0x81, done(5, 5, 2 * MAX_MESSAGE).as_bytes());
        let usage = read(&long, 4_096);
        assert_eq!((usage.total, usage.message.capacity()), (0, 0));
        for odd in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &[0x81, 0xff, 0, 0], &[0xff; 64]] {
            assert_eq!(read(odd, 1).total, 0);
        }
        let sum = [done(u64::MAX, 1, 0), done(1, 1, 0)].map(|text| frame(0x81, text.as_bytes()));
        assert_eq!(read(&sum.concat(), 64).input, u64::MAX);
    }

    #[test]
    fn only_a_message_with_usage_is_news() {
        let mut usage = SessionUsage::default();
        assert!(!usage.feed(&frame(0x81, b"{\"type\":\"session.created\"}")));
        assert!(usage.feed(&frame(0x81, done(1, 2, 0).as_bytes())));
        assert!(!usage.feed(&frame(0x81, b"{\"type\":\"response.done\",\"response\":{}}")));
    }
}
