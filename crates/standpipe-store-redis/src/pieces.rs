//! What is too large for one call, in pieces; and looking for a place in a log.

use redis::{Cmd, cmd};
use standpipe_store::member::random_session;
use standpipe_store::{Mark, Position, Snapshot, StoreError};

use crate::answer::{bulk, mark_text};
use crate::head::Head;
use crate::log::{PIECE, RedisLog, Spot};
use crate::record;

impl RedisLog {
    /// Records between two places; none if they are not kept any more.
    pub(crate) fn pieces_of_log(
        &self,
        id: &str,
        from: u64,
        upto: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.pieces(id, "log", from, upto)
    }

    /// A snapshot; none if it is not kept any more.
    pub(crate) fn pieces_of_snapshot(
        &self,
        id: &str,
        mark: &Mark,
        length: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.pieces(id, &mark_text(mark), 0, length)
    }

    fn pieces(
        &self,
        id: &str,
        what: &str,
        from: u64,
        upto: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut bytes = Vec::with_capacity(usize::try_from(upto - from).unwrap_or_default());
        let mut at = from;
        while at < upto {
            let end = upto.min(at + PIECE as u64);
            let arguments = |command: &mut Cmd| {
                command.arg(4).arg(&self.keys.all()).arg(id).arg(what).arg(at).arg(end);
            };
            let value = self.link().run(&self.store.scripts.piece, arguments, 0)?;
            let Some(piece) = bulk(value) else { return Ok(None) };
            if piece.len() as u64 != end - at {
                return Err(self.broken());
            }
            bytes.extend(piece);
            at = end;
        }
        Ok(Some(bytes))
    }

    /// Sends a snapshot of a place in the log.
    pub(crate) fn keep_snapshot(&self, spot: Spot, snapshot: &Snapshot) -> Result<(), StoreError> {
        let (bytes, stage) = (&snapshot.bytes, self.keys.stage(random_session()));
        let whole = bytes.len() <= PIECE;
        if !whole {
            self.send_ahead(&stage, bytes)?;
        }
        let inline: &[u8] = if whole { bytes } else { &[] };
        let arguments = |command: &mut Cmd| {
            command.arg(5).arg(&self.keys.all()).arg(&stage).arg(&self.id);
            command.arg(spot.at.number).arg(record::digits(spot.at.chain)).arg(spot.bytes);
            command.arg(mark_text(&snapshot.mark)).arg(bytes.len()).arg(inline);
        };
        self.link().run(&self.store.scripts.snapshot, arguments, 0).map(drop)
    }

    /// Sends a snapshot ahead in pieces, under a name of its own.
    pub(crate) fn send_ahead(&self, stage: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let mut link = self.link();
        for (at, piece) in (0..).step_by(PIECE).zip(bytes.chunks(PIECE)) {
            let arguments = |command: &mut Cmd| {
                command.arg(1).arg(stage).arg(at).arg(piece);
            };
            link.run(&self.store.scripts.stage, arguments, 0)?;
        }
        Ok(())
    }

    /// Looks for a position in the whole log: where this process has not been, or not lately. None
    /// if the log went another way.
    pub(crate) fn find(&mut self, at: Position) -> Result<Option<Spot>, StoreError> {
        let read = self.link().call(cmd("HGET").arg(&self.keys.head).arg("h"))?;
        let Some(bytes) = bulk(read) else { return Ok(None) };
        let head = Head::read(bytes).ok_or_else(|| self.broken())?;
        if at.number > head.number {
            return Ok(None);
        }
        let first = self.link().call(cmd("GETRANGE").arg(&self.keys.log).arg(0).arg(15))?;
        let first = bulk(first).as_deref().and_then(record::of_digits);
        let chain = first.ok_or_else(|| self.broken())?;
        let Some(bytes) = self.pieces_of_log(&head.id, head.base, head.end)? else {
            return self.find(at);
        };
        head.id.clone_into(&mut self.id);
        let mut spots = vec![(chain, head.base)];
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (record, behind) = record::take(rest)?;
            let place = spots.last().map_or(head.base, |(_, place)| *place) + record.length;
            spots.push((record.chain, place));
            rest = behind;
        }
        // Counted from the end, because how many were let go of is nowhere written.
        let behind = usize::try_from(head.number - at.number).unwrap_or(usize::MAX);
        let Some(found) = spots.len().checked_sub(behind + 1) else {
            // It lies before all that is kept: whoever was there begins with the snapshot.
            return Ok(Some(Spot { at, bytes: 0 }));
        };
        let (chain, bytes) = spots[found];
        Ok((chain == at.chain).then_some(Spot { at, bytes }))
    }
}
