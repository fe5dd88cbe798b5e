//! Agents that reserve each call in the shared ledger and report its result.

use std::collections::BTreeMap;
use std::time::Duration;

use standpipe_core::{
    Action, AgentName, Amounts, Commit, Decision, Hit, Key, Observed, Priority, Reading, Reason,
    Reserve, Span, ThrottleKind, Throttled, Unit, bounds,
};
use standpipe_dialect::{
    Answer, Dialect, Kind, LimitSeen, Refused, ResetMeans, Response, Usage, Verdict,
};

use super::client_options::ClientOptions;
use super::strategy::{CallContext, Step, Strategy};
use crate::provider::{ORIGIN, Reply};
use crate::shared_ledger::{ReserveCall, SharedLedger};

/// The polling interval of a waiter near the head of the queue, in microseconds.
const POLL: u64 = 1_000_000;

/// An agent with a session in the shared ledger and one retry layer.
#[derive(Debug)]
pub struct Coordinated {
    ledger: SharedLedger,
    name: AgentName,
    options: ClientOptions,
    /// Its number in the ledger.
    agent: usize,
    /// By call: its state.
    pending: BTreeMap<usize, PendingCall>,
}

#[derive(Clone, Copy, Debug)]
struct PendingCall {
    deadline: u64,
    tries: u32,
    ticket: Option<Key>,
    /// Until when it waits with the ticket.
    spell: u64,
    lease: Option<Key>,
    retry_of: Option<Key>,
}

impl Coordinated {
    /// Creates an agent with a name.
    #[must_use]
    pub fn new(ledger: &SharedLedger, name: AgentName, options: ClientOptions) -> Self {
        let agent = ledger.register();
        Self { ledger: ledger.clone(), name, options, agent, pending: BTreeMap::new() }
    }

    /// Reserves a call.
    fn ask(&mut self, now: u64, ask: &CallContext) -> Step {
        let Some(call_state) = self.pending.get(&ask.number).copied() else { return Step::GiveUp };
        let ClientOptions { wait_mode, cost_hint, .. } = self.options;
        let stated = cost_hint.of(&ask.call);
        let patience = wait_mode.patience(call_state.deadline.saturating_sub(now));
        let reserve = Reserve {
            priority: Some(tier(ask.priority)),
            patience: Span(patience),
            retry_of: call_state.retry_of,
            ticket: call_state.ticket,
            bytes: stated.bytes,
            at_most: stated.at_most,
            ..Reserve::new(self.name.clone(), stated.cost)
        };
        let (agent, call, retry) = (self.agent, ask.number, call_state.retry_of.is_some());
        let asks = ReserveCall { agent, call, retry, action: Action::from(reserve) };
        let Some(decision) = self.ledger.reserve(ask.pool, &asks, now) else { return Step::GiveUp };
        let call_state = self.pending.entry(ask.number).or_insert(call_state);
        match decision {
            Decision::Admit(grant) => {
                call_state.ticket = None;
                call_state.lease = Some(grant.lease);
                call_state.tries += 1;
                Step::Send
            }
            Decision::Wait(hold) => {
                if call_state.ticket.replace(hold.ticket) != Some(hold.ticket) {
                    call_state.spell = now.saturating_add(patience);
                }
                // Those near the head poll every second, the others every five.
                let every = if hold.position <= bounds::WAKE_EARLIER { POLL } else { 5 * POLL };
                let until = hold.refusal.until.map_or(call_state.spell, SharedLedger::moment);
                Step::WaitUntil(until.min(now.saturating_add(every)).min(call_state.spell))
            }
            Decision::Refuse(refusal) => {
                call_state.ticket = None;
                // The end of a call in flight is unknown, so it reserves again later.
                let ends = !matches!(refusal.reason, Reason::Never | Reason::Terminal);
                let soon = ends.then(|| now.saturating_add(POLL));
                match wait_mode.next_ask(now, refusal.until.map(SharedLedger::moment).or(soon)) {
                    Some(until) if until <= call_state.deadline && until > now => {
                        Step::WaitUntil(until)
                    }
                    _ => self.give_up(ask),
                }
            }
        }
    }

    fn give_up(&mut self, ask: &CallContext) -> Step {
        self.pending.remove(&ask.number);
        Step::GiveUp
    }

    /// Retries a call while attempts and time are left.
    fn again(&mut self, now: u64, ask: &CallContext, lease: Key) -> Step {
        let tries = self.options.tries;
        match self.pending.get_mut(&ask.number) {
            Some(call_state) if call_state.tries < tries && now < call_state.deadline => {
                call_state.retry_of = Some(lease);
                self.ask(now, ask)
            }
            _ => self.give_up(ask),
        }
    }

    fn report(&self, now: u64, ask: &CallContext, action: Action) {
        let _ = self.ledger.send(ask.pool, self.agent, action, now);
    }

    fn report_limits(&self, now: u64, ask: &CallContext, lease: Key, limits: &[LimitSeen]) {
        let readings: Vec<_> = limits.iter().filter_map(reading).collect();
        if !readings.is_empty() {
            self.report(now, ask, Action::Observed(Observed { lease: Some(lease), readings }));
        }
    }
}

impl Strategy for Coordinated {
    fn begin(&mut self, now: u64, ask: &CallContext) -> Step {
        let deadline = now.saturating_add(self.options.patience);
        let call_state =
            PendingCall { deadline, tries: 0, ticket: None, spell: 0, lease: None, retry_of: None };
        self.pending.insert(ask.number, call_state);
        self.ask(now, ask)
    }

    fn on_reply(&mut self, now: u64, ask: &CallContext, reply: &Reply) -> Step {
        let call_state = self.pending.get_mut(&ask.number);
        let Some(lease) = call_state.and_then(|call_state| call_state.lease.take()) else {
            return self.give_up(ask);
        };
        let dialect = self.ledger.dialect(ask.pool);
        let answer = read(dialect, reply, now);
        let refused = Commit { lease, used: Amounts::default(), progress: false, refused: true };
        match answer.verdict {
            Verdict::Ok => {
                let used = answer.usage.map_or_else(Amounts::default, |usage| used(usage, dialect));
                // Headers come first: a call in flight counts on a limit that they introduce.
                self.report_limits(now, ask, lease, &answer.limits);
                self.report(now, ask, Action::Commit(Commit { used, refused: false, ..refused }));
                self.pending.remove(&ask.number);
                Step::Done
            }
            Verdict::Refused(why) => {
                let terminal = why.kind == Kind::Terminal;
                self.report(now, ask, Action::Throttled(throttled(lease, why)));
                self.report_limits(now, ask, lease, &answer.limits);
                if terminal { self.give_up(ask) } else { self.again(now, ask, lease) }
            }
            Verdict::Failed { transient } => {
                self.report(now, ask, Action::Commit(refused));
                if transient { self.again(now, ask, lease) } else { self.give_up(ask) }
            }
        }
    }

    fn on_wake(&mut self, now: u64, ask: &CallContext) -> Step {
        self.ask(now, ask)
    }

    fn take_wakeups(&mut self) -> Vec<usize> {
        self.ledger.take_wakeups()
    }

    fn on_kill(&mut self, now: u64) {
        self.ledger.killed(self.agent, now);
    }
}

fn read(dialect: Dialect, reply: &Reply, now: u64) -> Answer {
    let headers: Vec<_> =
        reply.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let (status, body) = (reply.status, reply.body.as_slice());
    let received = ORIGIN.saturating_add(now) / 1_000;
    dialect.read(&Response { status, headers: &headers, body, received })
}

fn throttled(lease: Key, why: Refused) -> Throttled {
    let kind = match why.kind {
        Kind::Quota => ThrottleKind::Quota,
        Kind::Concurrency => ThrottleKind::Concurrency,
        Kind::SlowDown => ThrottleKind::SlowDown,
        Kind::Overload => ThrottleKind::Overload,
        Kind::Terminal => ThrottleKind::Terminal,
    };
    let unit = why.unit.and_then(|unit| Unit::named(&unit));
    let hit = unit.map(|unit| Hit { unit, period: why.period.map(span) });
    let retry_after = why.wait.map(span);
    Throttled { lease: Some(lease), agent: None, kind, retry_after, hit }
}

/// Converts what the ledger reads. It learns `parallel` elsewhere and does not use shares.
fn reading(seen: &LimitSeen) -> Option<Reading> {
    let unit = Unit::named(&seen.unit).filter(|_| !matches!(&*seen.unit, "parallel" | "budget"))?;
    Some(Reading {
        unit,
        period: seen.period.map(span),
        limit: seen.limit,
        remaining: seen.remaining,
        coarse: seen.coarse,
        reset_in: seen.reset_in.filter(|_| seen.reset == ResetMeans::WindowEnds).map(span),
        full_in: seen.reset_in.filter(|_| seen.reset == ResetMeans::Full).map(span),
    })
}

fn used(usage: Usage, dialect: Dialect) -> Amounts {
    let (input, output) = (usage.charged_input(dialect), usage.output_tokens);
    let all = input.zip(output).map(|(input, output)| input.saturating_add(output));
    let figures = [(Unit::InputTokens, input), (Unit::OutputTokens, output), (Unit::Tokens, all)];
    let known = figures.into_iter().filter_map(|(unit, figure)| Some((unit, figure?)));
    Amounts::new(known).unwrap_or_default()
}

const fn tier(priority: u8) -> Priority {
    match priority {
        0 => Priority::Critical,
        1 => Priority::Standard,
        _ => Priority::Background,
    }
}

fn span(length: Duration) -> Span {
    Span(u64::try_from(length.as_micros()).unwrap_or(u64::MAX))
}
