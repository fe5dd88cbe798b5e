//! Replies of the server, decoded. The replies of a step are described in `scripts/append.lua`.

use standpipe_core::Instant;
use standpipe_store::{Position, SnapshotId, StoreError, Tail};

use super::record;
use super::resp::Reply;

/// A position and its byte offset in the log.
///
/// The offset lets the script check a position with one `GETRANGE` instead of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) position: Position,
    pub(crate) offset: u64,
}

impl Cursor {
    pub(crate) const START: Self = Self { position: Position::START, offset: 0 };
}

/// A reply of `append.lua`.
pub(crate) enum AppendReply {
    /// The step was made.
    Done(Box<Step>),
    /// There is no log.
    Missing {
        /// The server's time, in microseconds.
        now: u64,
    },
    /// The caller's position is not on the log.
    Forked,
    /// The keys do not fit together.
    Broken,
    /// The log reached its size limit.
    Full,
    /// Another server process took the last append.
    ServerChanged,
    /// The log is not the one that the caller's machine remembers.
    Replaced,
    /// Somebody else has sent the preamble already.
    PreambleNotNeeded,
    /// The log was written with other semantics.
    OtherSemantics {
        /// Which.
        theirs: u64,
        /// The stamp of the last entry.
        last_stamp: u64,
        /// The server's time, in microseconds.
        now: u64,
    },
}

/// The result of a step that was made.
pub(crate) struct Step {
    /// The end of the log, behind the entries that were appended.
    pub(crate) head: Cursor,
    /// The server's time, never before the last stamp.
    pub(crate) now: Instant,
    /// The id of the latest snapshot, if the caller's position is before it.
    pub(crate) snapshot_id: Option<SnapshotId>,
    /// Whether the caller should write a snapshot.
    pub(crate) snapshot_due: bool,
    /// When the keys expire, in milliseconds.
    pub(crate) expires_at: u64,
    pub(crate) log_id: String,
    /// The length of the snapshot that the caller must load before the records, if any.
    pub(crate) snapshot_length: Option<u64>,
    /// The offset of the first record.
    pub(crate) records_at: u64,
    /// Records of others, cut off at the size limit of a reply. The caller's own are not returned.
    pub(crate) records: Vec<u8>,
    /// The snapshot, or nothing if it does not fit into the reply.
    pub(crate) snapshot: Vec<u8>,
}

/// Decodes a reply of `append.lua`. Returns `None` if it is not one.
pub(crate) fn decode_append(reply: Reply) -> Option<AppendReply> {
    let parts = match reply {
        Reply::Array(parts) => parts,
        Reply::Bulk(packed) => {
            return Some(step_reply(&packed, None, Vec::new(), Vec::new()));
        }
        _ => return None,
    };
    let number = |index: usize| match parts.get(index)? {
        Reply::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let string = |index: usize| text(parts.get(index)?);
    Some(match string(0)?.as_str() {
        "missing" => AppendReply::Missing { now: number(1)? },
        "forked" => AppendReply::Forked,
        "broken" => AppendReply::Broken,
        "full" => AppendReply::Full,
        "changed" => AppendReply::ServerChanged,
        "another" => AppendReply::Replaced,
        "accounted" => AppendReply::PreambleNotNeeded,
        "semantics" => AppendReply::OtherSemantics {
            theirs: number(1)?,
            last_stamp: number(2)?,
            now: number(3)?,
        },
        "ok" => {
            let snapshot_id = string(2).and_then(|text| parse_snapshot_id(&text));
            let mut bulks = parts.into_iter().skip(1);
            let packed = bulk(bulks.next()?)?;
            let (mut records, snapshot) = (bulk(bulks.nth(1)?)?, bulk(bulks.next()?)?);
            // The script has compared the chain before the first record.
            records.drain(..records.len().min(record::CHAIN_LEN));
            step_reply(&packed, snapshot_id, records, snapshot)
        }
        _ => return None,
    })
}

fn step_reply(
    packed: &[u8],
    snapshot_id: Option<SnapshotId>,
    records: Vec<u8>,
    snapshot: Vec<u8>,
) -> AppendReply {
    match decode_step(packed, snapshot_id, records, snapshot) {
        Some(step) => AppendReply::Done(Box::new(step)),
        // The script copies chain and log id from the head: so the head is damaged.
        None => AppendReply::Broken,
    }
}

fn decode_step(
    packed: &[u8],
    snapshot_id: Option<SnapshotId>,
    records: Vec<u8>,
    snapshot: Vec<u8>,
) -> Option<Step> {
    let (words, rest) = packed.split_at_checked(48)?;
    let mut words = words.chunks_exact(8).map(|word| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        u64::from_le_bytes(bytes)
    });
    let mut word = || words.next();
    let (number, now, offset, expires_at) = (word()?, word()?, word()?, word()?);
    let (records_at, snapshot_length) = (word()?, word()?);
    let [snapshot_due, with_snapshot, rest @ ..] = rest else { return None };
    let (chain, log_id) = rest.split_at_checked(record::CHAIN_LEN)?;
    let position = Position { number, chain: record::parse_chain(chain)? };
    Some(Step {
        head: Cursor { position, offset },
        now: Instant(now),
        snapshot_id,
        snapshot_due: *snapshot_due == 1,
        expires_at,
        log_id: String::from_utf8(log_id.to_vec()).ok()?,
        snapshot_length: (*with_snapshot == 1).then_some(snapshot_length),
        records_at,
        records,
        snapshot,
    })
}

/// Returns the tail of a pool that does not exist yet.
pub(crate) const fn empty_tail(now: u64) -> Tail {
    Tail {
        snapshot: None,
        entries: Vec::new(),
        appended: None,
        head: Position::START,
        now: Instant(now),
        latest_snapshot: None,
        snapshot_due: false,
    }
}

/// Formats the id of a snapshot as the head key stores it: number, chain and hash.
pub(crate) fn snapshot_id_text(id: &SnapshotId) -> String {
    format!("{} {:016x} {:016x}", id.at.number, id.at.chain, id.hash)
}

/// Parses what [`snapshot_id_text`] writes.
pub(crate) fn parse_snapshot_id(text: &str) -> Option<SnapshotId> {
    let mut words = text.split(' ');
    let number = words.next()?.parse().ok()?;
    let chain = u64::from_str_radix(words.next()?, 16).ok()?;
    let hash = u64::from_str_radix(words.next()?, 16).ok()?;
    Some(SnapshotId { at: Position { number, chain }, hash })
}

/// Returns the text of a string reply.
pub(crate) fn text(reply: &Reply) -> Option<String> {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8(bytes.clone()).ok(),
        Reply::Simple(text) => Some(text.clone()),
        _ => None,
    }
}

/// Returns the bytes of a bulk string reply.
pub(crate) fn bulk(reply: Reply) -> Option<Vec<u8>> {
    match reply {
        Reply::Bulk(bytes) => Some(bytes),
        _ => None,
    }
}

/// Returns the texts of a list of strings.
pub(crate) fn texts(reply: &Reply, place: &str) -> Result<Vec<String>, StoreError> {
    let Reply::Array(parts) = reply else { return Err(unexpected(place)) };
    parts.iter().map(|part| text(part).ok_or_else(|| unexpected(place))).collect()
}

/// The error for a reply that is none of the expected ones.
pub(crate) fn unexpected(place: &str) -> StoreError {
    StoreError::transient(format!("{place} sent an unexpected reply"))
}
