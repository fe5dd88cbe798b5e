//! The log of one pool on its file: the order of steps.
//!
//! To append: take the lock, see that the file is still the one at its path, read the head, stamp,
//! write the records, write the head, give the lock back. Everything else, above all applying what
//! others appended, happens outside. To read, no lock is needed: whoever finds that the latest head
//! no longer covers what it read does so again inside a step.
//!
//! Invariant: bytes of the log between a head's base and end are never written while that head is
//! the latest.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use standpipe_core::SEMANTICS;
use standpipe_store::log::snapshot_due;
use standpipe_store::{Log, PoolName, Position, Since, Snapshot, StoreError, Tail, entry};

use crate::head::{Head, Slot, Spot};
use crate::lock::{self, Waiter};
use crate::point;
use crate::pool_file::{Heads, PoolFile, chain_before, entries, take_record};
use crate::store::Shared;
use crate::sys;

/// The log of one pool on its file.
pub struct FileLog {
    pub(crate) store: Arc<Shared>,
    pub(crate) pool: PoolName,
    pub(crate) path: PathBuf,
    pub(crate) open: Option<Arc<PoolFile>>,
    /// A place in the log that this process has been to.
    known: Option<Spot>,
    waiter: Waiter,
    /// The last step was not let in: the next does not wait as long as a first one again.
    kept_out: bool,
    /// What is damaged is set aside; otherwise it is only reported.
    mends: bool,
    /// How many steps it has made since it last let others run, and whether others made any.
    steps: u32,
    crowded: bool,
    /// Another file is at the path since the last answer: whoever has a position must begin anew.
    replaced: bool,
}

/// A part of the file: a snapshot, perhaps, and everything from a place on.
struct Stretch {
    snapshot: Option<usize>,
    begin: Spot,
}

/// What came of looking for a position.
enum Found {
    /// It is there.
    At(Spot),
    /// What was there is no longer kept.
    Trimmed,
    /// The log went another way.
    Forked,
}

impl FileLog {
    pub(crate) fn new(store: Arc<Shared>, pool: PoolName, path: PathBuf, mends: bool) -> Self {
        Self {
            store,
            pool,
            path,
            open: None,
            known: None,
            waiter: Waiter::default(),
            kept_out: false,
            mends,
            steps: 0,
            crowded: false,
            replaced: false,
        }
    }

    /// Does something inside a step: with the lock, on the file that is at the path, whose head is
    /// whole and of this start of the machine.
    pub(crate) fn step<T>(
        &mut self,
        act: impl FnOnce(&mut Self, &Arc<PoolFile>, Head) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 0..ATTEMPTS {
            let file = self.opened()?;
            let locked =
                lock::take(&file.file, &self.path, &self.pool, &self.waiter, self.patience());
            self.kept_out = locked.is_err();
            let locked = locked?;
            point::reach("lock taken");
            if !file.is_at(&self.path) {
                self.leave();
                continue;
            }
            let Some(head) = self.settled_head(&file)? else {
                self.leave();
                continue;
            };
            let done = act(self, &file, head);
            drop(locked);
            point::reach("lock given back");
            return done;
        }
        Err(StoreError::transient(format!(
            "the file of `{}` is replaced again and again; see who writes to {}",
            self.pool,
            self.path.display()
        )))
    }

    /// How long the next step waits for others to leave theirs. Whoever was told once that one does
    /// not come out has heard it: to wait as long for each further word would help nobody.
    fn patience(&self) -> Duration {
        let all = self.store.patience;
        if self.kept_out { all.min(ONCE_MORE) } else { all }
    }

    /// The file, opened if it is not.
    pub(crate) fn opened(&mut self) -> Result<Arc<PoolFile>, StoreError> {
        if let Some(open) = &self.open {
            return Ok(Arc::clone(open));
        }
        let file = Arc::new(self.open_or_make()?);
        self.known = None;
        self.open = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Who runs just now finds the lock free every time, and would have it for itself as long as
    /// the system lets it run.
    fn let_others_run(&mut self) {
        self.steps += 1;
        if self.steps >= TURN {
            if std::mem::take(&mut self.crowded) {
                sys::give_way();
            }
            self.steps = 0;
        }
    }

    /// The file is no longer the pool's.
    fn leave(&mut self) {
        (self.open, self.replaced) = (None, true);
    }

    /// The latest head, inside a step. One that was not as written is replaced by what the other
    /// and the log say; none means that the file was set aside.
    fn settled_head(&mut self, file: &PoolFile) -> Result<Option<Head>, StoreError> {
        let head = match file.heads().map_err(|error| self.cannot("read", error))? {
            Heads::Whole(head) => head,
            Heads::One(head) => self.roll_forward(file, head)?,
            Heads::None => {
                self.begin_anew(file, "neither of its heads is as it was written")?;
                return Ok(None);
            }
        };
        if head.semantics != SEMANTICS {
            return self.of_other_semantics(file, head);
        }
        if head.origin.boot_id == self.store.time.boot_id {
            return Ok(Some(head));
        }
        self.carry_over(file, head).map(Some)
    }

    /// Where a position is in the log.
    fn find(&self, file: &PoolFile, head: &Head, from: Position) -> Result<Found, StoreError> {
        if from.number > head.end.at.number {
            return Ok(Found::Forked);
        }
        if from.number < head.base.at.number {
            return Ok(Found::Trimmed);
        }
        let kept = |slot: &&Slot| slot.length > 0 && slot.of.bytes >= head.base.bytes;
        let snapshots = head.slots.iter().filter(kept).map(|slot| slot.of);
        let mut nearest = head.base;
        for spot in snapshots.chain([head.base, head.end]) {
            if spot.at == from {
                return Ok(Found::At(spot));
            }
            if spot.at.number == from.number {
                return Ok(Found::Forked);
            }
            if spot.at.number < from.number && spot.at.number > nearest.at.number {
                nearest = spot;
            }
        }
        if let Some(known) = self.known.filter(|known| known.at == from)
            && (head.base.bytes..head.end.bytes).contains(&known.bytes)
            && chain_before(file, head, known).map_err(|error| self.cannot("read", error))?
        {
            return Ok(Found::At(known));
        }
        self.scan(file, head, nearest, from)
    }

    /// Walks from a known place to a position, checking everything on the way.
    fn scan(
        &self,
        file: &PoolFile,
        head: &Head,
        mut spot: Spot,
        to: Position,
    ) -> Result<Found, StoreError> {
        let bytes = file.read_log(head, spot.bytes, head.end.bytes);
        let bytes = bytes.map_err(|error| self.cannot("read", error))?;
        let mut rest = bytes.as_slice();
        while spot.at.number < to.number {
            let (record, behind) = take_record(rest)?;
            spot = self.pass(spot, &record)?;
            rest = behind;
        }
        Ok(if spot.at == to { Found::At(spot) } else { Found::Forked })
    }

    /// The place behind a record, which must say the same.
    pub(crate) fn pass(
        &self,
        spot: Spot,
        record: &crate::pool_file::Record<'_>,
    ) -> Result<Spot, entry::Damaged> {
        let chain = self.chain(spot.at.chain, record.entry.stamp, record.entry.body);
        if chain != record.chain {
            return Err(entry::Damaged { what: "the chain behind an entry" });
        }
        let at = Position { number: spot.at.number + 1, chain };
        Ok(Spot { at, bytes: spot.bytes + record.length as u64 })
    }

    /// What of the file answers a position: everything since, or the snapshot and what came after.
    fn stretch(head: &Head, found: &Found) -> Stretch {
        let latest = head.latest.map(|slot| (slot, &head.slots[slot]));
        match (found, latest) {
            (Found::At(spot), Some((slot, snapshot)))
                if head.end.bytes - spot.bytes
                    > snapshot.length.saturating_add(head.end.bytes - snapshot.of.bytes) =>
            {
                Stretch { snapshot: Some(slot), begin: snapshot.of }
            }
            (Found::At(spot), _) => Stretch { snapshot: None, begin: *spot },
            (_, Some((slot, snapshot))) => Stretch { snapshot: Some(slot), begin: snapshot.of },
            (_, None) => Stretch { snapshot: None, begin: head.base },
        }
    }

    /// Reads a stretch. `behind` are records just written, which need not be read.
    fn tail(
        &mut self,
        file: &PoolFile,
        head: &Head,
        stretch: &Stretch,
        behind: &[u8],
    ) -> Result<Tail, StoreError> {
        let latest = head.snapshot();
        let since_snapshot = head.end.bytes - latest.map_or(0, |slot| slot.of.bytes);
        let size = latest.map_or(0, |slot| slot.length);
        let cannot = |error| self.cannot("read", error);
        let slot = stretch.snapshot.map(|slot| &head.slots[slot]);
        let snapshot = slot.map(|slot| file.snapshot(slot).map_err(cannot)).transpose()?;
        let until = head.end.bytes.saturating_sub(behind.len() as u64);
        let mut records = match stretch.begin.bytes < until {
            true => file.read_log(head, stretch.begin.bytes, until).map_err(cannot)?,
            false => Vec::new(),
        };
        records.extend_from_slice(behind);
        self.known = Some(head.end);
        let now = head.stamp.max(self.store.time.now(head.origin));
        let long = since_snapshot > head.log_size / 4;
        Ok(Tail {
            snapshot,
            entries: entries(&records),
            head: head.end.at,
            now: if behind.is_empty() { now } else { head.stamp },
            mark: latest.map(Slot::mark),
            snapshot_due: long || snapshot_due(as_size(since_snapshot), as_size(size)),
        })
    }

    /// Whether a stretch that was read without the lock was there all the time. Nothing that the
    /// latest head covers is ever written, so it is enough that it still covers it.
    fn was_kept(file: &PoolFile, head: &Head, stretch: &Stretch) -> bool {
        let Ok(Heads::Whole(now)) = file.heads() else { return false };
        let same = |slot| now.latest == Some(slot) && now.slots[slot] == head.slots[slot];
        stretch.snapshot.is_none_or(same) && now.base.bytes <= stretch.begin.bytes
    }

    /// What came since a position, read inside a step: nobody writes meanwhile.
    fn read_inside(&mut self, from: Position) -> Result<Since, StoreError> {
        self.step(|log, file, head| match log.find_again(file, &head, from)? {
            Found::Forked => Ok(Since::Forked),
            found => log.tail(file, &head, &Self::stretch(&head, &found), &[]).map(Since::Tail),
        })
    }

    /// Where a position is; nowhere if another file is at the path since the last answer.
    fn find_again(
        &mut self,
        file: &PoolFile,
        head: &Head,
        from: Position,
    ) -> Result<Found, StoreError> {
        match std::mem::take(&mut self.replaced) && from != Position::START {
            true => Ok(Found::Forked),
            false => self.find(file, head, from),
        }
    }

    /// An error of the file system in the middle of a step. It can pass.
    pub(crate) fn cannot(&self, what: &str, error: io::Error) -> StoreError {
        let shown = self.path.display();
        StoreError::transient(format!("cannot {what} {shown}: {error}")).caused_by(error)
    }
}

impl Log for FileLog {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<Since, StoreError> {
        if bodies.is_empty() {
            return self.read(from);
        }
        let (file, head, found, records) = self.step(|log, file, head| {
            log.crowded |= from != head.end.at;
            let found = log.find_again(file, &head, from)?;
            let (head, records) = match found {
                Found::Forked => (head, Vec::new()),
                Found::At(_) | Found::Trimmed => log.put(file, &head, bodies)?,
            };
            Ok((Arc::clone(file), head, found, records))
        })?;
        self.let_others_run();
        if matches!(found, Found::Forked) {
            return Ok(Since::Forked);
        }
        let stretch = Self::stretch(&head, &found);
        let ours = stretch.snapshot.is_none()
            && stretch.begin.bytes + records.len() as u64 == head.end.bytes;
        let tail = self.tail(&file, &head, &stretch, &records)?;
        if ours || Self::was_kept(&file, &head, &stretch) {
            return Ok(Since::Tail(tail));
        }
        self.read_inside(from)
    }

    fn read(&mut self, from: Position) -> Result<Since, StoreError> {
        let file = self.opened()?;
        if !file.is_at(&self.path) {
            self.leave();
        }
        if self.replaced {
            return self.read_inside(from);
        }
        let head = match file.heads().map_err(|error| self.cannot("read", error))? {
            Heads::Whole(head) => head,
            // Perhaps it is just being written.
            Heads::One(_) | Heads::None => return self.read_inside(from),
        };
        let same_start = head.origin.boot_id == self.store.time.boot_id;
        if head.semantics != SEMANTICS || !same_start {
            return self.read_inside(from);
        }
        match self.find(&file, &head, from) {
            Ok(found @ (Found::At(_) | Found::Trimmed)) => {
                let stretch = Self::stretch(&head, &found);
                let tail = self.tail(&file, &head, &stretch, &[])?;
                let empty = stretch.snapshot.is_none() && stretch.begin == head.end;
                match empty || Self::was_kept(&file, &head, &stretch) {
                    true => Ok(Since::Tail(tail)),
                    false => self.read_inside(from),
                }
            }
            Ok(Found::Forked) | Err(_) => self.read_inside(from),
        }
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.step(|log, file, head| {
            let at = snapshot.mark.at;
            let behind = head.snapshot().is_some_and(|slot| at.number <= slot.of.at.number);
            if behind {
                return Ok(());
            }
            match log.find(file, &head, at)? {
                Found::At(spot) => log.put_snapshot(file, &head, spot, snapshot).map(drop),
                Found::Trimmed | Found::Forked => Ok(()),
            }
        })
    }

    fn is_current(&self) -> Option<bool> {
        Some(self.open.as_ref().is_some_and(|file| file.is_at(&self.path)))
    }

    fn wake(&self, sessions: &[u64]) {
        self.store.sessions.wake(sessions);
    }

    fn set_aside(&mut self) -> Result<bool, StoreError> {
        if !self.mends {
            return Ok(false);
        }
        let before = self.open.clone();
        self.step(|log, file, head| {
            let replaced = before.is_some_and(|before| !Arc::ptr_eq(&before, file));
            if replaced {
                return Ok(true);
            }
            let Some(what) = log.examine(file, &head)? else { return Ok(false) };
            log.begin_anew(file, &what)?;
            log.leave();
            Ok(true)
        })
    }
}

impl fmt::Debug for FileLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileLog").field("path", &self.path).finish_non_exhaustive()
    }
}

fn as_size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// How long a step waits after one that was not let in.
const ONCE_MORE: Duration = Duration::from_millis(50);
/// How many steps in a row are one turn while others want theirs.
const TURN: u32 = 64;
/// How often a step begins again because the file was replaced meanwhile.
const ATTEMPTS: usize = 8;

#[cfg(test)]
mod tests;
