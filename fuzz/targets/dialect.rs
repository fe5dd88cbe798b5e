//! Any response in any dialect: nothing panics, every accepted value is within the bounds, and a
//! stream gives the same result in one chunk and byte by byte.
//!
//! An input is a response as text: `dialect status`, one header per line, a blank line, the body.

#![no_main]

use libfuzzer_sys::fuzz_target;
use standpipe_dialect::{Answer, Dialect, Kind, Refused, Response, StreamReader, Verdict, bounds};

/// 2026-10-21T07:28:00Z.
const RECEIVED: u64 = 1_792_567_680_000;

fuzz_target!(|input: &[u8]| {
    let cut = input.windows(2).position(|two| two == b"\n\n").unwrap_or(input.len());
    let head = String::from_utf8_lossy(&input[..cut]);
    let body = input.get(cut + 2..).unwrap_or_default();
    let mut lines = head.lines();
    let (dialect, status) = first_line(lines.next().unwrap_or_default());
    let pairs = lines.map(|line| line.split_once(": ").unwrap_or((line, "")));
    let headers: Vec<(&str, &str)> = pairs.collect();
    let response = Response { status, headers: &headers, body, received: RECEIVED };
    check(&dialect.read(&response));
    stream(dialect, body);
});

fn first_line(line: &str) -> (Dialect, u16) {
    let mut words = line.split(' ');
    let dialect = words.next().and_then(Dialect::named).unwrap_or(Dialect::Generic);
    (dialect, words.next().and_then(|word| word.parse().ok()).unwrap_or(429))
}

fn check(answer: &Answer) {
    if let Verdict::Refused(refused) = &answer.verdict {
        check_refused(refused);
    }
    assert!(answer.limits.len() <= bounds::LIMITS && answer.anomalies.len() <= bounds::ANOMALIES);
    for seen in &answer.limits {
        let most = seen.limit.unwrap_or(bounds::AMOUNT);
        assert!((1..=bounds::AMOUNT).contains(&most));
        assert!(seen.remaining.is_none_or(|remaining| remaining <= most));
        assert!(seen.reset_in.is_none_or(|reset| reset <= bounds::WAIT));
    }
}

fn check_refused(refused: &Refused) {
    let longest = if refused.kind == Kind::Terminal { bounds::TERMINAL_WAIT } else { bounds::WAIT };
    assert!(refused.wait.is_none_or(|wait| wait <= longest));
    assert!(refused.message.chars().count() <= bounds::MESSAGE);
    assert!(!refused.message.chars().any(char::is_control));
}

fn stream(dialect: Dialect, bytes: &[u8]) {
    let mut whole = StreamReader::new(dialect);
    whole.feed(bytes);
    if let Some(refused) = whole.refused() {
        check_refused(refused);
    }
    let mut pieces = StreamReader::new(dialect);
    bytes.iter().for_each(|byte| pieces.feed(&[*byte]));
    let summary = |reader: &StreamReader| (*reader.usage(), reader.finished(), reader.text_bytes());
    assert_eq!(summary(&whole), summary(&pieces));
    assert_eq!(whole.refused(), pieces.refused());
}
