//! Splits a stream of JSON objects: in an array, one per line, or a single one.

use crate::bounds;
use crate::parse::json::Nesting;

/// Decoder that buffers the object under way.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonDecoder {
    object: Vec<u8>,
    nesting: Nesting,
    /// The object is larger than [`bounds::EVENT`]: skip to its end.
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
            self.nesting.step(*byte);
            self.skips |= self.object.len() == bounds::EVENT;
            if !self.skips {
                self.object.push(*byte);
            }
            if !self.nesting.is_inside() {
                if !self.skips {
                    on_event(&self.object);
                }
                self.object.clear();
                self.skips = false;
            }
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
    fn an_object_that_is_too_large_is_passed_over() {
        let text = format!("[{{\"a\":\"{}\"}},{{}}]", "x".repeat(bounds::EVENT));
        assert_eq!(events(&text), (vec!["{}".to_owned()], true));
    }
}
