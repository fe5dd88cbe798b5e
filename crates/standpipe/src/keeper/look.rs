//! One look of the keeper at one pool.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant as Local};

use standpipe_core::{Action, Facts, Instant, Key, Phase, Span, State, Ticket};
use standpipe_store::{Store, StoreError};

use super::BEAT;
use crate::dead::Suspects;
use crate::desk::{Counter, Desk};
use crate::shared::{LAST_RETRY, Shared};

/// How often to look while somebody here is first in line: whether those who hold what it lacks
/// live is tested then, too.
pub(crate) const FIRST: Duration = Duration::from_millis(250);
/// How often to look while somebody here is among the first few, and behind that.
const NEAR: Duration = Duration::from_secs(1);
const FAR: Duration = Duration::from_secs(5);

/// How often to see that the log is still the pool's, while this process has something there.
const WATCH: Duration = Duration::from_secs(1);

/// How many are the first few: as many as the ledger wakes when their instant moves.
const FEW: usize = standpipe_core::bounds::WAKE_EARLIER;

/// Does what is to be done for a pool now, and answers when to come again.
pub(super) fn attend(shared: &Arc<Shared>, desk: &Desk, woken: bool) -> Option<Local> {
    let mut counter = desk.counter();
    let now = Local::now();
    let mut next = None;
    if let Some(place) = desk.cut_off() {
        match counter.member.refresh() {
            Ok(()) => place.end(shared, desk, &mut counter),
            Err(_) => next = Some(now + FIRST),
        }
    }
    if counter.has_waiters() {
        let due = counter.look_at.is_none_or(|at| at <= now);
        if woken || due {
            let store = Some(&**shared.store()).filter(|_| !desk.is_substitute());
            let again = look(&mut counter, store).unwrap_or(NEAR);
            counter.look_at = Some(now + again);
        }
        next = counter.look_at;
    } else {
        counter.look_at = None;
    }
    if counter.is_owing() && counter.flush().is_err() {
        next = earlier(next, now + LAST_RETRY);
    }
    if desk.holds_leases() || counter.has_waiters() {
        next = watch(&mut counter).map_or(next, |at| earlier(next, at));
        next = earlier(next, beat(&mut counter, woken));
    }
    next
}

/// A log that was replaced or deleted lacks what this process has: others would take it. It is put
/// back at once. Answers when to see to it again, where a log can be lost so.
fn watch(counter: &mut Counter) -> Option<Local> {
    if !counter.member.is_current()? && counter.member.refresh().is_err() {
        return Some(Local::now() + LAST_RETRY);
    }
    Some(Local::now() + WATCH)
}

fn earlier(next: Option<Local>, at: Local) -> Option<Local> {
    Some(next.map_or(at, |next| next.min(at)))
}

/// Says that the session lives, if it has been silent for long enough. Answers when the next time
/// is; before that it does not look, unless it was woken.
fn beat(counter: &mut Counter, woken: bool) -> Local {
    let next = counter.beat_at.filter(|at| !woken && Local::now() < *at);
    let next = next.unwrap_or_else(|| beat_if_due(counter));
    *counter.beat_at.insert(next)
}

fn beat_if_due(counter: &mut Counter) -> Local {
    let every = Span::secs(BEAT.as_secs());
    let due = |counter: &Counter| {
        let (facts, session) = (counter.member.replica().state().facts(), counter.member.session());
        facts.sessions.get(&session).map_or(Instant(0), |session| session.heard + every)
    };
    if counter.member.refresh().is_err() {
        return Local::now() + LAST_RETRY;
    }
    if due(counter) > counter.now().store {
        return counter.now().local(due(counter));
    }
    match counter.tell(Action::Heartbeat { lease: None, ttl: None }) {
        true => Local::now() + BEAT,
        false => Local::now() + LAST_RETRY,
    }
}

/// What a look finds.
struct Seen {
    /// Whose turn has come, whose place is gone, or whose instant may have moved.
    ring: Vec<Key>,
    /// What to say of the dead.
    gone: Vec<Action>,
    /// How long until the next look.
    again: Duration,
}

/// Looks, and tells everybody concerned. Answers how long until the next look. Without a store only
/// this process is there, and lives.
fn look(counter: &mut Counter, store: Option<&dyn Store>) -> Result<Duration, StoreError> {
    counter.member.refresh()?;
    let now = counter.now();
    let waiting: BTreeSet<Key> = counter.tickets().collect();
    // Who is woken often need not ask as often who lives.
    let tests = counter.tested.is_none_or(|last| now.local.duration_since(last) >= FIRST / 2);
    let state = counter.member.replica().state().at(now.store);
    let seen = see(&state, &waiting, store, tests);
    drop(state);
    if tests {
        counter.tested = Some(now.local);
    }
    for ticket in seen.ring {
        counter.ring(ticket);
    }
    if !seen.gone.is_empty() {
        counter.tell_all(seen.gone);
    }
    Ok(seen.again)
}

fn see(state: &State, waiting: &BTreeSet<Key>, store: Option<&dyn Store>, tests: bool) -> Seen {
    let mut known = BTreeMap::new();
    for (before, ticket) in state.facts().tickets.values().enumerate() {
        if waiting.contains(&ticket.key) {
            known.insert(ticket.key, (before, ticket.phase));
        }
    }
    let stays = |ticket: &Key| {
        known.get(ticket).is_some_and(|(before, phase)| {
            *before >= FEW && !matches!(phase, Phase::Due(_) | Phase::Lapsed)
        })
    };
    let ring = waiting.iter().filter(|ticket| !stays(ticket)).copied().collect();
    let heads = heads(state.facts());
    // One that cannot be in time stands in no line: only somebody's end can help it.
    let too_late = |(before, phase): &(usize, Phase)| *before < FEW && *phase == Phase::TooLate;
    let first =
        heads.iter().any(|head| waiting.contains(&head.key)) || known.values().any(too_late);
    let last = known.values().map(|(before, _)| *before).max().unwrap_or_default();
    let gone = match store.filter(|_| tests) {
        Some(store) => gone(state.facts(), last, first, store),
        None => Vec::new(),
    };
    let near = known.values().any(|(before, _)| *before < FEW);
    let again = match (first, near) {
        (true, _) => FIRST,
        (false, true) => NEAR,
        (false, false) => FAR,
    };
    Seen { ring, gone, again }
}

/// The first in each line.
fn heads(facts: &Facts) -> Vec<&Ticket> {
    let mut lanes = BTreeSet::new();
    let mut first = |ticket: &&Ticket| match ticket.phase {
        Phase::Line(lane) => lanes.insert(lane),
        _ => false,
    };
    facts.tickets.values().filter(|ticket| first(ticket)).collect()
}

/// What to say of those who stand before somebody here, or hold what it lacks, and are dead. All at
/// once: each of them alone would keep what it is given for as long as it may be claimed.
fn gone(facts: &Facts, last: usize, first: bool, store: &dyn Store) -> Vec<Action> {
    let mut suspects = Suspects::default();
    let is_due = |ticket: &&Ticket| matches!(ticket.phase, Phase::Due(_));
    facts.tickets.values().filter(is_due).for_each(|ticket| suspects.add_waiter(ticket));
    facts.tickets.values().take(last).for_each(|ticket| suspects.add_waiter(ticket));
    if first {
        suspects.add_holders(facts);
    }
    suspects.dead(store)
}

#[cfg(test)]
mod tests {
    use standpipe_core::{Limit, Rule};

    use super::*;
    use crate::{Request, Settings, Standpipe};

    fn tap(home: &std::path::Path) -> Standpipe {
        Standpipe::builder().settings(Settings::default()).home(home).open().unwrap()
    }

    #[test]
    fn a_deleted_log_is_missed_soon_and_put_back_by_who_holds_something() {
        let name = format!("standpipe-watched-{}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let tap = tap(&home);
        let pool = tap.pool("my/slots").unwrap();
        pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).unwrap();
        let lease = pool.reserve(Request::by("holder")).blocking().unwrap();
        let guard = pool.tap().guard().unwrap();
        let shared = guard.shared();
        let desk = shared.desk(pool.name()).unwrap();
        let next = attend(shared, &desk, false).unwrap();
        assert!(next <= Local::now() + WATCH, "it comes again soon");
        let file = home.join("pools/my+slots.pool");
        std::fs::remove_file(&file).unwrap();
        attend(shared, &desk, false);
        assert!(file.exists(), "it did not wait for the next beat");
        let holders = |state: &State, _: &_, _: &_| state.facts().leases.len();
        assert_eq!(shared.read(&desk, holders).unwrap(), 1);
        drop((lease, guard, pool, tap));
        std::fs::remove_dir_all(&home).unwrap();
    }
}
