//! Base64 for URLs, without padding. Whatever decodes encodes to the same text.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for sextet in 0..=chunk.len() {
            let index = (word >> (18 - 6 * sextet)) & 63;
            text.push(char::from(ALPHABET[index as usize]));
        }
    }
    text
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for chunk in text.as_bytes().chunks(4) {
        let mut word: u32 = 0;
        for sextet in 0..4 {
            let value = chunk.get(sextet).map_or(Some(0), |letter| value(*letter))?;
            word = word << 6 | value;
        }
        let whole = word.to_be_bytes();
        let count = chunk.len().checked_sub(1).filter(|count| *count > 0)?;
        bytes.extend_from_slice(&whole[1..=count]);
    }
    // The last letter has bits to spare, which must be those that encoding leaves.
    (encode(&bytes) == text).then_some(bytes)
}

fn value(letter: u8) -> Option<u32> {
    let at = ALPHABET.iter().position(|known| *known == letter)?;
    u32::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_usual_encoding() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (&[0xfb, 0xff], "-_8"),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
        for bad in ["Z", "Zh", "Zm9=", "Z g", "Zm9vY", "é"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
