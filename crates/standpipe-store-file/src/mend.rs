//! Making a pool's file, and everything that can be wrong with one.
//!
//! A file that is not as it was written is kept aside, never deleted, and the pool begins anew with
//! limits that count as full: what cannot be read counts as used. All of it happens inside a step,
//! or on a file that nobody else can see yet.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use standpipe_core::{Action, Configure, Event, Facts, Holder, Instant, Key, SEMANTICS, Source};
use standpipe_store::entry::Content;
use standpipe_store::member::random_session;
use standpipe_store::{Position, Replica, Since, Snapshot, StoreError, Tail, entry};

use crate::directory::cannot;
use crate::head::{Head, Label, Slot, Spot, encode_label};
use crate::lock::{self, Waiter};
use crate::log::FileLog;
use crate::point;
use crate::pool_file::{PoolFile, take_record};
use crate::sys;
use crate::time::Origin;

impl FileLog {
    /// The pool's file. A missing one is made; one that is not a pool's is set aside.
    pub(crate) fn open_or_make(&mut self) -> Result<PoolFile, StoreError> {
        for _ in 0..ATTEMPTS {
            let file = match PoolFile::open(&self.path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.make_if_missing()?;
                    continue;
                }
                Err(error) => return Err(cannot("open", &self.path, error)),
            };
            match file.label().map_err(|error| cannot("read", &self.path, error))? {
                Label::Pool(name) if name == self.pool.as_str() => return Ok(file),
                Label::Pool(name) => {
                    return Err(StoreError::unusable(format!(
                        "{} is the ledger of `{name}`, not of `{}`; move it away",
                        self.path.display(),
                        self.pool
                    )));
                }
                Label::Newer(format) => {
                    return Err(StoreError::foreign(format!(
                        "{} was written by a newer Standpipe (format {format}); update this one",
                        self.path.display()
                    )));
                }
                Label::Unreadable => self.set_label_aside(&file)?,
            }
        }
        Err(StoreError::transient(format!("{} comes and goes", self.path.display())))
    }

    /// The label cannot be read: looked at again under the lock, then set aside.
    fn set_label_aside(&mut self, file: &PoolFile) -> Result<(), StoreError> {
        let patience = self.store.patience;
        let _locked = lock::take(&file.file, &self.path, &self.pool, &Waiter::default(), patience)?;
        let unreadable = matches!(file.label(), Ok(Label::Unreadable));
        if unreadable && file.is_at(&self.path) {
            self.begin_anew(file, "it does not begin as a pool's file does")?;
        }
        Ok(())
    }

    /// Makes the pool's file. One that was there once and is gone was lost: its limits are full.
    fn make_if_missing(&self) -> Result<(), StoreError> {
        if !self.marker().exists() {
            return self.make(&[]);
        }
        self.store.tell(format!(
            "the ledger of `{}` was deleted; its limits count as full and come back over one \
             period",
            self.pool
        ));
        self.make(&[Action::Forgotten])
    }

    /// Makes the pool's file with these first events, unless somebody else was faster.
    fn make(&self, events: &[Action]) -> Result<(), StoreError> {
        let bodies = bodies(random_session(), events);
        let begin = |file: &PoolFile, head: Head| match bodies.is_empty() {
            true => Ok(()),
            false => self.put(file, &head, &bodies).map(drop),
        };
        self.make_from(self.store.time.first_origin(), begin).map(drop)
    }

    /// Makes the pool's file as it was in another store: it goes on from this snapshot, made at
    /// this moment of that store's clock. Answers `false` if there is one already.
    pub(crate) fn take_over(&self, snapshot: &Snapshot, now: Instant) -> Result<bool, StoreError> {
        let begin = |file: &PoolFile, mut head: Head| {
            let spot = Spot { at: snapshot.mark.at, bytes: 0 };
            (head.base, head.end) = (spot, spot);
            self.put_snapshot(file, &head, spot, snapshot).map(drop)
        };
        self.make_from(self.store.time.origin_at(now), begin)
    }

    /// Makes the pool's file with what `begin` writes into it. Answers whether it did, and nobody
    /// else was faster.
    fn make_from(
        &self,
        origin: Origin,
        begin: impl FnOnce(&PoolFile, Head) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let draft = self.path.with_extension(format!("{:014x}.new", random_session()));
        let linked = self.write_draft(&draft, origin, begin).and_then(|()| {
            point::reach("pool written");
            match fs::hard_link(&draft, &self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                linked => linked.map(|()| true),
            }
        });
        let _ = fs::remove_file(&draft);
        let linked = linked.map_err(|error| cannot("make", &self.path, error))?;
        point::reach("pool linked");
        // From now on a missing file is a lost one.
        match self.store.directory.create(&self.marker()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(cannot("make", &self.marker(), error))
            }
            _ => Ok(linked),
        }
    }

    fn write_draft(
        &self,
        draft: &Path,
        origin: Origin,
        begin: impl FnOnce(&PoolFile, Head) -> Result<(), StoreError>,
    ) -> io::Result<()> {
        let (time, sizes) = (&self.store.time, self.store.sizes);
        let mut head = Head::first(sizes, SEMANTICS, time.now(origin), origin);
        let file = PoolFile::of(self.store.directory.create(draft)?)?;
        sys::preallocate(&file.file, head.file_size())?;
        std::os::unix::fs::FileExt::write_all_at(&file.file, &encode_label(&self.pool), 0)?;
        file.write_head(&head)?;
        head.sequence += 1;
        file.write_head(&head)?;
        begin(&file, head).map_err(io::Error::other)
    }

    /// Keeps a damaged file aside and puts a new one in its place. The configuration is carried
    /// over if it can still be read.
    pub(crate) fn begin_anew(&self, file: &PoolFile, what: &str) -> Result<(), StoreError> {
        let aside = self.name_aside("damaged");
        let salvaged = self.salvage(file);
        fs::rename(&self.path, &aside).map_err(|error| cannot("set aside", &self.path, error))?;
        point::reach("damage set aside");
        self.store.tell(format!(
            "the ledger of `{}` is damaged: {what}. It is kept as {}; the pool begins anew, its \
             limits count as full and come back over one period",
            self.pool,
            aside.display()
        ));
        let mut events = vec![Action::Forgotten];
        events.splice(0..0, salvaged.map(|configure| Action::Configure(Box::new(configure))));
        self.make(&events)
    }

    /// A name for a file that is set aside. The oldest beyond a few are deleted.
    fn name_aside(&self, why: &str) -> PathBuf {
        let stem = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ours = |name: &str| name.starts_with(&format!("{stem}.{why}-"));
        let entries = self.path.parent().and_then(|parent| fs::read_dir(parent).ok());
        let mut kept: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.file_name().is_some_and(|name| ours(&name.to_string_lossy())))
            .collect();
        kept.sort();
        for old in kept.iter().rev().skip(ASIDE - 1) {
            let _ = fs::remove_file(old);
        }
        self.path.with_file_name(format!("{stem}.{why}-{:016}", sys::wall_micros()))
    }

    /// The configuration, from whatever of the file can still be read.
    fn salvage(&self, file: &PoolFile) -> Option<Configure> {
        let heads = file.heads().ok()?;
        let (crate::pool_file::Heads::Whole(head) | crate::pool_file::Heads::One(head)) = heads
        else {
            return None;
        };
        let snapshots = [head.latest, head.latest.map(|latest| 1 - latest)].into_iter().flatten();
        let loaded = snapshots
            .filter_map(|slot| Replica::load(&file.snapshot(&head.slots[slot]).ok()?).ok())
            .next();
        let begin = head.snapshot().map_or(head.base, |slot| slot.of);
        let later = self.configured_since(file, &head, begin.bytes);
        later.or_else(|| configuration(loaded?.state().facts()))
    }

    fn configured_since(&self, file: &PoolFile, head: &Head, from: u64) -> Option<Configure> {
        let bytes = file.read_log(head, from, head.end.bytes).ok()?;
        let (mut rest, mut found) = (bytes.as_slice(), None);
        while let Ok((record, behind)) = take_record(rest) {
            rest = behind;
            if let Content::Event(Event { action: Action::Configure(configure), .. }) =
                record.entry.content
            {
                found = Some(*configure);
            }
        }
        found
    }

    /// One head is not as it was written. The other is at most one step behind, and the log has
    /// what that step wrote: records whose chain goes on.
    pub(crate) fn roll_forward(&self, file: &PoolFile, head: Head) -> Result<Head, StoreError> {
        let mut next = head;
        let upto = next.base.bytes.saturating_add(next.log_size);
        let bytes = file.read_log(&next, next.end.bytes, upto);
        let bytes = bytes.map_err(|error| self.cannot("read", error))?;
        let mut rest = bytes.as_slice();
        while let Ok((record, behind)) = take_record(rest)
            && let Ok(spot) = self.pass(next.end, &record)
        {
            next.stamp = next.stamp.max(record.entry.stamp);
            next.end = spot;
            rest = behind;
        }
        self.finish(file, &mut next)?;
        Ok(next)
    }

    /// Looks at everything a newcomer would read. Says what is wrong with it, if anything is.
    pub(crate) fn examine(
        &self,
        file: &PoolFile,
        head: &Head,
    ) -> Result<Option<String>, StoreError> {
        let tail = self.everything(file, head)?;
        match Replica::new().catch_up(&mut Once(self, Some(tail)), |_, _, _| ()) {
            Err(error) if error.is_damaged() => Ok(Some(error.to_string())),
            Err(error) => Err(error),
            Ok(_) => Ok(None),
        }
    }

    /// What a newcomer would read.
    fn everything(&self, file: &PoolFile, head: &Head) -> Result<Tail, StoreError> {
        let latest = head.snapshot();
        let cannot = |error| self.cannot("read", error);
        let begin = latest.map_or(head.base, |slot| slot.of);
        let records = file.read_log(head, begin.bytes, head.end.bytes).map_err(cannot)?;
        Ok(Tail {
            snapshot: latest.map(|slot| file.snapshot(slot).map_err(cannot)).transpose()?,
            entries: crate::pool_file::entries(&records),
            head: head.end.at,
            now: head.stamp,
            mark: latest.map(Slot::mark),
            snapshot_due: false,
        })
    }

    /// The machine was started anew: leases and tickets end, what was used is carried over.
    pub(crate) fn carry_over(&mut self, file: &PoolFile, head: Head) -> Result<Head, StoreError> {
        point::reach("restart noticed");
        let mut replica = Replica::new();
        let tail = self.everything(file, &head)?;
        replica.catch_up(&mut Once(self, Some(tail)), |_, _, _| ())?;
        let endings = endings(replica.state().facts());
        let mut next = head.clone();
        next.origin = self.store.time.carried(head.stamp, head.wall);
        let (next, _) = self.put(file, &next, &bodies(random_session(), &endings))?;
        Ok(next)
    }

    /// The pool was last used by a program that understands events differently.
    pub(crate) fn of_other_semantics(
        &mut self,
        file: &PoolFile,
        head: Head,
    ) -> Result<Option<Head>, StoreError> {
        let (theirs, pool) = (head.semantics, self.pool.clone());
        if theirs > SEMANTICS {
            return Err(StoreError::foreign(format!(
                "`{pool}` is used by a newer Standpipe (semantics {theirs}, this one {SEMANTICS}); \
                 update this one"
            )));
        }
        let living = self.store.sessions.living();
        if !living.is_empty() {
            let pids: Vec<String> = living.iter().map(ToString::to_string).collect();
            return Err(StoreError::foreign(format!(
                "`{pool}` is used by an older Standpipe (semantics {theirs}, this one \
                 {SEMANTICS}); end these processes or update them first: {}",
                pids.join(", ")
            )));
        }
        let aside = self.name_aside("older");
        let salvaged = self.salvage(file);
        fs::rename(&self.path, &aside).map_err(|error| cannot("set aside", &self.path, error))?;
        self.store.tell(format!(
            "`{pool}` was last used by an older Standpipe; its ledger is kept as {}, its limits \
             count as full and come back over one period",
            aside.display()
        ));
        let configured = salvaged.map(|configure| Action::Configure(Box::new(configure)));
        let events: Vec<Action> = configured.into_iter().chain([Action::Forgotten]).collect();
        self.make(&events)?;
        Ok(None)
    }

    /// What says that the pool's file was there once.
    pub(crate) fn marker(&self) -> PathBuf {
        self.path.with_extension("known")
    }
}

/// What ends with the machine: sessions with all they hold, leases that live by themselves, and
/// tickets that only an id keeps.
fn endings(facts: &Facts) -> Vec<Action> {
    let living = facts.sessions.iter().filter(|(_, known)| !known.ended);
    let sessions = living.map(|(session, _)| Action::SessionEnded { session: *session });
    let alone = facts.leases.iter().filter(|(_, lease)| matches!(lease.holder, Holder::Ttl { .. }));
    let leases = alone.map(|(lease, _)| Action::OwnerEnded { lease: *lease });
    let waiting = facts.tickets.values().filter(|ticket| ticket.session.is_none());
    let tickets = waiting.map(|ticket| Action::Cancel { lease: ticket.key });
    sessions.chain(leases).chain(tickets).collect()
}

/// How to say again what a ledger was told about itself.
fn configuration(facts: &Facts) -> Option<Configure> {
    let config = facts.config.clone()?;
    let from = facts.provenance;
    let source = match from.file {
        true => Source::File { version: from.version, written: from.written },
        false if from.changes > 0 => Source::Change,
        false => Source::Code,
    };
    Some(Configure { source, config })
}

fn bodies(session: u64, events: &[Action]) -> Vec<Vec<u8>> {
    let numbered = events.iter().zip(1..);
    let event = |(action, number): (&Action, u64)| Event {
        key: Key { session, number },
        action: action.clone(),
    };
    numbered.map(|each| entry::body(&event(each))).collect()
}

/// A log that answers one read with what was read inside a step.
struct Once<'a>(&'a FileLog, Option<Tail>);

impl standpipe_store::Log for Once<'_> {
    fn append(&mut self, _from: Position, _bodies: &[Vec<u8>]) -> Result<Since, StoreError> {
        Err(StoreError::unusable("this is only read"))
    }

    fn read(&mut self, _from: Position) -> Result<Since, StoreError> {
        let tail = self.1.as_ref().ok_or_else(|| StoreError::unusable("this is only read once"))?;
        Ok(Since::Tail(tail.clone()))
    }

    fn write_snapshot(&mut self, _snapshot: &standpipe_store::Snapshot) -> Result<(), StoreError> {
        Ok(())
    }

    fn chain(&self, chain: u64, stamp: standpipe_core::Instant, body: &[u8]) -> u64 {
        self.0.chain(chain, stamp, body)
    }
}

/// How often the file may come and go while it is opened.
const ATTEMPTS: usize = 8;
/// How many damaged files are kept.
const ASIDE: usize = 4;
