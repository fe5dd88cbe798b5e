//! Writes events on a thread of its own.
//!
//! The queue is bounded. Events that do not fit or cannot be written are dropped and counted: a
//! full disk never delays or fails a call. `close` writes what is left.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant as Local};

use standpipe_store::PoolName;

use super::batch::{UsageBatch, UsageChange, UsageKey};
use super::{Event, EventData, JournalDirectory, WaitPart};
use crate::time::Timestamp;

/// The most events in the queue.
const MOST: usize = 4_096;
/// How long to wait for more before writing, so that many become one write.
const BATCH_FOR: Duration = Duration::from_millis(50);
/// How long `close` waits for a write that is under way.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Takes events and writes them on a thread of its own.
#[derive(Debug, Default)]
pub struct Writer {
    shared: Arc<WriterQueue>,
}

#[derive(Debug, Default)]
struct WriterQueue {
    place: OnceLock<JournalDirectory>,
    state: Mutex<State>,
    changed: Condvar,
    lost: AtomicU64,
    /// Dropped events that no `lost` line reports yet.
    unreported: AtomicU64,
    /// What agents used since the last lines of usage.
    batch: Mutex<UsageBatch>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Event>,
    started: bool,
    closed: bool,
    writing: bool,
}

impl Writer {
    /// Sets the directory to write to. Only the first call has an effect.
    pub fn write_to(&self, place: &JournalDirectory) {
        let _ = self.shared.place.set(place.clone());
    }

    /// Returns how many events were dropped, because there were too many or they could not be
    /// written.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Queues an event to be written.
    pub fn note(&self, pool: &PoolName, what: EventData) {
        self.note_at(Timestamp::now(), pool, what);
    }

    /// Queues an event of an earlier time to be written.
    pub fn note_at(&self, at: Timestamp, pool: &PoolName, what: EventData) {
        if self.is_kept() {
            self.queue(vec![Event { at, pool: pool.to_string(), what }]);
        }
    }

    /// Returns whether there is a directory to write to.
    pub fn is_kept(&self) -> bool {
        self.shared.place.get().is_some()
    }

    /// Adds up what an agent used. It is written down every ten seconds or so: by the next call
    /// that adds something, by the maintenance thread, or at the end of the process. The first
    /// change of a batch returns when the batch is due.
    pub fn used<'a>(
        &self,
        key: UsageKey<'_>,
        uses: impl IntoIterator<Item = UsageChange<'a>>,
    ) -> Option<Local> {
        if !self.is_kept() {
            return None;
        }
        let mut batch = self.shared.batch();
        let before = batch.due();
        let lines = batch.add(Timestamp::now(), key, uses);
        let due = batch.due().filter(|_| before.is_none() || !lines.is_empty());
        drop(batch);
        self.queue(lines);
        due
    }

    /// Adds up calls that were not admitted. They are written with what agents used.
    pub fn refused(&self, pool: &PoolName, what: EventData) {
        if self.is_kept() {
            let event = Event { at: Timestamp::now(), pool: pool.to_string(), what };
            self.shared.batch().refuse(event);
        }
    }

    /// Queues the batch of usage if it is due, else returns when it will be.
    pub fn see_to_usage(&self, now: Local) -> Option<Local> {
        let mut batch = self.shared.batch();
        let due = batch.due()?;
        if due > now {
            return Some(due);
        }
        let lines = batch.take(Timestamp::now());
        drop(batch);
        self.queue(lines);
        None
    }

    fn queue(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        let room = MOST.saturating_sub(state.queue.len());
        self.shared.lose(events.len().saturating_sub(room));
        state.queue.extend(events.into_iter().take(room));
        if !state.started && !state.closed {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("standpipe-journal".to_owned());
            // Without a thread it is written when the process is done.
            state.started = thread.spawn(move || shared.run()).is_ok();
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Writes what is left, and no more after that.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        self.flush();
    }

    /// Writes everything that was noted and added up so far.
    pub fn flush(&self) {
        let state = self.shared.lock();
        let waits =
            self.shared.changed.wait_timeout_while(state, CLOSE_TIMEOUT, |state| state.writing);
        let mut state = waits.unwrap_or_else(PoisonError::into_inner).0;
        let mut events = std::mem::take(&mut state.queue);
        drop(state);
        events.extend(self.shared.batch().take(Timestamp::now()));
        self.shared.write(events);
    }
}

impl WriterQueue {
    fn run(&self) {
        loop {
            let state = self.lock();
            let empty = |state: &mut State| state.queue.is_empty() && !state.closed;
            let waits = self.changed.wait_while(state, empty);
            let state = waits.unwrap_or_else(PoisonError::into_inner);
            let few = |state: &mut State| state.queue.len() < MOST / 2 && !state.closed;
            let waits = self.changed.wait_timeout_while(state, BATCH_FOR, few);
            let mut state = waits.unwrap_or_else(PoisonError::into_inner).0;
            if state.closed {
                return;
            }
            state.writing = true;
            let events = std::mem::take(&mut state.queue);
            drop(state);
            self.write(events);
            self.lock().writing = false;
            self.changed.notify_all();
        }
    }

    fn write(&self, events: VecDeque<Event>) {
        let Some(place) = self.place.get().filter(|_| !events.is_empty()) else { return };
        let (mut events, at) = (joined(events), Timestamp::now());
        let lines = self.unreported.swap(0, Ordering::Relaxed);
        if lines > 0 {
            events.push(Event { at, pool: "*".to_owned(), what: EventData::Lost { lines } });
        }
        if place.add(&events, at).is_err() {
            self.unreported.fetch_add(lines, Ordering::Relaxed);
            self.lose(events.len() - usize::from(lines > 0));
        }
    }

    /// So many events are not written.
    fn lose(&self, events: usize) {
        self.lost.fetch_add(events as u64, Ordering::Relaxed);
        self.unreported.fetch_add(events as u64, Ordering::Relaxed);
    }

    fn batch(&self) -> MutexGuard<'_, UsageBatch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits that are alike become one line.
fn joined(events: VecDeque<Event>) -> Vec<Event> {
    let mut lines: Vec<Event> = Vec::with_capacity(events.len());
    for event in events {
        let alike = lines.iter_mut().rev().take(LOOK_BACK).any(|line| join(line, &event));
        if !alike {
            lines.push(event);
        }
    }
    lines
}

/// How far back a like wait is looked for.
const LOOK_BACK: usize = 32;

fn join(line: &mut Event, event: &Event) -> bool {
    let same_pool = line.pool == event.pool;
    match (&mut line.what, &event.what) {
        (
            EventData::Wait {
                agent,
                model,
                priority,
                reason,
                limit,
                also,
                ended,
                next,
                refused_for,
                count,
                waited_ms,
                longest_ms,
                ..
            },
            EventData::Wait {
                agent: who,
                model: which,
                priority: tier,
                reason: why,
                limit: what,
                also: others,
                ended: how,
                next: then,
                refused_for: end,
                count: more,
                waited_ms: waited,
                longest_ms: longest,
                ..
            },
        ) if same_pool
            && (&*agent, &*model, &*priority) == (who, which, tier)
            && (&*reason, &*limit, &*refused_for) == (why, what, end)
            && (&*ended, &*next) == (how, then) =>
        {
            *count = count.saturating_add(*more);
            *waited_ms = waited_ms.saturating_add(*waited);
            *longest_ms = (*longest_ms).max(*longest);
            WaitPart::add(also, others);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{EventKind, Journal};

    fn wait(agent: &str, waited_ms: u64) -> EventData {
        EventData::Wait {
            agent: agent.to_owned(),
            model: None,
            priority: None,
            reason: "limit".to_owned(),
            limit: None,
            used: None,
            usable: None,
            position: None,
            held_by: Vec::new(),
            also: Vec::new(),
            ended: "admitted".to_owned(),
            next: None,
            refused_for: None,
            count: 1,
            waited_ms,
            longest_ms: waited_ms,
        }
    }

    fn pool() -> PoolName {
        "a/b".parse().unwrap()
    }

    fn directory(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("standpipe-pen-{name}-{}", std::process::id()))
    }

    #[test]
    fn what_is_left_is_written_when_it_closes_and_like_waits_are_one_line() {
        let directory = directory("closes");
        let writer = Writer::default();
        writer.note(&pool(), wait("nobody", 1));
        writer.write_to(&JournalDirectory::new(directory.clone()));
        for (agent, waited) in [("blog", 30), ("data", 5), ("blog", 12)] {
            writer.note(&pool(), wait(agent, waited));
        }
        writer.close();
        let events = Journal::at(&directory).events(None, None);
        let kept: Vec<EventData> = events.map(|event| event.what).collect();
        let count = |agent: &str| {
            let mut waits = kept.iter().filter_map(|what| match what {
                EventData::Wait { agent: who, count, waited_ms, longest_ms, .. } => {
                    (who == agent).then_some((*count, *waited_ms, *longest_ms))
                }
                _ => None,
            });
            waits.next()
        };
        assert_eq!(count("blog"), Some((2, 42, 30)));
        assert_eq!(count("data"), Some((1, 5, 5)));
        assert_eq!((count("nobody"), writer.lost()), (None, 0));
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_other_reasons_of_like_waits_add_up() {
        let part = |waited_ms| {
            let mut what = wait("blog", 10);
            if let EventData::Wait { also, .. } = &mut what {
                also.push(WaitPart { reason: "pause".to_owned(), limit: None, waited_ms });
            }
            Event { at: Timestamp { millis: 0 }, pool: "a/b".to_owned(), what }
        };
        let lines = joined([part(3), part(4)].into());
        let [Event { what: EventData::Wait { also, count: 2, .. }, .. }] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert_eq!(also.iter().map(|part| part.waited_ms).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_counted_and_nothing_else() {
        let file = directory("blocked");
        std::fs::write(&file, b"in the way").unwrap();
        let writer = Writer::default();
        writer.write_to(&JournalDirectory::new(file.join("below")));
        writer.note(&pool(), wait("blog", 1));
        writer.close();
        assert_eq!(writer.lost(), 1);
        std::fs::remove_file(&file).unwrap();
        writer.note(&pool(), wait("blog", 1));
        writer.close();
        let events: Vec<Event> = Journal::at(file.join("below")).events(None, None).collect();
        let reported = events.iter().find(|event| event.what == EventData::Lost { lines: 1 });
        assert_eq!(
            reported.map(|event| event.pool.as_str()),
            Some("*"),
            "it is reported later: {events:?}"
        );
        std::fs::remove_dir_all(file).unwrap();
    }

    #[test]
    fn what_was_used_is_written_when_it_is_due_and_when_it_closes() {
        let directory = directory("usage");
        let (writer, pool) = (Writer::default(), pool());
        let key = UsageKey {
            pool: &pool,
            agent: "blog",
            model: None,
            tier: None,
            enforced: true,
            part: false,
        };
        let admitted = [UsageChange::Admitted { retry: false }];
        assert_eq!(writer.used(key, admitted), None, "nowhere to write to");
        writer.write_to(&JournalDirectory::new(directory.clone()));
        let due = writer.used(key, admitted).unwrap();
        assert_eq!(writer.used(key, admitted), None, "only the first change returns it");
        assert_eq!(writer.see_to_usage(Local::now()), Some(due));
        assert!(writer.shared.lock().queue.is_empty(), "not yet");
        assert_eq!(writer.see_to_usage(due), None);
        writer.used(key, admitted);
        writer.close();
        let lines = Journal::at(&directory).events(None, Some(EventKind::Usage));
        let calls: Vec<u64> = lines.map(|event| calls(&event.what)).collect();
        assert_eq!((calls, writer.lost()), (vec![2, 1], 0));
        std::fs::remove_dir_all(directory).unwrap();
    }

    fn calls(what: &EventData) -> u64 {
        match what {
            EventData::Usage(usage) => usage.calls,
            other => panic!("{other:?}"),
        }
    }
}
