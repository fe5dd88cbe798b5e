//! WebSockets, as much of RFC 6455 as clients of a realtime API use: messages in one frame each.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What a server appends to the client's key before it hashes it (RFC 6455, section 1.3).
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest message.
const MAX_MESSAGE: usize = 64 * 1_024;
/// Codes of frames (RFC 6455, section 5.2).
const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// The bit of a frame that is the last one of its message.
const LAST: u8 = 0x80;

/// The value of `sec-websocket-accept` for a client's key.
pub(super) fn accept(key: &str) -> String {
    let hash = sha1_smol::Sha1::from(format!("{key}{MAGIC}")).digest();
    STANDARD.encode(hash.bytes())
}

/// A frame of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    first: u8,
    payload: Vec<u8>,
    /// How many bytes it had.
    pub(super) length: usize,
}

impl Frame {
    /// Reads a frame that has arrived; `None` if it is incomplete.
    ///
    /// # Errors
    /// When it is too long, or not masked as frames of clients must be.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, ()> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        if second & 0x80 == 0 {
            return Err(());
        }
        let (length, rest) = match (second & 0x7f, rest) {
            (126, [high, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])), rest),
            (126, _) => return Ok(None),
            (127, _) => return Err(()),
            (short, rest) => (usize::from(short), rest),
        };
        if length > MAX_MESSAGE {
            return Err(());
        }
        let head = bytes.len() - rest.len();
        let (Some(mask), Some(masked)) = (rest.get(..4), rest.get(4..4 + length)) else {
            return Ok(None);
        };
        let payload = masked.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        Ok(Some(Self { first: *first, payload: payload.collect(), length: head + 4 + length }))
    }

    pub(super) const fn closes(&self) -> bool {
        self.code() == CLOSE
    }

    /// The text of a message.
    pub(super) fn text(&self) -> Option<&str> {
        if self.code() != TEXT {
            return None;
        }
        std::str::from_utf8(&self.payload).ok()
    }

    /// The frame as an answer: a ping becomes a pong, anything else stays as it is.
    pub(super) fn echo(&self) -> Vec<u8> {
        let first = if self.code() == PING { LAST | PONG } else { self.first };
        encode(first, &self.payload)
    }

    const fn code(&self) -> u8 {
        self.first & 0x0f
    }
}

/// A text as a message of a server, which is not masked.
pub(super) fn message(text: &str) -> Vec<u8> {
    encode(LAST | TEXT, text.as_bytes())
}

fn encode(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(short), _) if short < 126 => frame.push(short),
        (_, Ok(length)) => {
            frame.push(126);
            frame.extend(length.to_be_bytes());
        }
        (_, Err(_)) => {
            frame.push(127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_document_is_accepted() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn a_message_comes_back_unmasked() {
        let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        let found = Frame::read(&hello).unwrap().unwrap();
        assert_eq!((found.text(), found.length, found.closes()), (Some("Hello"), 11, false));
        assert_eq!(found.echo(), message("Hello"));
        for cut in 0..hello.len() {
            assert_eq!(Frame::read(&hello[..cut]), Ok(None), "{cut}");
        }
        assert_eq!(Frame::read(&[0x81, 0x05]), Err(()), "not masked");
        assert!(Frame::read(&[0x88, 0x80, 0, 0, 0, 0]).unwrap().unwrap().closes());
        assert_eq!(Frame::read(&[0x89, 0x80, 0, 0, 0, 0]).unwrap().unwrap().echo(), [0x8a, 0]);
    }

    #[test]
    fn the_length_of_a_message_takes_as_many_bytes_as_it_needs() {
        let heads = [(125, 2), (126, 4), (65_535, 4), (65_536, 10)];
        for (length, head) in heads {
            assert_eq!(message(&"x".repeat(length)).len(), head + length);
        }
    }
}
