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
        let mut rest = bytes;
        while let Some(byte) = rest.first() {
            // Between objects there are only brackets, commas and whitespace.
            if !self.nesting.is_inside() && *byte != b'{' {
                self.is_closed |= *byte == b']';
                rest = &rest[1..];
                continue;
            }
            // Most bytes are text; they are taken as a whole.
            let (same, changed) = rest.split_at(self.nesting.unchanged_by(rest));
            self.extend(same);
            let Some((byte, after)) = changed.split_first() else { return };
            rest = after;
            let before = self.nesting.depth();
            if before == 0 {
                // Most objects arrive in one piece.
                self.object.reserve(rest.len().min(bounds::EVENT));
            }
            self.nesting.step(*byte);
            let depth = self.nesting.depth();
            if before == 1 && depth == 2 {
                self.member = Some(self.object.len());
            }
            self.extend(&[*byte]);
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

    /// Keeps bytes of the object. The usage is beside the large members (vectors, images), so
    /// these are left out and the rest is read.
    fn extend(&mut self, bytes: &[u8]) {
        if !self.elides && self.object.len() + bytes.len() > bounds::EVENT {
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
            self.object.extend_from_slice(bytes);
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
    fn how_the_text_is_cut_changes_nothing() {
        let large = "\\\"x".repeat(bounds::EVENT / 3);
        let text = format!(
            "[{{\"a\":\"[{{\\\\\",\"b\":[\"{large}\"],\"c\":{{}}}},{{\"{large}\":0}} , {{\"d\":1}}]"
        );
        let whole = events(&text);
        assert_eq!(whole.0, [r#"{"a":"[{\\","b":null,"c":{}}"#, r#"{"d":1}"#]);
        for size in [1, 2, 3, 7, 1_000] {
            let mut found = Vec::new();
            let mut decoder = JsonDecoder::default();
            for piece in text.as_bytes().chunks(size) {
                decoder.feed(piece, |o| found.push(String::from_utf8_lossy(o).into_owned()));
            }
            assert_eq!((found, decoder.is_closed()), whole, "{size}");
        }
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
