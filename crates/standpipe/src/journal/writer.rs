//! The pen: takes events from those who decide, and writes them on a thread of its own.
//!
//! The queue is bounded. What does not fit is dropped and counted, and so is what cannot be
//! written: a full disk is nobody's reason to make no call. When the process is done, what is left
//! is written by whoever closes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant as Local};

use standpipe_store::PoolName;

use super::gather::{Gather, Use, Whose};
use super::{Event, Place, What};
use crate::moment::Moment;

/// How many events wait at most.
const MOST: usize = 4_096;
/// How long to wait for more before writing, so that many become one write.
const GATHER: Duration = Duration::from_millis(50);
/// How long who closes waits for a write that is under way.
const CLOSING: Duration = Duration::from_secs(1);

/// Takes events and writes them on a thread of its own.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    desk: Arc<Desk>,
}

#[derive(Debug, Default)]
struct Desk {
    place: OnceLock<Place>,
    state: Mutex<State>,
    changed: Condvar,
    lost: AtomicU64,
    /// What of that was not written down either.
    untold: AtomicU64,
    /// What agents used since the last lines about it.
    gather: Mutex<Gather>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Event>,
    started: bool,
    closed: bool,
    writing: bool,
}

impl Writer {
    /// From now on there is a place to write to. The first one counts.
    pub(crate) fn write_to(&self, place: &Place) {
        let _ = self.desk.place.set(place.clone());
    }

    /// How many events were dropped, because there were too many or they could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.desk.lost.load(Ordering::Relaxed)
    }

    /// Writes this down, some time.
    pub(crate) fn note(&self, pool: &PoolName, what: What) {
        if self.desk.place.get().is_none() {
            return;
        }
        self.queue(vec![Event { at: Moment::now(), pool: pool.to_string(), what }]);
    }

    /// Whether there is a place to write to.
    pub(crate) fn is_kept(&self) -> bool {
        self.desk.place.get().is_some()
    }

    /// Adds up what an agent used. It is written down every ten seconds or so: by whoever next adds
    /// something, by the keeper, or when the process is done. With the first of a batch it answers
    /// when that is due.
    pub(crate) fn used<'a>(
        &self,
        whose: Whose<'_>,
        uses: impl IntoIterator<Item = Use<'a>>,
    ) -> Option<Local> {
        if !self.is_kept() {
            return None;
        }
        let mut gather = self.desk.gather();
        let before = gather.due();
        let lines = gather.add(Moment::now(), whose, uses);
        let due = gather.due().filter(|_| before.is_none() || !lines.is_empty());
        drop(gather);
        self.queue(lines);
        due
    }

    /// Writes down what was used if that is due, and answers when it will be.
    pub(crate) fn see_to_usage(&self, now: Local) -> Option<Local> {
        let mut gather = self.desk.gather();
        let due = gather.due()?;
        if due > now {
            return Some(due);
        }
        let lines = gather.take(Moment::now());
        drop(gather);
        self.queue(lines);
        None
    }

    fn queue(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let mut state = self.desk.lock();
        let room = MOST.saturating_sub(state.queue.len());
        self.desk.lose(events.len().saturating_sub(room));
        state.queue.extend(events.into_iter().take(room));
        if !state.started && !state.closed {
            let desk = Arc::clone(&self.desk);
            let thread = std::thread::Builder::new().name("standpipe-journal".to_owned());
            // Without a thread it is written when the process is done.
            state.started = thread.spawn(move || desk.run()).is_ok();
        }
        drop(state);
        self.desk.changed.notify_all();
    }

    /// Writes what is left, and no more after that.
    pub(crate) fn close(&self) {
        self.desk.lock().closed = true;
        self.desk.changed.notify_all();
        self.flush();
    }

    /// Writes everything that was noted and added up so far.
    pub(crate) fn flush(&self) {
        let state = self.desk.lock();
        let waits = self.desk.changed.wait_timeout_while(state, CLOSING, |state| state.writing);
        let mut state = waits.unwrap_or_else(PoisonError::into_inner).0;
        let mut events = std::mem::take(&mut state.queue);
        drop(state);
        events.extend(self.desk.gather().take(Moment::now()));
        self.desk.write(events);
    }
}

impl Desk {
    fn run(&self) {
        loop {
            let state = self.lock();
            let empty = |state: &mut State| state.queue.is_empty() && !state.closed;
            let waits = self.changed.wait_while(state, empty);
            let state = waits.unwrap_or_else(PoisonError::into_inner);
            let few = |state: &mut State| state.queue.len() < MOST / 2 && !state.closed;
            let waits = self.changed.wait_timeout_while(state, GATHER, few);
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
        let (mut events, at) = (joined(events), Moment::now());
        let lines = self.untold.swap(0, Ordering::Relaxed);
        if lines > 0 {
            events.push(Event { at, pool: "*".to_owned(), what: What::Lost { lines } });
        }
        if place.add(&events, at).is_err() {
            self.untold.fetch_add(lines, Ordering::Relaxed);
            self.lose(events.len() - usize::from(lines > 0));
        }
    }

    /// So many events are not written.
    fn lose(&self, events: usize) {
        self.lost.fetch_add(events as u64, Ordering::Relaxed);
        self.untold.fetch_add(events as u64, Ordering::Relaxed);
    }

    fn gather(&self) -> MutexGuard<'_, Gather> {
        self.gather.lock().unwrap_or_else(PoisonError::into_inner)
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
            What::Wait {
                agent,
                model,
                priority,
                reason,
                limit,
                ended,
                count,
                waited_ms,
                longest_ms,
                ..
            },
            What::Wait {
                agent: who,
                model: which,
                priority: tier,
                reason: why,
                limit: what,
                ended: how,
                count: more,
                waited_ms: waited,
                longest_ms: longest,
                ..
            },
        ) if same_pool
            && (&*agent, &*model, &*priority) == (who, which, tier)
            && (&*reason, &*limit, &*ended) == (why, what, how) =>
        {
            *count = count.saturating_add(*more);
            *waited_ms = waited_ms.saturating_add(*waited);
            *longest_ms = (*longest_ms).max(*longest);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Journal, Kind};

    fn wait(agent: &str, waited_ms: u64) -> What {
        What::Wait {
            agent: agent.to_owned(),
            model: None,
            priority: None,
            reason: "limit".to_owned(),
            limit: None,
            used: None,
            usable: None,
            position: None,
            ended: "admitted".to_owned(),
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
        writer.write_to(&Place::new(directory.clone()));
        for (agent, waited) in [("blog", 30), ("data", 5), ("blog", 12)] {
            writer.note(&pool(), wait(agent, waited));
        }
        writer.close();
        let events = Journal::at(&directory).events(None, None);
        let kept: Vec<What> = events.map(|event| event.what).collect();
        let count = |agent: &str| {
            let mut waits = kept.iter().filter_map(|what| match what {
                What::Wait { agent: who, count, waited_ms, longest_ms, .. } => {
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
    fn a_place_that_cannot_be_written_is_counted_and_nothing_else() {
        let file = directory("blocked");
        std::fs::write(&file, b"in the way").unwrap();
        let writer = Writer::default();
        writer.write_to(&Place::new(file.join("below")));
        writer.note(&pool(), wait("blog", 1));
        writer.close();
        assert_eq!(writer.lost(), 1);
        std::fs::remove_file(&file).unwrap();
        writer.note(&pool(), wait("blog", 1));
        writer.close();
        let events: Vec<Event> = Journal::at(file.join("below")).events(None, None).collect();
        let told = events.iter().find(|event| event.what == What::Lost { lines: 1 });
        assert_eq!(
            told.map(|event| event.pool.as_str()),
            Some("*"),
            "it is told later: {events:?}"
        );
        std::fs::remove_dir_all(file).unwrap();
    }

    #[test]
    fn what_was_used_is_written_when_it_is_due_and_when_it_closes() {
        let directory = directory("usage");
        let (writer, pool) = (Writer::default(), pool());
        let whose = Whose { pool: &pool, agent: "blog", model: None, tier: None, enforced: true };
        let admitted = [Use::Admitted { retry: false }];
        assert_eq!(writer.used(whose, admitted), None, "nowhere to write to");
        writer.write_to(&Place::new(directory.clone()));
        let due = writer.used(whose, admitted).unwrap();
        assert_eq!(writer.used(whose, admitted), None, "told once");
        assert_eq!(writer.see_to_usage(Local::now()), Some(due));
        assert!(writer.desk.lock().queue.is_empty(), "not yet");
        assert_eq!(writer.see_to_usage(due), None);
        writer.used(whose, admitted);
        writer.close();
        let lines = Journal::at(&directory).events(None, Some(Kind::Usage));
        let calls: Vec<u64> = lines.map(|event| calls(&event.what)).collect();
        assert_eq!((calls, writer.lost()), (vec![2, 1], 0));
        std::fs::remove_dir_all(directory).unwrap();
    }

    fn calls(what: &What) -> u64 {
        match what {
            What::Usage(usage) => usage.calls,
            other => panic!("{other:?}"),
        }
    }
}
