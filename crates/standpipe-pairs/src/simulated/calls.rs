//! How a process in virtual time asks and settles, and what is recorded of it.

use standpipe_core::{
    Action, AgentName, Amounts, Answer, Commit, Decision, Key, Priority, Reserve, Span, Unit,
};
use standpipe_store::{Liveness, Participant, Store};
use standpipe_store_file::{FileLog, FileStore};

use super::{Bug, World, words};
use crate::referee::Call;

/// What a call asks for.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    pub(super) pool: usize,
    pub(super) slots: u64,
    /// How long it waits, in milliseconds.
    pub(super) timeout: u64,
    pub(super) background: bool,
}

impl Ask {
    pub(super) const fn of(pool: usize) -> Self {
        Self { pool, slots: 1, timeout: 0, background: false }
    }
}

/// The ledger's answer.
pub(super) enum Reply {
    Granted(Key),
    Waits(Key),
    Refused(String),
}

impl World {
    pub(super) fn ask(&mut self, at: usize, ask: Ask) -> Result<bool, String> {
        let call = self.record(at, ask);
        let reply = self.reserve(at, ask.pool, None, call)?;
        Ok(self.follow(at, ask.pool, call, reply))
    }

    /// Records that a process asks, and returns the number of the call.
    pub(super) fn record(&mut self, at: usize, ask: Ask) -> usize {
        self.calls.push(Call {
            worker: self.processes[at].name.clone(),
            pool: self.eras[0].setup.pools[ask.pool].name.to_owned(),
            lease: String::new(),
            asked: self.now,
            slots: ask.slots,
            background: ask.background,
            timeout: ask.timeout,
            answered: None,
            granted: false,
            local: false,
            cancelled: false,
            unanswered: false,
            held_until: u64::MAX,
            settled: false,
            last: u64::MAX,
            words: String::new(),
        });
        self.calls.len() - 1
    }

    pub(super) fn claim(&mut self, at: usize) -> Result<(), String> {
        let Some((pool, ticket, call)) = self.processes[at].waits.take() else { return Ok(()) };
        let reply = self.reserve(at, pool, Some(ticket), call)?;
        self.follow(at, pool, call, reply);
        Ok(())
    }

    /// Records the answer to a call on one pool. Returns whether it was granted.
    pub(super) fn follow(&mut self, at: usize, pool: usize, call: usize, reply: Reply) -> bool {
        let process = &mut self.processes[at];
        match reply {
            Reply::Granted(lease) => {
                process.held.push((pool, lease, call));
                self.answered(call, None);
                return true;
            }
            Reply::Waits(ticket) => process.waits = Some((pool, ticket, call)),
            Reply::Refused(words) => self.answered(call, Some(words)),
        }
        false
    }

    /// Records that a call was granted, or refused with these words.
    pub(super) fn answered(&mut self, call: usize, refused: Option<String>) {
        let logged = &mut self.calls[call];
        (logged.answered, logged.granted) = (Some(self.now), refused.is_none());
        logged.words = refused.unwrap_or_default();
    }

    pub(super) fn reserve(
        &mut self,
        at: usize,
        pool: usize,
        ticket: Option<Key>,
        call: usize,
    ) -> Result<Reply, String> {
        let logged = &self.calls[call];
        let waited = self.now - logged.asked;
        let patience = Span((logged.timeout * 1_000).saturating_sub(waited));
        self.reserve_for(at, pool, ticket, call, patience)
    }

    pub(super) fn reserve_for(
        &mut self,
        at: usize,
        pool: usize,
        ticket: Option<Key>,
        call: usize,
        patience: Span,
    ) -> Result<Reply, String> {
        let process = &mut self.processes[at];
        let is_blind = self.bug == Some(Bug::DeathUnnoticed);
        end_dead_sessions(&mut process.members[pool], &process.store, is_blind)?;
        let agent = AgentName::new(&process.name).ok_or("not an agent")?;
        let Call { slots, background, .. } = self.calls[call];
        let slots = Some((Unit::Parallel, slots)).filter(|(_, many)| *many > 1);
        let cost = Amounts::cost(slots).map_err(|_| "not a cost")?;
        let priority = background.then_some(Priority::Background);
        let reserve = Reserve { patience, ticket, priority, ..Reserve::new(agent, cost) };
        let outcomes = process.members[pool].submit(vec![Action::from(reserve)]);
        let outcomes = outcomes.map_err(words)?;
        Ok(match outcomes.first().map(|outcome| &outcome.answer) {
            Some(Answer::Decided(Decision::Admit(grant))) => Reply::Granted(grant.lease),
            Some(Answer::Decided(Decision::Wait(hold))) => Reply::Waits(hold.ticket),
            other => Reply::Refused(format!("{other:?}")),
        })
    }

    pub(super) fn settle(&mut self, at: usize, which: usize) -> Result<(), String> {
        let (pool, lease, call) = self.processes[at].held.swap_remove(which);
        let cancels = self.random.below(8) == 0;
        let logged = &mut self.calls[call];
        (logged.held_until, logged.settled, logged.cancelled) = (self.now, true, cancels);
        self.end_lease(at, pool, lease, cancels)
    }

    pub(super) fn end_lease(
        &mut self,
        at: usize,
        pool: usize,
        lease: Key,
        cancels: bool,
    ) -> Result<(), String> {
        let used = Amounts::default();
        let action = match cancels {
            true => Action::Cancel { lease },
            false => Action::Commit(Commit { lease, used, progress: false, refused: false }),
        };
        self.processes[at].members[pool].submit(vec![action]).map_err(words).map(|_| ())
    }
}

/// Ends the sessions of the dead, as a process that is about to be refused does.
fn end_dead_sessions(
    member: &mut Participant<FileLog>,
    store: &FileStore,
    is_blind: bool,
) -> Result<(), String> {
    member.refresh().map_err(words)?;
    let now = member.replica().now();
    let state = member.replica().state();
    let silent: Vec<u64> = state.silent_sessions(now).collect();
    let is_dead = |session: &u64| match store.liveness(*session) {
        Liveness::Dead if !is_blind => true,
        Liveness::Alive => false,
        Liveness::Dead | Liveness::Unknown => silent.contains(session),
    };
    let dead = state.facts().sessions.keys().copied().filter(is_dead);
    let ended: Vec<Action> = dead.map(|session| Action::SessionEnded { session }).collect();
    if !ended.is_empty() {
        member.submit(ended).map_err(words)?;
    }
    Ok(())
}
