//! The events of a story, one after the other, each with its moment.

use standpipe_core::{
    Action, Amounts, CalendarReset, Commit, Event, Hit, Instant, Key, LimitId, Observed, Owner,
    PoolRef, Reading, Recovered, Reserve, Span, ThrottleKind, Throttled, bounds,
};

use crate::bytes::Bytes;
use crate::config::configure;
use crate::values::{agent, amount, amounts, maybe_span, priority, span, step, text, unit};

/// How many sessions there are, and how many keys back an event may refer to.
const SESSIONS: usize = 4;
const REMEMBERED: usize = 16;

/// A story: an iterator over events and their moments. It begins with a configuration.
#[derive(Clone, Debug)]
pub struct Story<'a> {
    bytes: Bytes<'a>,
    now: Instant,
    /// The last event of each living session.
    sessions: [Key; SESSIONS],
    /// The latest reserves: what leases and tickets are named by.
    reserves: Vec<Key>,
    begun: bool,
}

impl<'a> Story<'a> {
    /// The story that these bytes tell.
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        let now = Instant(1_000_000);
        let bytes = Bytes::new(input);
        let mut sessions = [Key { session: 0, number: 0 }; SESSIONS];
        let mut place = 0;
        while place < SESSIONS {
            sessions[place].session = place as u64 + 1;
            place += 1;
        }
        Self { bytes, now, sessions, reserves: Vec::new(), begun: false }
    }

    /// Mostly the next number of one of few sessions; now and then a copy, a gap or a stranger.
    fn key(&mut self) -> Key {
        let choice = self.bytes.byte();
        let place = usize::from(choice) % SESSIONS;
        match choice {
            0..=223 => self.sessions[place].number += 1,
            224..=231 => {}
            232..=239 => self.sessions[place].number += 1 << 40,
            240..=247 => {
                self.renew(place);
                self.sessions[place].number = 1;
            }
            _ => return Key { session: self.bytes.word(), number: self.bytes.word() },
        }
        self.sessions[place]
    }

    /// The process goes on under another session.
    const fn renew(&mut self, place: usize) {
        self.sessions[place].session += SESSIONS as u64;
        self.sessions[place].number = 0;
    }

    /// Mostly a reserve of this story; now and then one that never was.
    fn lease(&mut self) -> Key {
        let choice = usize::from(self.bytes.byte());
        let known = self.reserves.iter().rev().nth(choice % REMEMBERED).copied();
        known.filter(|_| choice < 240).unwrap_or(Key { session: 1, number: choice as u64 })
    }

    fn maybe_lease(&mut self) -> Option<Key> {
        self.bytes.one_in(2).then(|| self.lease())
    }

    fn action(&mut self, key: Key) -> Action {
        match self.bytes.below(32) {
            0..=9 => {
                let ticket = self.bytes.one_in(3).then(|| self.lease());
                let retry_of = self.bytes.one_in(16).then(|| self.lease());
                self.remember(key);
                Action::Reserve(Box::new(reserve(&mut self.bytes, ticket, retry_of)))
            }
            10..=15 => self.commit(),
            16 => Action::Cancel { lease: self.lease() },
            17 => Action::Redate { lease: self.lease() },
            18 if self.bytes.one_in(2) => Action::Withdraw { lease: self.lease() },
            18 => Action::Leave { ticket: self.lease() },
            19 => Action::Throttled(self.throttled()),
            20 | 21 => self.observed(),
            22 | 23 => {
                let lease = self.maybe_lease();
                Action::Heartbeat { lease, ttl: maybe_span(&mut self.bytes) }
            }
            24 => {
                let place = usize::from(self.bytes.below(SESSIONS as u8));
                let session = self.sessions[place].session;
                self.renew(place);
                Action::SessionEnded { session }
            }
            25 => Action::OwnerEnded { lease: self.lease() },
            26 | 27 => Action::Configure(Box::new(configure(&mut self.bytes))),
            28 => {
                let by = self.bytes.one_in(2).then(|| agent(&mut self.bytes));
                Action::Pause { length: span(&mut self.bytes), by }
            }
            29 => Action::Resume { by: self.bytes.one_in(2).then(|| agent(&mut self.bytes)) },
            30 => Action::Recovered(self.recovered()),
            _ if self.bytes.one_in(4) => Action::Forgotten,
            _ if self.bytes.one_in(2) => {
                let (left, day) = (span(&mut self.bytes), Span::secs(86_400));
                let since = Span(day.0.saturating_sub(left.0));
                let limit = LimitId::Window(unit(&mut self.bytes), day);
                Action::Calendar { resets: vec![CalendarReset { limit, since, left }] }
            }
            _ => Action::Resume { by: None },
        }
    }

    fn remember(&mut self, key: Key) {
        if self.reserves.len() == REMEMBERED {
            self.reserves.remove(0);
        }
        self.reserves.push(key);
    }

    fn commit(&mut self) -> Action {
        let lease = self.lease();
        let used = amounts(&mut self.bytes);
        let flags = self.bytes.byte();
        Action::Commit(Commit { lease, used, progress: flags & 3 == 3, refused: flags & 12 == 12 })
    }

    fn throttled(&mut self) -> Throttled {
        let kinds = [
            ThrottleKind::Quota,
            ThrottleKind::Concurrency,
            ThrottleKind::SlowDown,
            ThrottleKind::Overload,
            ThrottleKind::Terminal,
        ];
        Throttled {
            lease: self.maybe_lease(),
            agent: self.bytes.one_in(2).then(|| agent(&mut self.bytes)),
            kind: self.bytes.pick(&kinds).unwrap_or(ThrottleKind::Quota),
            retry_after: maybe_span(&mut self.bytes),
            hit: self
                .bytes
                .one_in(4)
                .then(|| Hit { unit: unit(&mut self.bytes), period: maybe_span(&mut self.bytes) }),
        }
    }

    fn observed(&mut self) -> Action {
        let lease = self.maybe_lease();
        let count = self.bytes.below(4);
        let readings = (0..count).map(|_| reading(&mut self.bytes)).collect();
        Action::Observed(Observed { lease, readings })
    }

    fn recovered(&mut self) -> Recovered {
        match self.bytes.below(4) {
            0 | 1 => {
                let lease = self.key();
                self.remember(lease);
                let reserve = Box::new(reserve(&mut self.bytes, None, None));
                Recovered::Reserve { lease, reserve }
            }
            2 => Recovered::Commit { lease: self.lease() },
            _ => Recovered::Throttled(self.throttled()),
        }
    }
}

impl Iterator for Story<'_> {
    type Item = (Event, Instant);

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let step = step(&mut self.bytes);
        // No store stamps with the last instant, which stands for never.
        self.now = (self.now + step).min(Instant(Instant::NEVER.0 - 1));
        if step >= bounds::SILENCE {
            // All have been silent for too long; one of them does not know it.
            (1..SESSIONS).for_each(|place| self.renew(place));
        }
        let key = self.key();
        let action = if self.begun {
            self.action(key)
        } else {
            Action::Configure(Box::new(configure(&mut self.bytes)))
        };
        self.begun = true;
        Some((Event { key, action }, self.now))
    }
}

/// A reserve, for a ticket or for the retry of a call if these are given.
pub fn reserve(bytes: &mut Bytes<'_>, ticket: Option<Key>, retry_of: Option<Key>) -> Reserve {
    let flags = bytes.byte();
    let rare = |bits: u8| flags & bits == bits;
    let owner = rare(12).then(|| Owner { pid: 1, started: u64::from(bytes.byte()) });
    Reserve {
        agent: agent(bytes),
        priority: priority(bytes),
        cost: amounts(bytes),
        patience: span(bytes),
        ttl: rare(3).then(|| span(bytes)),
        owner,
        id: rare(48).then(|| text(bytes)).flatten(),
        model: rare(192).then(|| text(bytes)).flatten(),
        task: rare(192).then(|| text(bytes)).flatten(),
        retry_of,
        ticket,
        hold: rare(15).then(|| span(bytes)),
        bytes: rare(5).then(|| amount(bytes)),
        part_of: if rare(10) { PoolRef::new("a/b") } else { None },
        at_most: if rare(9) { amounts(bytes) } else { Amounts::default() },
    }
}

fn reading(bytes: &mut Bytes<'_>) -> Reading {
    let unit = unit(bytes);
    let flags = bytes.byte();
    let has = |bit: u8| flags & bit == bit;
    Reading {
        unit,
        period: has(1).then(|| span(bytes)),
        limit: has(2).then(|| amount(bytes)),
        remaining: has(4).then(|| amount(bytes)),
        coarse: if has(16) { amount(bytes) } else { 1 },
        reset_in: has(8).then(|| span(bytes)),
        full_in: has(32).then(|| span(bytes)),
    }
}
