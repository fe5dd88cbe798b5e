//! Splits a stream of JSON objects: in an array, one per line, or a single one.

use crate::bounds;
use crate::parse::json::Nesting;

/// Decoder that buffers the object under way.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonDecoder {
    object: Vec<u8>,
    nesting: Nesting,
    /// Where the value of the current member begins, if it is an object or an array.
    member: Option<usize>,
    /// That value made the object larger than [`bounds::EVENT`]: it is left out.
    elides: bool,
    /// The object is too large for another reason: skip to its end.
    skips: bool,
    is_closed: bool,
}

impl JsonDecoder {
    pub(super) fn feed(&mut self, bytes: &[u8], mut on_event: impl FnMut(&[u8])) {
        for byte in bytes {
            // Between objects there are only brackets, commas and whitespace.
            if !self.nesting.is_inside() && *byte != b'{' {
                self.is_closed |= *byte == b']';
                continue;
            }
            let before = self.nesting.depth();
            self.nesting.step(*byte);
            let depth = self.nesting.depth();
            if before == 1 && depth == 2 {
                self.member = Some(self.object.len());
            }
            self.push(*byte);
            if before == 2 && depth == 1 {
                (self.member, self.elides) = (None, false);
            }
            if !self.nesting.is_inside() {
                if !self.skips {
                    on_event(&self.object);
                }
                self.object.clear();
                (self.member, self.elides, self.skips) = (None, false, false);
            }
        }
    }

    /// Keeps a byte of the object. The usage is beside the large members (vectors, images), so
    /// these are left out and the rest is read.
    fn push(&mut self, byte: u8) {
        if self.object.len() == bounds::EVENT && !self.elides {
            match self.member {
                Some(begins) => {
                    self.object.truncate(begins);
                    self.object.extend_from_slice(b"null");
                    self.elides = true;
                }
                None => self.skips = true,
            }
        }
        if !self.skips && !self.elides {
            self.object.push(byte);
        }
    }

    /// Whether the array has ended.
    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> (Vec<String>, bool) {
        let mut found = Vec::new();
        let mut decoder = JsonDecoder::default();
        decoder.feed(text.as_bytes(), |o| found.push(String::from_utf8_lossy(o).into_owned()));
        (found, decoder.is_closed())
    }

    #[test]
    fn objects_are_found_in_lists_and_on_lines() {
        let two = vec![r#"{"a":[{}],"b":"]}\""}"#.to_owned(), "{}".to_owned()];
        assert_eq!(events("[{\"a\":[{}],\"b\":\"]}\\\"\"}\n,\r\n{}]"), (two.clone(), true));
        assert_eq!(events("{\"a\":[{}],\"b\":\"]}\\\"\"}\n{}\n{"), (two, false));
    }

    #[test]
    fn a_member_that_is_too_large_is_left_out() {
        let vectors = "[\"0.5\"],".repeat(bounds::EVENT / 4);
        let text = format!("{{\"data\":[{vectors}{{}}],\"usage\":{{\"n\":1}},\"b\":[{vectors}0]}}");
        let (found, _) = events(&text);
        assert_eq!(found, [r#"{"data":null,"usage":{"n":1},"b":null}"#]);
    }

    #[test]
    fn an_object_that_is_too_large_is_passed_over() {
        let text = format!("[{{\"a\":\"{}\"}},{{}}]", "x".repeat(bounds::EVENT));
        assert_eq!(events(&text), (vec!["{}".to_owned()], true));
    }
}
