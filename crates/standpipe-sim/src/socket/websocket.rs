//! A WebSocket that returns every message, as much of RFC 6455 as a test needs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What a server appends to the client's key before it hashes it (RFC 6455, section 1.3).
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest message.
const MAX_MESSAGE: usize = 64 * 1_024;
/// The code of a frame that closes the connection.
const CLOSE: u8 = 8;

/// The value of `sec-websocket-accept` for a client's key.
pub(super) fn accept(key: &str) -> String {
    let hash = sha1_smol::Sha1::from(format!("{key}{MAGIC}")).digest();
    STANDARD.encode(hash.bytes())
}

/// A message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The reply to it: the same message, unmasked.
    pub(super) reply: Vec<u8>,
    /// How many bytes it had.
    pub(super) length: usize,
    pub(super) closes: bool,
}

/// Reads a frame that has arrived; `None` if it is incomplete.
///
/// # Errors
/// When it is too long, or not masked as frames of clients must be.
pub(super) fn frame(bytes: &[u8]) -> Result<Option<Frame>, ()> {
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
    let mut reply = vec![*first];
    match u8::try_from(length) {
        Ok(short) if short < 126 => reply.push(short),
        _ => {
            reply.push(126);
            reply.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    reply.extend(masked.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    Ok(Some(Frame { reply, length: head + 4 + length, closes: first & 0x0f == CLOSE }))
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
        let found = frame(&hello).unwrap().unwrap();
        assert_eq!((&found.reply[2..], found.length, found.closes), (&b"Hello"[..], 11, false));
        for cut in 0..hello.len() {
            assert_eq!(frame(&hello[..cut]), Ok(None), "{cut}");
        }
        assert_eq!(frame(&[0x81, 0x05]), Err(()), "not masked");
        assert!(frame(&[0x88, 0x80, 0, 0, 0, 0]).unwrap().unwrap().closes);
    }
}
