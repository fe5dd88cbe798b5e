//! One look of the keeper at one pool.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant as Local};

use standpipe_core::{Action, Facts, Instant, Key, Phase, Span, State, Ticket};
use standpipe_store::{PoolName, Store, StoreError};

use super::BEAT;
use crate::dead::Suspects;
use crate::desk::{Counter, Desk};
use crate::offline::{HandOver, OfflineFallback};
use crate::shared::{LAST_RETRY, Shared};

/// How often to look while somebody here is first in line, or among the first few where a look
/// costs little. Who lives is tested then, too.
pub(crate) const FIRST: Duration = Duration::from_millis(250);
/// How often to look across a network while somebody here is among the first few, and behind that.
const NEAR: Duration = Duration::from_secs(1);
const FAR: Duration = Duration::from_secs(5);

/// How often to see that the log is still the pool's, while this process has something there.
const WATCH: Duration = Duration::from_secs(1);

/// How long a member remembers what it did.
const REMEMBERED: Duration = Duration::from_secs(600);

/// How many are the first few: as many as the ledger wakes when their instant moves.
const FEW: usize = standpipe_core::bounds::WAKE_EARLIER;

/// Does what is to be done for a pool now, and answers when to come again.
pub(crate) fn attend(shared: &Arc<Shared>, desk: &Arc<Desk>, woken: bool) -> Option<Local> {
    let mut counter = desk.counter();
    let now = Local::now();
    let mut next = look_for_the_store(shared, desk, &mut counter);
    if counter.has_waiters() {
        let due = counter.look_at.is_none_or(|at| at <= now);
        if woken || due {
            let store = Some(&**shared.store()).filter(|_| !desk.is_substitute());
            let again = look(&mut counter, store, desk.pool()).unwrap_or(NEAR);
            counter.look_at = Some(now + again);
        }
        next = counter.look_at.map_or(next, |at| earlier(next, at));
    } else {
        counter.look_at = None;
    }
    if counter.has_pending() && counter.flush().is_err() {
        next = earlier(next, now + LAST_RETRY);
    }
    let busy = desk.holds_leases() || counter.has_waiters();
    // What it did lately may be lost with a server, too, though nothing of it is in flight.
    let remembers = || {
        let lately = |at: Local| now.saturating_duration_since(at) < REMEMBERED;
        shared.store().is_remote() && counter.active_at().is_some_and(lately)
    };
    if busy || remembers() {
        // Somebody rings when the connection is lost; who is idle need not look as often.
        let more = if busy { Duration::ZERO } else { FAR };
        next = watch(&mut counter).map_or(next, |at| earlier(next, at + more));
    }
    if busy {
        next = earlier(next, beat(&mut counter, &**shared.store(), woken));
    }
    if desk.shares() {
        next = earlier(next, now + beat_for_share(&mut counter));
    }
    shared.hear_news(desk.pool());
    next
}

/// While the store of a pool with a fallback takes no writes: tries one, and hands over what was
/// decided without it when one comes through. Only a write ends that time: a store may answer reads
/// and refuse writes.
fn look_for_the_store(
    shared: &Arc<Shared>,
    desk: &Arc<Desk>,
    counter: &mut Counter,
) -> Option<Local> {
    if let Some(place) = desk.cut_off() {
        return match place.hand_over(shared, desk, counter) {
            HandOver::Unavailable => Some(Local::now() + FIRST),
            // The next batch goes in a turn of its own, so that callers are not held up.
            HandOver::More => Some(Local::now()),
            HandOver::Done => None,
        };
    }
    let silent = desk.falls_back() && counter.contact.silent_since().is_some();
    if !silent || counter.probe_write() {
        return None;
    }
    // Also without a call: what is said of calls that the store admitted needs a ledger, too.
    OfflineFallback::of(shared, desk, counter, || None);
    Some(Local::now() + LAST_RETRY)
}

/// A process with a `share` pool beats although it is idle: others count it, and it counts them.
/// Returns how long until the next time.
fn beat_for_share(counter: &mut Counter) -> Duration {
    if counter.contact.silent_since().is_none() && counter.contact.left_of(BEAT).is_zero() {
        counter.tell(Action::Heartbeat { lease: None, ttl: None });
    }
    let uptime = counter.contact.now();
    if let Some(mut sharing) = counter.sharing.take() {
        let replica = counter.member.replica();
        sharing.sample(replica.state(), replica.now(), uptime);
        counter.sharing = Some(sharing);
    }
    counter.contact.left_of(BEAT).max(LAST_RETRY)
}

/// A log that was replaced or deleted lacks what this process has: others would take it. It is put
/// back at once. Answers when to see to it again, where a log can be lost so.
fn watch(counter: &mut Counter) -> Option<Local> {
    if !counter.member.is_current()? && counter.refresh().is_err() {
        return Some(Local::now() + LAST_RETRY);
    }
    Some(Local::now() + WATCH)
}

fn earlier(next: Option<Local>, at: Local) -> Option<Local> {
    Some(next.map_or(at, |next| next.min(at)))
}

/// Says that the session lives, if it has been silent for long enough. Answers when the next time
/// is; before that it does not look, unless it was woken.
fn beat(counter: &mut Counter, store: &dyn Store, woken: bool) -> Local {
    let next = counter.beat_at.filter(|at| !woken && Local::now() < *at);
    let next = next.unwrap_or_else(|| {
        store.renew_session(counter.member.session());
        beat_if_due(counter)
    });
    *counter.beat_at.insert(next)
}

fn beat_if_due(counter: &mut Counter) -> Local {
    let every = Span::secs(BEAT.as_secs());
    let due = |counter: &Counter| {
        let (facts, session) = (counter.member.replica().state().facts(), counter.member.session());
        facts.sessions.get(&session).map_or(Instant(0), |session| session.last_seen + every)
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
    /// Whether somebody here is the first in a line, and whether one is among the first few.
    first: bool,
    near: bool,
}

/// Looks, and tells everybody concerned. Answers how long until the next look. Without a store only
/// this process is there, and lives.
fn look(
    counter: &mut Counter,
    store: Option<&dyn Store>,
    pool: &PoolName,
) -> Result<Duration, StoreError> {
    counter.member.refresh()?;
    let now = counter.now();
    let waiting: BTreeSet<Key> = counter.tickets().collect();
    let mut behind = counter.tested_up_to;
    // Who is woken often need not ask as often who lives.
    let tests = counter.tested.is_none_or(|last| now.local.duration_since(last) >= FIRST / 2);
    let state = counter.member.replica().state().at(now.store);
    let mut seen = see(&state, &waiting);
    if let Some(store) = store.filter(|store| tests && store.try_begin_liveness_check(pool)) {
        let suspects = Suspects::of(state.facts()).in_round(&mut behind);
        seen.gone = suspects.dead(store, now.store);
    }
    drop(state);
    if tests {
        (counter.tested, counter.tested_up_to) = (Some(now.local), behind);
    }
    for ticket in seen.ring {
        counter.ring(ticket);
    }
    // All at once: each of them alone would keep what it is given for as long as it may be claimed.
    if !seen.gone.is_empty() {
        counter.tell_all(seen.gone);
    }
    let near = seen.near && store.is_none_or(|store| !store.is_remote());
    Ok(match (seen.first || near, seen.near) {
        (true, _) => FIRST,
        (false, true) => NEAR,
        (false, false) => FAR,
    })
}

fn see(state: &State, waiting: &BTreeSet<Key>) -> Seen {
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
    let first = heads(state.facts()).iter().any(|head| waiting.contains(&head.key));
    let near = known.values().any(|(before, _)| *before < FEW);
    // One that cannot be in time stands in no line: only somebody's end can help it.
    let too_late = |(before, phase): &(usize, Phase)| *before < FEW && *phase == Phase::TooLate;
    let first = first || known.values().any(too_late);
    Seen { ring, gone: Vec::new(), first, near }
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

#[cfg(test)]
mod tests {
    use standpipe_core::{
        AgentRule, Answer, Decision, Limit, LimitSelector, PoolConfig, Portion, Reserve, Rule,
        Share,
    };
    use standpipe_store::{Log, MemoryStore, Participant};

    use super::*;
    use crate::{Pool, Request, Settings, Standpipe};

    fn tap(home: &std::path::Path) -> Standpipe {
        Standpipe::builder().settings(Settings::default()).home(home).open().unwrap()
    }

    /// Another process, of which only the words in the log are seen.
    fn other(store: &MemoryStore, pool: &Pool) -> (Participant<Box<dyn Log + Send>>, u64) {
        let session = store.begin_session().unwrap();
        (Participant::new(store.log(pool.name()).unwrap(), move || session), session)
    }

    fn call(agent: &str, patience: Span) -> Action {
        let cost = standpipe_core::Amounts::cost([]).unwrap();
        let agent = standpipe_core::AgentName::new(agent).unwrap();
        Action::from(Reserve { patience, ..Reserve::new(agent, cost) })
    }

    /// A pool of two slots in which the dead hold one as the agent `capped`, which may have one.
    /// Answers how many leases are left after one look of somebody who waits.
    fn left_after_a_look(in_front: &[&str], waits_as: &str) -> usize {
        let store = MemoryStore::new(Arc::new(|| Instant(standpipe_core::bounds::SPAN.0)));
        let on: Arc<dyn Store> = Arc::new(store.another_process());
        let tap = Standpipe::builder().settings(Settings::default()).on(on).open().unwrap();
        let pool = tap.pool("my/slots").unwrap();
        let cap = Share { of: LimitSelector::Parallel, portion: Portion::Slots(1) };
        let name = standpipe_core::AgentName::new("capped").unwrap();
        let capped = AgentRule { name, priority: None, floors: Vec::new(), caps: vec![cap] };
        let limits = vec![Limit::new(Rule::Parallel { amount: 2 })];
        let config = PoolConfig { agents: vec![capped], ..PoolConfig::new(limits) };
        pool.change(config).unwrap();
        let (mut dead, session) = other(&store, &pool);
        dead.submit(vec![call("capped", Span::ZERO)]).unwrap();
        let (mut stopped, _) = other(&store, &pool);
        stopped.submit(vec![call("other", Span::ZERO)]).unwrap();
        let waits = in_front.iter().map(|agent| call(agent, Span::secs(300))).collect();
        stopped.submit(waits).unwrap();
        let guard = tap.guard().unwrap();
        let (shared, desk) = (guard.shared(), guard.shared().desk(pool.name()).unwrap());
        let mut counter = desk.counter();
        let asked = counter.member.submit(vec![call(waits_as, Span::secs(300))]).unwrap();
        let Answer::Decided(Decision::Wait(hold)) = &asked[0].answer else { panic!("{asked:?}") };
        counter.wait(hold.ticket, 7, &Arc::default());
        drop(counter);
        store.end_session(session);
        attend(shared, &desk, true);
        desk.counter().member.replica().state().facts().leases.len()
    }

    #[test]
    fn any_waiter_finds_the_dead_though_the_first_in_line_is_stopped() {
        assert_eq!(left_after_a_look(&["first"], "second"), 1);
    }

    #[test]
    fn a_waiter_that_its_own_cap_holds_back_finds_the_dead() {
        assert_eq!(left_after_a_look(&[], "capped"), 1);
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
