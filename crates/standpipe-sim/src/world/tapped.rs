//! Agents that ask the tap before each call, and tell it what came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use standpipe_core::{
    Action, AgentName, Amounts, Commit, Decision, Hit, Key, Observed, Priority, Reading, Reason,
    Reserve, Span, ThrottleKind, Throttled, Unit, bounds,
};
use standpipe_dialect::{
    Answer, Dialect, Kind, LimitSeen, Refused, ResetMeans, Response, Usage, Verdict,
};

use super::habits::Habits;
use super::manner::{Ask, Manner, Step};
use crate::provider::{ORIGIN, Reply};
use crate::tap::{Asks, Tap};

/// How often a waiter looks whether it can go, in microseconds.
const LOOK: u64 = 1_000_000;

/// An agent on the tap: a session of its own, and the one retry layer.
#[derive(Debug)]
pub struct Tapped {
    tap: Tap,
    name: AgentName,
    habits: Habits,
    /// Its number at the tap.
    agent: usize,
    /// By call: how far it has come.
    errands: BTreeMap<usize, Errand>,
}

#[derive(Clone, Copy, Debug)]
struct Errand {
    deadline: u64,
    tries: u32,
    ticket: Option<Key>,
    /// Until when it waits with that.
    spell: u64,
    lease: Option<Key>,
    retry_of: Option<Key>,
}

impl Tapped {
    /// One that comes to a tap under a name.
    #[must_use]
    pub fn new(tap: &Tap, name: AgentName, habits: Habits) -> Self {
        let agent = tap.enter();
        Self { tap: tap.clone(), name, habits, agent, errands: BTreeMap::new() }
    }

    /// Asks whether a call may be made.
    fn asks(&mut self, now: u64, ask: &Ask) -> Step {
        let Some(errand) = self.errands.get(&ask.number).copied() else { return Step::GiveUp };
        let Habits { waits, says, .. } = self.habits;
        let said = says.of(&ask.call);
        let patience = waits.patience(errand.deadline.saturating_sub(now));
        let reserve = Reserve {
            priority: Some(tier(ask.priority)),
            patience: Span(patience),
            retry_of: errand.retry_of,
            ticket: errand.ticket,
            bytes: said.bytes,
            at_most: said.at_most,
            ..Reserve::new(self.name.clone(), said.cost)
        };
        let (agent, call, retry) = (self.agent, ask.number, errand.retry_of.is_some());
        let asks = Asks { agent, call, retry, action: Action::from(reserve) };
        let Some(decision) = self.tap.reserve(ask.pool, &asks, now) else { return Step::GiveUp };
        let errand = self.errands.entry(ask.number).or_insert(errand);
        match decision {
            Decision::Admit(grant) => {
                errand.ticket = None;
                errand.lease = Some(grant.lease);
                errand.tries += 1;
                Step::Send
            }
            Decision::Wait(hold) => {
                if errand.ticket.replace(hold.ticket) != Some(hold.ticket) {
                    errand.spell = now.saturating_add(patience);
                }
                // The first few look every second, the others every five.
                let every = if hold.position <= bounds::WAKE_EARLIER { LOOK } else { 5 * LOOK };
                let until = hold.refusal.until.map_or(errand.spell, Tap::moment);
                Step::WaitUntil(until.min(now.saturating_add(every)).min(errand.spell))
            }
            Decision::Refuse(refusal) => {
                errand.ticket = None;
                // When a call in flight ends is not known: then it asks again in a while.
                let ends = !matches!(refusal.reason, Reason::Never | Reason::Terminal);
                let soon = ends.then(|| now.saturating_add(LOOK));
                match waits.again(now, refusal.until.map(Tap::moment).or(soon)) {
                    Some(until) if until <= errand.deadline && until > now => {
                        Step::WaitUntil(until)
                    }
                    _ => self.gives_up(ask),
                }
            }
        }
    }

    fn gives_up(&mut self, ask: &Ask) -> Step {
        self.errands.remove(&ask.number);
        Step::GiveUp
    }

    /// Tries again, if it is worth it and not too often yet.
    fn again(&mut self, now: u64, ask: &Ask, lease: Key) -> Step {
        let tries = self.habits.tries;
        match self.errands.get_mut(&ask.number) {
            Some(errand) if errand.tries < tries && now < errand.deadline => {
                errand.retry_of = Some(lease);
                self.asks(now, ask)
            }
            _ => self.gives_up(ask),
        }
    }

    fn tells(&self, now: u64, ask: &Ask, action: Action) {
        let _ = self.tap.send(ask.pool, self.agent, action, now);
    }

    fn tells_limits(&self, now: u64, ask: &Ask, lease: Key, limits: &[LimitSeen]) {
        let readings: Vec<_> = limits.iter().filter_map(reading).collect();
        if !readings.is_empty() {
            self.tells(now, ask, Action::Observed(Observed { lease: Some(lease), readings }));
        }
    }
}

impl Manner for Tapped {
    fn wants(&mut self, now: u64, ask: &Ask) -> Step {
        let deadline = now.saturating_add(self.habits.patience);
        let errand =
            Errand { deadline, tries: 0, ticket: None, spell: 0, lease: None, retry_of: None };
        self.errands.insert(ask.number, errand);
        self.asks(now, ask)
    }

    fn replied(&mut self, now: u64, ask: &Ask, reply: &Reply) -> Step {
        let errand = self.errands.get_mut(&ask.number);
        let Some(lease) = errand.and_then(|errand| errand.lease.take()) else {
            return self.gives_up(ask);
        };
        let dialect = self.tap.dialect(ask.pool);
        let answer = read(dialect, reply, now);
        let refused = Commit { lease, used: Amounts::default(), progress: false, refused: true };
        match answer.verdict {
            Verdict::Ok => {
                let used = answer.usage.map_or_else(Amounts::default, |usage| used(usage, dialect));
                // Headers come first, and what is in flight counts on a limit that is new.
                self.tells_limits(now, ask, lease, &answer.limits);
                self.tells(now, ask, Action::Commit(Commit { used, refused: false, ..refused }));
                self.errands.remove(&ask.number);
                Step::Done
            }
            Verdict::Refused(why) => {
                let terminal = why.kind == Kind::Terminal;
                self.tells(now, ask, Action::Throttled(throttled(lease, why)));
                self.tells_limits(now, ask, lease, &answer.limits);
                if terminal { self.gives_up(ask) } else { self.again(now, ask, lease) }
            }
            Verdict::Failed { transient } => {
                self.tells(now, ask, Action::Commit(refused));
                if transient { self.again(now, ask, lease) } else { self.gives_up(ask) }
            }
        }
    }

    fn woken(&mut self, now: u64, ask: &Ask) -> Step {
        self.asks(now, ask)
    }

    fn rings(&mut self) -> Vec<usize> {
        self.tap.rings()
    }

    fn killed(&mut self, now: u64) {
        self.tap.killed(self.agent, now);
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

/// What the ledger can use of it: it has other ways for calls in flight, and none for shares.
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
    let told = figures.into_iter().filter_map(|(unit, figure)| Some((unit, figure?)));
    Amounts::new(told).unwrap_or_default()
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
