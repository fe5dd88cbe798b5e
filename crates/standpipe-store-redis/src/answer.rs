//! What the appending script answers, read.

use redis::Value;
use standpipe_core::Instant;
use standpipe_store::{Mark, Position, Tail};

use crate::log::Spot;
use crate::record;

/// What the script answers.
pub(crate) enum Answer {
    Done(Box<Done>),
    /// There is no such log.
    Missing {
        now: u64,
    },
    /// The caller's position is not on it.
    Forked,
    /// Its keys do not belong together.
    Broken,
    /// It is as long as it may be.
    Full,
    /// Another server process than the last appender's has it.
    Changed,
    /// Another log than the caller's machine remembers is in its place.
    Another,
    /// Somebody else has accounted for that already.
    Accounted,
    /// It was last used by a program of other semantics.
    Semantics {
        theirs: u64,
        last: u64,
        now: u64,
    },
}

/// A step that was made.
pub(crate) struct Done {
    pub(crate) head: Spot,
    pub(crate) now: Instant,
    pub(crate) mark: Option<Mark>,
    pub(crate) due: bool,
    /// When the keys expire, in milliseconds.
    pub(crate) expires: u64,
    pub(crate) id: String,
    /// The length of the snapshot to begin with, if one has to.
    pub(crate) jumps: Option<u64>,
    /// Where the records begin.
    pub(crate) begin: u64,
    pub(crate) records: Vec<u8>,
    /// The snapshot, if it is not too long for one answer.
    pub(crate) snapshot: Vec<u8>,
}

/// What the script answered; none if it is no answer of its.
pub(crate) fn read(value: Value) -> Option<Answer> {
    let Value::Array(parts) = value else { return None };
    let number = |at: usize| match parts.get(at)? {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let words = |at: usize| text(parts.get(at)?);
    Some(match words(0)?.as_str() {
        "missing" => Answer::Missing { now: number(1)? },
        "forked" => Answer::Forked,
        "broken" => Answer::Broken,
        "full" => Answer::Full,
        "changed" => Answer::Changed,
        "another" => Answer::Another,
        "accounted" => Answer::Accounted,
        "semantics" => Answer::Semantics { theirs: number(1)?, last: number(2)?, now: number(3)? },
        "ok" => {
            let mark = mark(&words(2)?);
            let mut bulks = parts.into_iter().skip(1);
            let head = bulk(bulks.next()?)?;
            let (records, snapshot) = (bulk(bulks.nth(1)?)?, bulk(bulks.next()?)?);
            Answer::Done(Box::new(done(&head, mark, records, snapshot)?))
        }
        _ => return None,
    })
}

/// A step that was made, as the script packs it.
fn done(head: &[u8], mark: Option<Mark>, records: Vec<u8>, snapshot: Vec<u8>) -> Option<Done> {
    let (words, rest) = head.split_at_checked(48)?;
    let mut words = words.chunks_exact(8).map(|word| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        u64::from_le_bytes(bytes)
    });
    let mut word = || words.next();
    let (number, now, end, expires) = (word()?, word()?, word()?, word()?);
    let (begin, length) = (word()?, word()?);
    let [due, jumps, rest @ ..] = rest else { return None };
    let (chain, id) = rest.split_at_checked(record::CHAIN)?;
    let at = Position { number, chain: record::of_digits(chain)? };
    Some(Done {
        head: Spot { at, bytes: end },
        now: Instant(now),
        mark,
        due: *due == 1,
        expires,
        id: String::from_utf8(id.to_vec()).ok()?,
        jumps: (*jumps == 1).then_some(length),
        begin,
        records,
        snapshot,
    })
}

/// A pool that is not there yet.
pub(crate) const fn empty(now: u64) -> Tail {
    Tail {
        snapshot: None,
        entries: Vec::new(),
        head: Position::START,
        now: Instant(now),
        mark: None,
        snapshot_due: false,
    }
}

/// A snapshot's mark as it is written down: number, chain and hash.
pub(crate) fn mark_text(mark: &Mark) -> String {
    format!("{} {:016x} {:016x}", mark.at.number, mark.at.chain, mark.hash)
}

/// A mark that was written down.
pub(crate) fn mark(text: &str) -> Option<Mark> {
    let mut words = text.split(' ');
    let number = words.next()?.parse().ok()?;
    let chain = u64::from_str_radix(words.next()?, 16).ok()?;
    let hash = u64::from_str_radix(words.next()?, 16).ok()?;
    Some(Mark { at: Position { number, chain }, hash })
}

/// An answer that is a text.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

/// An answer that is bytes.
pub(crate) fn bulk(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}
