//! One round of maintenance on one pool.
//!
//! A round notifies every waiter here whose ticket changed, and returns when the next round is due.
//! `maintenance.rs` runs the rounds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant as Local};

use standpipe_core::{Action, Facts, Instant, Key, Phase, Span, State, Ticket};
use standpipe_store::{PoolName, Store, StoreError};

use super::BEAT;
use crate::client::store_client::{LAST_RETRY, StoreClient};
use crate::client::{Dispatcher, PoolClient};
use crate::maintenance::liveness::LivenessCheck;
use crate::offline::{HandOver, OfflineFallback};

/// How often the queue is checked while a waiter here is first in line, or among the first few
/// where a check costs little. Liveness is tested at the same time.
pub(crate) const FIRST: Duration = Duration::from_millis(250);
/// How often the queue is checked across a network while a waiter here is among the first few, and
/// while none is.
const NEAR: Duration = Duration::from_secs(1);
const FAR: Duration = Duration::from_secs(5);

/// How often to check that the log was not replaced, while this process has leases or tickets
/// there.
const WATCH: Duration = Duration::from_secs(1);

/// How long a participant remembers what it did.
const REMEMBERED: Duration = Duration::from_secs(600);

/// How many tickets are the first few: as many as the ledger wakes when their instant moves.
const FEW: usize = standpipe_core::bounds::WAKE_EARLIER;

/// Does what is due for a pool and returns when to do so again.
pub(crate) fn attend(
    store_client: &Arc<StoreClient>,
    client: &Arc<PoolClient>,
    dispatcher: &mut Dispatcher,
    woken: bool,
) -> Option<Local> {
    let now = Local::now();
    let mut next = probe_store(store_client, client, dispatcher);
    if dispatcher.has_waiters() {
        let due = dispatcher.look_at.is_none_or(|at| at <= now);
        if woken || due {
            let store = Some(&**store_client.store()).filter(|_| !client.is_offline());
            let again = check_queue(dispatcher, store, client.pool()).unwrap_or(NEAR);
            dispatcher.look_at = Some(now + again);
        }
        next = dispatcher.look_at.map_or(next, |at| earlier(next, at));
    } else {
        dispatcher.look_at = None;
    }
    if dispatcher.has_pending() && dispatcher.flush().is_err() {
        next = earlier(next, now + LAST_RETRY);
    }
    let busy = client.has_leases() || dispatcher.has_waiters();
    if busy || remembers(store_client, dispatcher) {
        // A lost connection wakes the thread, so an idle process checks less often.
        let more = if busy { Duration::ZERO } else { FAR };
        next = check_log(dispatcher).map_or(next, |at| earlier(next, at + more));
    }
    if busy {
        next = earlier(next, beat(dispatcher, &**store_client.store(), woken));
    }
    if client.shares() {
        next = earlier(next, now + beat_for_share(dispatcher));
    }
    store_client.journal_messages(client.pool());
    next
}

/// Returns whether [`attend`] may talk to the store.
pub(super) fn needs_store(
    store_client: &StoreClient,
    client: &PoolClient,
    dispatcher: &Dispatcher,
) -> bool {
    client.offline().is_some()
        || dispatcher.contact.silent_since().is_some()
        || dispatcher.has_waiters()
        || dispatcher.has_pending()
        || client.has_leases()
        || client.shares()
        || remembers(store_client, dispatcher)
}

/// Returns whether the process acted on the pool lately. A server may lose those entries although
/// none of their calls is in flight.
fn remembers(store_client: &StoreClient, dispatcher: &Dispatcher) -> bool {
    let lately = |at: Local| at.elapsed() < REMEMBERED;
    store_client.store().is_remote() && dispatcher.active_at().is_some_and(lately)
}

/// Tries to write to a store that takes no writes, and hands over what the offline ledger decided
/// when a write succeeds. Only a write ends an outage: a store may answer reads and refuse writes.
fn probe_store(
    store_client: &Arc<StoreClient>,
    client: &Arc<PoolClient>,
    dispatcher: &mut Dispatcher,
) -> Option<Local> {
    if let Some(fallback) = client.offline() {
        return match fallback.hand_over(store_client, client, dispatcher) {
            HandOver::Unavailable => Some(Local::now() + FIRST),
            // The next batch goes in a turn of its own, so that callers are not held up.
            HandOver::More => Some(Local::now()),
            HandOver::Done => None,
        };
    }
    let silent = client.has_fallback() && dispatcher.contact.silent_since().is_some();
    if !silent || dispatcher.probe_write() {
        return None;
    }
    // Also without a new call: leases that the store granted are settled in the offline ledger too.
    OfflineFallback::of(store_client, client, dispatcher, || None);
    Some(Local::now() + LAST_RETRY)
}

/// Sends the heartbeat of a process with a `share` pool, which counts among the sharers even while
/// it is idle, and samples the other sharers. Returns how long until the next time.
fn beat_for_share(dispatcher: &mut Dispatcher) -> Duration {
    if dispatcher.contact.silent_since().is_none() && dispatcher.contact.left_of(BEAT).is_zero() {
        dispatcher.send_or_keep(Action::Heartbeat { lease: None, ttl: None });
    }
    let uptime = dispatcher.contact.now();
    if let Some(mut sharing) = dispatcher.sharing.take() {
        let replica = dispatcher.participant.replica();
        sharing.sample(replica.state(), replica.now(), uptime);
        dispatcher.sharing = Some(sharing);
    }
    dispatcher.contact.left_of(BEAT).max(LAST_RETRY)
}

/// Restores this process's leases to a log that was replaced or deleted, before others are granted
/// the same units. Returns when to check again; `None` where a log cannot be lost this way.
fn check_log(dispatcher: &mut Dispatcher) -> Option<Local> {
    if !dispatcher.participant.is_current()? && dispatcher.refresh().is_err() {
        return Some(Local::now() + LAST_RETRY);
    }
    Some(Local::now() + WATCH)
}

fn earlier(next: Option<Local>, at: Local) -> Option<Local> {
    Some(next.map_or(at, |next| next.min(at)))
}

/// Sends a heartbeat if the session has been silent for long enough. Returns when the next one is
/// due; before that it reads nothing, unless the thread was woken.
fn beat(dispatcher: &mut Dispatcher, store: &dyn Store, woken: bool) -> Local {
    let next = dispatcher.beat_at.filter(|at| !woken && Local::now() < *at);
    let next = next.unwrap_or_else(|| {
        store.renew_session(dispatcher.participant.session());
        beat_if_due(dispatcher)
    });
    *dispatcher.beat_at.insert(next)
}

fn beat_if_due(dispatcher: &mut Dispatcher) -> Local {
    let every = Span::secs(BEAT.as_secs());
    let due = |dispatcher: &Dispatcher| {
        let (facts, session) =
            (dispatcher.participant.replica().state().facts(), dispatcher.participant.session());
        facts.sessions.get(&session).map_or(Instant(0), |session| session.last_seen + every)
    };
    if dispatcher.participant.refresh().is_err() {
        return Local::now() + LAST_RETRY;
    }
    if due(dispatcher) > dispatcher.now().store {
        return dispatcher.now().local(due(dispatcher));
    }
    match dispatcher.send_or_keep(Action::Heartbeat { lease: None, ttl: None }) {
        true => Local::now() + BEAT,
        false => Local::now() + LAST_RETRY,
    }
}

/// What a check of the queue found.
struct QueueCheck {
    /// The tickets that are due or gone, or whose instant may have moved.
    wake: Vec<Key>,
    /// The reports of dead sessions and owners.
    ended: Vec<Action>,
    /// Whether a waiter here is the first in a line, and whether one is among the first few.
    first: bool,
    near: bool,
}

/// Checks the queue, notifies waiters and reports dead sessions. Returns how long until the next
/// check. Without a store there are no other sessions to test.
fn check_queue(
    dispatcher: &mut Dispatcher,
    store: Option<&dyn Store>,
    pool: &PoolName,
) -> Result<Duration, StoreError> {
    dispatcher.participant.refresh()?;
    let now = dispatcher.now();
    let waiting: BTreeSet<Key> = dispatcher.tickets().collect();
    let mut behind = dispatcher.tested_up_to;
    // A process that is woken often need not test liveness as often.
    let tests = dispatcher.tested.is_none_or(|last| now.local.duration_since(last) >= FIRST / 2);
    let state = dispatcher.participant.replica().state().at(now.store);
    let mut check = inspect_queue(&state, &waiting);
    if let Some(store) = store.filter(|store| tests && store.try_begin_liveness_check(pool)) {
        let targets = LivenessCheck::of(state.facts()).in_round(&mut behind);
        check.ended = targets.dead(store, now.store);
    }
    drop(state);
    if tests {
        (dispatcher.tested, dispatcher.tested_up_to) = (Some(now.local), behind);
    }
    for ticket in check.wake {
        dispatcher.notify_ticket(ticket);
    }
    // All in one step: a dead ticket that is ended alone would hand its units to the next dead one,
    // which would keep them for as long as it may claim them.
    if !check.ended.is_empty() {
        dispatcher.send_or_keep_all(check.ended);
    }
    let near = check.near && store.is_none_or(|store| !store.is_remote());
    Ok(match (check.first || near, check.near) {
        (true, _) => FIRST,
        (false, true) => NEAR,
        (false, false) => FAR,
    })
}

fn inspect_queue(state: &State, waiting: &BTreeSet<Key>) -> QueueCheck {
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
    let wake = waiting.iter().filter(|ticket| !stays(ticket)).copied().collect();
    let first = heads(state.facts()).iter().any(|head| waiting.contains(&head.key));
    let near = known.values().any(|(before, _)| *before < FEW);
    // A ticket that cannot be in time is in no line: only the end of another session can help it.
    let too_late = |(before, phase): &(usize, Phase)| *before < FEW && *phase == Phase::TooLate;
    let first = first || known.values().any(too_late);
    QueueCheck { wake, ended: Vec::new(), first, near }
}

/// Returns the first ticket of each line.
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

    /// Another process, which is only visible through the log.
    fn other(store: &MemoryStore, pool: &Pool) -> (Participant<Box<dyn Log + Send>>, u64) {
        let session = store.begin_session().unwrap();
        (Participant::new(store.log(pool.name()).unwrap(), move || session), session)
    }

    fn call(agent: &str, patience: Span) -> Action {
        let cost = standpipe_core::Amounts::cost([]).unwrap();
        let agent = standpipe_core::AgentName::new(agent).unwrap();
        Action::from(Reserve { patience, ..Reserve::new(agent, cost) })
    }

    /// Returns how many leases are left after one round of a process that waits. The pool has two
    /// slots; a dead session holds one as the agent `capped`, which may have one.
    fn left_after_a_look(in_front: &[&str], waits_as: &str) -> usize {
        let store = MemoryStore::new(Arc::new(|| Instant(standpipe_core::bounds::SPAN.0)));
        let on: Arc<dyn Store> = Arc::new(store.another_process());
        let tap = Standpipe::builder().settings(Settings::default()).on(on).open().unwrap();
        let pool = tap.pool("my/slots").unwrap();
        let cap = Share { of: LimitSelector::Parallel, portion: Portion::Slots(1) };
        let name = standpipe_core::AgentName::new("capped").unwrap();
        let capped =
            AgentRule { name, priority: None, floors: Vec::new(), caps: vec![cap], weight: 1 };
        let limits = vec![Limit::new(Rule::Parallel { amount: 2 })];
        let config = PoolConfig { agents: vec![capped], ..PoolConfig::new(limits) };
        pool.change(config).blocking().unwrap();
        let (mut dead, session) = other(&store, &pool);
        dead.submit(vec![call("capped", Span::ZERO)]).unwrap();
        let (mut stopped, _) = other(&store, &pool);
        stopped.submit(vec![call("other", Span::ZERO)]).unwrap();
        let waits = in_front.iter().map(|agent| call(agent, Span::secs(300))).collect();
        stopped.submit(waits).unwrap();
        let handle = tap.store_handle().unwrap();
        let (store_client, client) =
            (handle.store_client(), handle.store_client().client(pool.name()).unwrap());
        let mut dispatcher = client.dispatcher();
        let asked = dispatcher.participant.submit(vec![call(waits_as, Span::secs(300))]).unwrap();
        let Answer::Decided(Decision::Wait(hold)) = &asked[0].answer else { panic!("{asked:?}") };
        dispatcher.wait(hold.ticket, 7, &Arc::default());
        drop(dispatcher);
        store.end_session(session);
        attend(store_client, &client, &mut client.dispatcher(), true);
        client.dispatcher().participant.replica().state().facts().leases.len()
    }

    #[test]
    fn any_waiter_finds_dead_sessions_although_the_first_in_line_is_stopped() {
        assert_eq!(left_after_a_look(&["first"], "second"), 1);
    }

    #[test]
    fn a_waiter_that_is_held_by_its_own_cap_finds_dead_sessions() {
        assert_eq!(left_after_a_look(&[], "capped"), 1);
    }

    #[test]
    fn a_deleted_log_is_restored_soon_by_a_process_with_a_lease() {
        let name = format!("standpipe-watched-{}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let tap = tap(&home);
        let pool = tap.pool("my/slots").unwrap();
        pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).blocking().unwrap();
        let lease = pool.reserve(Request::by("holder")).blocking().unwrap();
        let handle = pool.tap().store_handle().unwrap();
        let store_client = handle.store_client();
        let client = store_client.client(pool.name()).unwrap();
        let next = attend(store_client, &client, &mut client.dispatcher(), false).unwrap();
        assert!(next <= Local::now() + WATCH, "the next round is soon");
        let file = home.join("pools/my+slots.pool");
        std::fs::remove_file(&file).unwrap();
        attend(store_client, &client, &mut client.dispatcher(), false);
        assert!(file.exists(), "it did not wait for the next heartbeat");
        let holders = |state: &State, _: &_, _: &_| state.facts().leases.len();
        assert_eq!(store_client.read(&client, holders).unwrap(), 1);
        drop((lease, handle, pool, tap));
        std::fs::remove_dir_all(&home).unwrap();
    }
}
