//! The wire protocol of the server, RESP 2: commands are encoded, replies are parsed.
//!
//! Parsing works on bytes that have arrived and never reads. So the reader decides how long to wait
//! for more, which a parser that reads by itself does not allow.

/// A command with its arguments, encoded.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    arguments: Vec<u8>,
    count: u64,
}

/// Returns a command without arguments.
pub(crate) fn cmd(name: &str) -> Command {
    let mut command = Command { arguments: Vec::with_capacity(TYPICAL_BYTES), count: 0 };
    command.arg(name);
    command
}

/// Most commands are shorter.
const TYPICAL_BYTES: usize = 512;

impl Command {
    /// Adds an argument, or several of an array.
    pub(crate) fn arg(&mut self, argument: impl Argument) -> &mut Self {
        argument.add_to(self);
        self
    }

    /// Appends the encoded command to `out`.
    pub(crate) fn encode_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.arguments.len() + 16);
        put_number(b'*', self.count, out);
        out.extend_from_slice(&self.arguments);
    }

    fn add(&mut self, argument: &[u8]) {
        self.count += 1;
        put_number(b'$', argument.len() as u64, &mut self.arguments);
        self.arguments.extend_from_slice(argument);
        self.arguments.extend_from_slice(b"\r\n");
    }
}

fn put_number(kind: u8, number: u64, out: &mut Vec<u8>) {
    // Nearly all numbers are lengths of two digits.
    match u8::try_from(number) {
        Ok(number @ 10..100) => out.extend([kind, b'0' + number / 10, b'0' + number % 10]),
        _ => {
            out.push(kind);
            out.extend_from_slice(Decimal::new(number).digits());
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// A number in decimal digits, without an allocation.
struct Decimal {
    buffer: [u8; 20],
    start: usize,
}

impl Decimal {
    fn new(mut number: u64) -> Self {
        let (mut buffer, mut start) = ([0; 20], 20);
        loop {
            start -= 1;
            buffer[start] = b'0' + u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
            if number == 0 {
                return Self { buffer, start };
            }
        }
    }

    fn digits(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
}

/// Something that can be an argument of a command.
pub(crate) trait Argument {
    fn add_to(&self, command: &mut Command);
}

impl Argument for [u8] {
    fn add_to(&self, command: &mut Command) {
        command.add(self);
    }
}

impl Argument for str {
    fn add_to(&self, command: &mut Command) {
        command.add(self.as_bytes());
    }
}

impl Argument for String {
    fn add_to(&self, command: &mut Command) {
        command.add(self.as_bytes());
    }
}

impl Argument for Vec<u8> {
    fn add_to(&self, command: &mut Command) {
        command.add(self);
    }
}

impl<T: Argument, const N: usize> Argument for [T; N] {
    fn add_to(&self, command: &mut Command) {
        self.iter().for_each(|argument| argument.add_to(command));
    }
}

impl<T: Argument + ?Sized> Argument for &T {
    fn add_to(&self, command: &mut Command) {
        (**self).add_to(command);
    }
}

impl Argument for u64 {
    fn add_to(&self, command: &mut Command) {
        command.add(Decimal::new(*self).digits());
    }
}

impl Argument for u32 {
    fn add_to(&self, command: &mut Command) {
        u64::from(*self).add_to(command);
    }
}

impl Argument for usize {
    fn add_to(&self, command: &mut Command) {
        (*self as u64).add_to(command);
    }
}

/// A reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Nil,
    Int(i64),
    Simple(String),
    Bulk(Vec<u8>),
    Array(Vec<Reply>),
    Error(ServerError),
}

/// An error that the server returned, as `MOVED 866 10.0.0.1:6379`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerError {
    pub(crate) text: String,
}

impl ServerError {
    /// Returns the first word, as `MOVED`.
    pub(crate) fn code(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    /// Returns what follows the first word.
    pub(crate) fn detail(&self) -> &str {
        self.text.split_once(' ').map_or("", |(_, detail)| detail)
    }
}

/// Why no reply could be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unparsed {
    /// More bytes must arrive, until there are at least so many.
    Incomplete { at_least: usize },
    /// These are not the bytes of a reply.
    Malformed,
}

/// How deep arrays may be nested. No reply to a command of this crate comes near it.
const MAX_DEPTH: usize = 8;

/// Parses the first reply. Returns it and its length.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Reply, usize), Unparsed> {
    let mut parser = Parser { bytes, at: 0 };
    let reply = parser.reply(0)?;
    Ok((reply, parser.at))
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn reply(&mut self, depth: usize) -> Result<Reply, Unparsed> {
        let (kind, line) = self.line()?;
        Ok(match kind {
            b'$' => match parse_number(line)? {
                -1 => Reply::Nil,
                length => Reply::Bulk(self.bulk(length)?),
            },
            b':' => Reply::Int(parse_number(line)?),
            b'+' => Reply::Simple(text(line)),
            b'-' => Reply::Error(ServerError { text: text(line) }),
            b'*' => match parse_number(line)? {
                -1 => Reply::Nil,
                count if depth < MAX_DEPTH => self.array(count, depth)?,
                _ => return Err(Unparsed::Malformed),
            },
            _ => return Err(Unparsed::Malformed),
        })
    }

    fn array(&mut self, count: i64, depth: usize) -> Result<Reply, Unparsed> {
        let count = usize::try_from(count).map_err(|_| Unparsed::Malformed)?;
        // The count is only claimed: room is made for what has arrived.
        let mut parts = Vec::with_capacity(count.min((self.bytes.len() - self.at) / 4));
        for _ in 0..count {
            parts.push(self.reply(depth + 1)?);
        }
        Ok(Reply::Array(parts))
    }

    fn bulk(&mut self, length: i64) -> Result<Vec<u8>, Unparsed> {
        let length = usize::try_from(length).map_err(|_| Unparsed::Malformed)?;
        let end = self.at.checked_add(length).ok_or(Unparsed::Malformed)?;
        let after = end.checked_add(2).ok_or(Unparsed::Malformed)?;
        let incomplete = Unparsed::Incomplete { at_least: after };
        let with_end = self.bytes.get(self.at..after).ok_or(incomplete)?;
        let (content, line_end) = with_end.split_at(length);
        if line_end != b"\r\n" {
            return Err(Unparsed::Malformed);
        }
        self.at = after;
        Ok(content.to_vec())
    }

    /// Returns the kind of the reply that begins here, and the rest of its first line.
    fn line(&mut self) -> Result<(u8, &[u8]), Unparsed> {
        let rest = &self.bytes[self.at..];
        let incomplete = Unparsed::Incomplete { at_least: self.bytes.len() + 1 };
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or(incomplete)?;
        let [kind, line @ .., b'\r'] = &rest[..end] else { return Err(Unparsed::Malformed) };
        self.at += end + 1;
        Ok((*kind, line))
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

fn parse_number(line: &[u8]) -> Result<i64, Unparsed> {
    let (negative, digits) = line.strip_prefix(b"-").map_or((false, line), |rest| (true, rest));
    if digits.is_empty() {
        return Err(Unparsed::Malformed);
    }
    let number = digits.iter().try_fold(0_i64, |number, digit| match digit {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(i64::from(digit - b'0')),
        _ => None,
    });
    let number = number.ok_or(Unparsed::Malformed)?;
    Ok(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_encoded_with_its_length_and_those_of_its_arguments() {
        let mut command = cmd("SET");
        command.arg(["a", "bc"]).arg(0_u64).arg(&b"\r\n"[..]).arg(u64::MAX).arg(Vec::new());
        let mut out = b"before".to_vec();
        command.encode_to(&mut out);
        let expected = "before*7\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\nbc\r\n$1\r\n0\r\n$2\r\n\r\n\r\n\
                        $20\r\n18446744073709551615\r\n$0\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn numbers_are_encoded_in_decimal() {
        for number in [0, 1, 9, 10, 11, 42, 99, 100, 101, 255, 256, 1_000, u64::MAX] {
            let mut out = Vec::new();
            put_number(b'$', number, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("${number}\r\n"));
        }
    }

    fn error(text: &str) -> Reply {
        Reply::Error(ServerError { text: text.to_owned() })
    }

    fn examples() -> Vec<(&'static [u8], Reply)> {
        let bulk = |text: &str| Reply::Bulk(text.as_bytes().to_vec());
        vec![
            (b"+OK\r\n", Reply::Simple("OK".to_owned())),
            (b"-MOVED 1 a:2\r\n", error("MOVED 1 a:2")),
            (b":-42\r\n", Reply::Int(-42)),
            (b"$-1\r\n", Reply::Nil),
            (b"*-1\r\n", Reply::Nil),
            (b"$0\r\n\r\n", bulk("")),
            (b"$4\r\na\r\nb\r\n", bulk("a\r\nb")),
            (b"*0\r\n", Reply::Array(Vec::new())),
            (
                b"*3\r\n$1\r\na\r\n*1\r\n:7\r\n-ERR x\r\n",
                Reply::Array(vec![bulk("a"), Reply::Array(vec![Reply::Int(7)]), error("ERR x")]),
            ),
        ]
    }

    #[test]
    fn a_reply_is_parsed_once_all_of_it_has_arrived() {
        for (bytes, reply) in examples() {
            for length in 0..bytes.len() {
                let Err(Unparsed::Incomplete { at_least }) = parse(&bytes[..length]) else {
                    panic!("{length} bytes of {reply:?}");
                };
                assert!(length < at_least && at_least <= bytes.len(), "{length} of {reply:?}");
            }
            let more = [bytes, b"+next\r\n"].concat();
            assert_eq!(parse(&more), Ok((reply, bytes.len())));
        }
    }

    #[test]
    fn what_is_not_a_reply_is_rejected() {
        let nested = "*1\r\n".repeat(MAX_DEPTH + 1);
        let malformed = [
            "\r\n",
            "hello\r\n",
            "+OK\n",
            ":\r\n",
            ":x\r\n",
            ":99999999999999999999\r\n",
            "$-2\r\n",
            "$1\r\nabc",
            "*-2\r\n",
            "$\r\n",
            &nested,
        ];
        for text in malformed {
            assert_eq!(parse(text.as_bytes()), Err(Unparsed::Malformed), "{text:?}");
        }
        let large = Unparsed::Incomplete { at_least: 16 + (1 << 40) + 2 };
        assert_eq!(parse(b"$1099511627776\r\na"), Err(large), "nothing is allocated for a claim");
    }

    #[test]
    fn an_error_has_a_code_and_a_detail() {
        let error = ServerError { text: "MOVED 866 [::1]:6379".to_owned() };
        assert_eq!((error.code(), error.detail()), ("MOVED", "866 [::1]:6379"));
        let short = ServerError { text: "OOM".to_owned() };
        assert_eq!((short.code(), short.detail()), ("OOM", ""));
    }
}
