//! The log of one pool on its server: the order of steps, and what is done when the server forgot
//! something.
//!
//! Three things can be missing. The pool: it is new, or, if this machine remembers one that has not
//! expired, it was lost, and its limits count as full. The last entries: the position of whoever
//! read them is not on the log any more, which is answered as forked. The server: another process
//! answers than before, after a restart or a failover, and may lack entries that somebody has
//! not missed yet; the first to write there pauses the pool for a moment, in which every living
//! process puts back what it has.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::{Cmd, Value, cmd};
use standpipe_core::{Action, Event, Instant, Key, SEMANTICS, Span};
use standpipe_store::member::random_session;
use standpipe_store::{Log, PoolName, Position, Replica, Since, Snapshot, StoreError, Tail, entry};

use crate::answer::{self, Answer, Done};
use crate::keys::{self, Keys};
use crate::link::Link;
use crate::marker::Marker;
use crate::record;
use crate::store::Shared;

/// The most that one call carries either way.
pub(crate) const PIECE: usize = 65_536;

/// For how long a pool is paused after its server changed.
pub(crate) const REJOIN: Span = Span::secs(2);

/// How often a step begins again because something was in its way.
const ATTEMPTS: usize = 8;

/// The log of one pool on its server.
pub struct RedisLog {
    pub(crate) store: Arc<Shared>,
    pub(crate) pool: PoolName,
    pub(crate) keys: Keys,
    pub(crate) link: Mutex<Link>,
    /// The id of the log, as the last answer had it.
    pub(crate) id: String,
    /// A place in it that this process has been to.
    known: Option<Spot>,
    marker: Marker,
    /// For how many milliseconds of silence the keys are kept.
    lasts: u64,
    /// Which connection the last answer came over, and how often the listener had lost its own.
    heard_over: (u64, u64),
}

/// A position, and how many bytes of records lie before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) at: Position,
    pub(crate) bytes: u64,
}

impl Spot {
    pub(crate) const START: Self = Self { at: Position::START, bytes: 0 };
}

/// What the first of the entries sent account for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    Nothing,
    Server,
    Loss,
}

impl RedisLog {
    pub(crate) fn new(store: Arc<Shared>, pool: PoolName) -> Self {
        let keys = Keys::new(&store.options.prefix, &pool);
        let link = Mutex::new(Link::new(Arc::clone(&store.address)));
        let marker = Marker::read(store.options.markers.as_deref(), &store.place, &keys, &pool);
        let lasts = SHORTEST.0 / 1_000;
        let (id, known, heard_over) = (String::new(), None, (0, 0));
        Self { store, pool, keys, link, id, known, marker, lasts, heard_over }
    }

    pub(crate) fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One step on the server.
    fn step(
        &self,
        from: Spot,
        bodies: &[Vec<u8>],
        begins: Option<&str>,
        account: For,
    ) -> Result<Answer, StoreError> {
        let mut link = self.link();
        let server = if bodies.is_empty() { String::new() } else { link.server()? };
        let asked = self.asked(from, account);
        let arguments = |command: &mut Cmd| {
            command.arg(4).arg(&self.keys.all()).arg(&asked).arg(format!("{server:40}"));
            command.arg(self.marker.id()).arg(begins.unwrap_or_default());
            for body in bodies {
                command.arg(record::sent(body));
            }
        };
        let replicas = if bodies.is_empty() { 0 } else { self.store.options.wait_replicas };
        let value = link.run(&self.store.scripts.append, arguments, replicas)?;
        answer::read(value).ok_or_else(|| {
            StoreError::transient(format!("{} gave an answer that is none", self.store.place))
        })
    }

    /// What the script is told in every step, packed.
    fn asked(&self, from: Spot, account: For) -> Vec<u8> {
        let given = self.store.given_time().map_or(0, |now| now.0 + 1);
        let words = [given, from.at.number, from.bytes, self.lasts, self.marker.expires()];
        let mut asked: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        asked.extend(u32::try_from(PIECE).unwrap_or(u32::MAX).to_le_bytes());
        asked.extend(SEMANTICS.to_le_bytes());
        asked.push(match account {
            For::Nothing => 0,
            For::Server => 1,
            For::Loss => 2,
        });
        asked.extend(record::digits(from.at.chain).as_bytes());
        asked
    }

    /// Appends these and answers what came since.
    fn steps(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<Since, StoreError> {
        let Some(spot) = self.spot(from)? else { return Ok(Since::Forked) };
        let (mut begins, mut account) = (None, For::Nothing);
        for _ in 0..ATTEMPTS {
            let first = self.accounting(account);
            let sent: Vec<Vec<u8>> = first.iter().chain(bodies).cloned().collect();
            match self.step(spot, &sent, begins.as_deref(), account)? {
                Answer::Done(done) => {
                    if begins.is_some() {
                        self.say_begun();
                    }
                    return self.tail(spot, &sent, *done);
                }
                Answer::Forked => return Ok(Since::Forked),
                Answer::Missing { .. } if from != Position::START => return Ok(Since::Forked),
                Answer::Missing { now } => {
                    let known = self.marker.is_known(now / 1_000);
                    if bodies.is_empty() && !known {
                        return Ok(Since::Tail(answer::empty(now)));
                    }
                    if known {
                        account = For::Loss;
                        self.lost();
                    }
                    begins = Some(format!("{:014x}", random_session()));
                }
                Answer::Another => {
                    account = For::Loss;
                    self.lost();
                }
                Answer::Changed => account = For::Server,
                Answer::Accounted => account = For::Nothing,
                Answer::Broken => return Err(self.broken()),
                Answer::Full => {
                    return Err(StoreError::transient(format!(
                        "the log of `{}` is full and no snapshot could be written; see the \
                         server's memory, or `standpipe store reset {}`",
                        self.pool, self.pool
                    )));
                }
                Answer::Semantics { theirs, last, now } => {
                    self.of_other_semantics(theirs, last, now)?;
                }
            }
        }
        Err(StoreError::transient(format!(
            "the keys of `{}` on {} are replaced again and again; see who writes there",
            self.pool, self.store.place
        )))
    }

    /// Whoever knew another log of this pool looks at once.
    pub(crate) fn say_begun(&self) {
        let channel = keys::begun(&self.store.options.prefix);
        self.link().send(cmd("PUBLISH").arg(channel).arg(self.pool.as_str()));
    }

    /// Where a position is in the log; none if it is not there.
    fn spot(&mut self, at: Position) -> Result<Option<Spot>, StoreError> {
        if at == Position::START {
            return Ok(Some(Spot::START));
        }
        if let Some(known) = self.known.filter(|known| known.at == at) {
            return Ok(Some(known));
        }
        self.find(at)
    }

    fn tail(&mut self, from: Spot, sent: &[Vec<u8>], done: Done) -> Result<Since, StoreError> {
        let own: u64 = sent.iter().map(|body| record::length(body)).sum();
        let before = done.head.bytes - own;
        let mut records = done.records;
        let got = done.begin + records.len() as u64;
        if got < before {
            match self.pieces_of_log(&done.id, got, before)? {
                Some(rest) => records.extend(rest),
                None => return self.steps(from.at, &[]),
            }
        }
        let snapshot = match (done.jumps, done.mark) {
            (Some(length), Some(mark)) if done.snapshot.len() as u64 != length => {
                match self.pieces_of_snapshot(&done.id, &mark, length)? {
                    Some(bytes) => Some(Snapshot { mark, bytes }),
                    None => return self.steps(from.at, &[]),
                }
            }
            (Some(_), Some(mark)) => Some(Snapshot { mark, bytes: done.snapshot }),
            _ => None,
        };
        let begin = snapshot.as_ref().map_or(from.at, |snapshot| snapshot.mark.at);
        let mut entries = record::entries(begin.chain, &records);
        for body in sent {
            entry::put(done.now, body, &mut entries);
        }
        self.remember(&done.id, done.expires, done.head);
        Ok(Since::Tail(Tail {
            snapshot,
            entries,
            head: done.head.at,
            now: done.now,
            mark: done.mark,
            snapshot_due: done.due,
        }))
    }

    fn remember(&mut self, id: &str, expires: u64, head: Spot) {
        if self.id != id {
            id.clone_into(&mut self.id);
        }
        self.known = Some(head);
        self.heard_over = self.connections();
        if self.marker.keep(id, expires) {
            self.store.list(&self.pool, expires);
        }
    }

    fn connections(&self) -> (u64, u64) {
        (self.link().generation(), self.store.listener.losses())
    }

    /// The pool was removed on purpose: nothing is to be remembered of it.
    pub(crate) fn forget(&mut self) {
        self.marker.remove();
    }

    fn lost(&self) {
        self.store.tell(format!(
            "`{}` was lost on {}; rates count as full and come back over one \
             period, slots after `lease_ttl`",
            self.pool, self.store.place
        ));
    }

    /// The entries that account for something.
    fn accounting(&self, account: For) -> Vec<Vec<u8>> {
        let action = match account {
            For::Nothing => return Vec::new(),
            For::Server => {
                self.store.tell(format!(
                    "another server process answers for {}; `{}` pauses for a moment so that \
                     everybody puts back what it may have lost",
                    self.store.place, self.pool
                ));
                Action::Pause { length: REJOIN }
            }
            For::Loss => Action::Forgotten,
        };
        let key = Key { session: random_session(), number: 1 };
        vec![entry::body(&Event { key, action })]
    }

    pub(crate) fn broken(&self) -> StoreError {
        StoreError::damaged(format!(
            "the keys of `{}` on {} do not belong together; some were removed or changed",
            self.pool, self.store.place
        ))
    }

    /// The pool was last used by a program that understands events differently.
    fn of_other_semantics(&mut self, theirs: u64, last: u64, now: u64) -> Result<(), StoreError> {
        let pool = &self.pool;
        if theirs > u64::from(SEMANTICS) {
            return Err(StoreError::foreign(format!(
                "`{pool}` is used by a newer Standpipe (semantics {theirs}, this one {SEMANTICS}); \
                 update this one"
            )));
        }
        let silent = Span(now.saturating_sub(last));
        if silent < standpipe_core::bounds::SILENCE {
            return Err(StoreError::foreign(format!(
                "`{pool}` was used by an older Standpipe {} s ago (semantics {theirs}, this one \
                 {SEMANTICS}); update or stop it everywhere, and wait until it was silent for 2 \
                 min",
                silent.0 / 1_000_000
            )));
        }
        self.put_aside("older")?;
        self.marker.insist();
        self.store.tell(format!(
            "`{pool}` was last used by an older Standpipe; its ledger is kept aside for a week, \
             its limits count as full and come back over one period"
        ));
        Ok(())
    }

    /// Puts the keys out of the way. Answers whether it did: nobody else has done so before.
    fn put_aside(&self, why: &str) -> Result<bool, StoreError> {
        let mut link = self.link();
        let read = link.call(cmd("HGET").arg(&self.keys.head).arg("h"))?;
        let seen = answer::bulk(read).unwrap_or_default();
        let aside = self.keys.aside(why, self.store.wall_millis());
        let arguments = |command: &mut Cmd| {
            command.arg(8).arg(&self.keys.all()).arg(&aside).arg(&seen);
        };
        let done = link.run(&self.store.scripts.aside, arguments, 0)?;
        Ok(done == Value::Int(1))
    }
}

impl Log for RedisLog {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<Since, StoreError> {
        self.steps(from, bodies)
    }

    fn read(&mut self, from: Position) -> Result<Since, StoreError> {
        self.steps(from, &[])
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let Some(spot) = self.spot(snapshot.mark.at)? else { return Ok(()) };
        self.keep_snapshot(spot, snapshot)
    }

    fn set_aside(&mut self) -> Result<bool, StoreError> {
        if !self.store.options.mends {
            return Ok(false);
        }
        let id = self.id.clone();
        match Replica::new().catch_up(self, |_, _, _| ()) {
            Err(error) if error.is_damaged() => {}
            // It was damaged on the way only, or somebody else has seen to it.
            Ok(_) => return Ok(self.id != id),
            Err(error) => return Err(error),
        }
        if self.put_aside("damaged")? {
            self.store.tell(format!(
                "the ledger of `{}` on {} is damaged. It is kept for a week as `{}:damaged:…`; \
                 the pool begins anew, its limits count as full and come back over one period",
                self.pool,
                self.store.place,
                self.keys.base()
            ));
        }
        self.marker.insist();
        self.known = None;
        Ok(true)
    }

    /// Whether the connection it last heard something over is still there.
    fn is_current(&self) -> Option<bool> {
        Some(self.id.is_empty() || self.connections() == self.heard_over)
    }

    fn lasts(&mut self, silent: Span) {
        self.lasts = silent.max(SHORTEST).0 / 1_000;
    }

    fn wake(&self, sessions: &[u64]) {
        let mut channels: Vec<String> =
            sessions.iter().map(|id| keys::channel(&self.store.options.prefix, *id)).collect();
        channels.dedup();
        let mut link = self.link();
        for channel in channels {
            link.send(cmd("PUBLISH").arg(channel).arg(""));
        }
    }

    fn chain(&self, chain: u64, stamp: Instant, body: &[u8]) -> u64 {
        record::chain(chain, stamp, body)
    }
}

/// Keys are kept for at least so long, so that what is rounded anywhere does not matter.
const SHORTEST: Span = Span::secs(3_600);

impl fmt::Debug for RedisLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLog").field("pool", &self.pool).finish_non_exhaustive()
    }
}
