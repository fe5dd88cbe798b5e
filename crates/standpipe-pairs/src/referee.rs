//! The referee: from what callers and the provider wrote down, whether a guarantee was broken.
//!
//! A charge or a lease begins at some instant between the ask and the answer, and ends after the
//! caller begins to settle it. The referee counts only what is certain from these bounds, so a slow
//! machine can hide a violation but never make one up. It knows nothing of the ledger.

pub mod cap;
pub mod fair;
pub mod paced;
pub mod provider;
pub mod within;

use std::collections::BTreeMap;

use crate::record::Line;
use crate::setup::{BUCKET, DAY_PERIOD, FAIR, Rule, Setup, draws_on};

/// One ask and what became of it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The process.
    pub worker: String,
    /// The pool.
    pub pool: String,
    /// The lease it was granted; empty where that is not written down.
    pub lease: String,
    /// When it asked.
    pub asked: u64,
    /// How many slots it asked for, where the pool has slots.
    pub slots: u64,
    /// It was in background.
    pub background: bool,
    /// How long it was ready to wait, in milliseconds.
    pub timeout: u64,
    /// When it had the answer.
    pub answered: Option<u64>,
    /// The answer was a grant.
    pub granted: bool,
    /// It was decided without the store.
    pub local: bool,
    /// It was given back without a call.
    pub cancelled: bool,
    /// The provider's reply did not arrive.
    pub unanswered: bool,
    /// Until when the process certainly held the lease.
    pub held_until: u64,
    /// The process has settled it, or ended in good order.
    pub settled: bool,
    /// The last sign of life of the process.
    pub last: u64,
    /// The words of a refusal or an error.
    pub words: String,
}

/// Limits that were in force from some instant on.
#[derive(Clone, Debug)]
pub struct Era {
    /// Not before this.
    pub begins: u64,
    /// At this at the latest.
    pub sure: u64,
    /// What was in force.
    pub setup: Setup,
}

/// What spec section 2 permits in this scene.
#[derive(Clone, Debug, Default)]
pub struct Permitted {
    /// Each limit so many times, once for each server that takes writes (a split brain).
    pub times: u64,
    /// So many times more, if calls that were admitted without the store count (`share`).
    pub shares: u64,
    /// Calls that were admitted without the store do not count (`open`).
    pub local: bool,
    /// At these instants the ledger lost what was recorded for processes that were dead by then.
    pub dead_forgotten: Vec<u64>,
    /// At these instants the ledger was lost: limits count as full and return over one period.
    pub lost: Vec<u64>,
    /// At these instants the ledger was replaced by an older state, and the store pauses until
    /// living processes have restored what it lacks.
    pub replaced: Vec<u64>,
    /// A living process was stopped, or had no thread to look after its pools: it may restore what
    /// it did only later.
    pub hindered: bool,
    /// At these instants the same file was made older, which only a process that had read further
    /// notices. Living processes restore what it lacks within a second.
    pub stale: Vec<u64>,
    /// At these instants the whole store was deleted: nothing of it is known, and nothing counts
    /// as full.
    pub wiped: Vec<u64>,
    /// A dead process may be noticed only by two minutes of silence, because what shows its death
    /// was deleted or is of another state of the ledger.
    pub slow_reclaim: bool,
    /// The processes whose death the machine cannot show: what they held returns after two minutes.
    pub unseen: Vec<String>,
    /// From this instant on the store's clock runs ahead.
    pub clock_ahead: Vec<u64>,
    /// The pools whose ledger was lost or replaced; all of them if none is named.
    pub harmed: Vec<&'static str>,
}

impl Permitted {
    /// The ledger was replaced by an older state.
    pub fn replaced(&mut self, at: u64) {
        self.dead_forgotten.push(at);
        self.replaced.push(at);
        // It may hold leases of processes that ended in good order since.
        self.slow_reclaim = true;
    }

    /// The ledger may forget something that happened.
    fn forgets(&self) -> bool {
        let Self { dead_forgotten, lost, replaced, clock_ahead, wiped, .. } = self;
        [dead_forgotten, lost, replaced, clock_ahead, wiped].iter().any(|at| !at.is_empty())
    }

    /// What is permitted on one pool.
    fn on(&self, pool: &str) -> Self {
        if self.harmed.is_empty() || self.harmed.contains(&pool) {
            return self.clone();
        }
        Self {
            dead_forgotten: Vec::new(),
            lost: Vec::new(),
            replaced: Vec::new(),
            stale: Vec::new(),
            ..self.clone()
        }
    }

    /// A part of the same file is as it was before.
    pub fn rolled_back(&mut self, at: u64) {
        self.replaced(at);
        self.stale.push(at);
    }
}

/// The calls in one process's record.
#[must_use]
pub fn calls(worker: &str, lines: &[Line]) -> Vec<Call> {
    let last = lines.last().map_or(0, |line| line.at);
    let mut calls: BTreeMap<u64, Call> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.number > 0) {
        if line.kind == "ask" {
            let call = Call {
                worker: worker.to_owned(),
                pool: line.pool.clone(),
                lease: String::new(),
                asked: line.at,
                slots: 1,
                background: false,
                timeout: line.rest.parse().unwrap_or_default(),
                answered: None,
                granted: false,
                local: false,
                cancelled: false,
                unanswered: false,
                held_until: last,
                settled: false,
                last,
                words: String::new(),
            };
            calls.insert(line.number, call);
            continue;
        }
        let Some(call) = calls.get_mut(&line.number) else { continue };
        match line.kind.as_str() {
            "grant" => {
                call.answered = Some(line.at);
                call.granted = true;
                let (how, lease) = line.rest.split_once(' ').unwrap_or((&line.rest, ""));
                (call.local, call.lease) = (how == "local", lease.to_owned());
            }
            "unanswered" => call.unanswered = true,
            "refuse" | "error" => {
                call.answered = Some(line.at);
                call.words = format!("{}: {}", line.kind, line.rest);
            }
            "settle" => (call.held_until, call.settled) = (line.at, true),
            "cancel" => (call.held_until, call.settled, call.cancelled) = (line.at, true, true),
            _ => {}
        }
    }
    calls.into_values().collect()
}

/// Everything that was broken, in words.
#[must_use]
pub fn judge(calls: &[Call], eras: &[Era], permitted: &Permitted) -> Vec<String> {
    let mut broken = Vec::new();
    for pool in pools(eras) {
        broken.extend(kept(pool, calls, eras, permitted));
    }
    // With `open` a bucket owes what was taken without a limit, and says when it has refilled.
    let owes = |call: &&Call| permitted.local && call.pool == BUCKET;
    // An older ledger has tickets of ended sessions. Where one unit comes at a time, they become
    // due one after the other, and each holds up those behind it for two seconds.
    let is_older = !permitted.on(FAIR).replaced.is_empty();
    let waits = calls.iter().filter(|call| !(owes(call) || is_older && call.pool == FAIR));
    let starved = waits.filter_map(|call| Some((call, starved(call)?)));
    let unexcused = starved.filter(|(call, _)| !is_kept(call, calls, eras, permitted));
    broken.extend(unexcused.map(|(_, text)| text));
    broken
}

/// Whether too few slots were left for a call, because dead processes hold them and the machine
/// cannot show their death.
fn is_kept(call: &Call, calls: &[Call], eras: &[Era], permitted: &Permitted) -> bool {
    let permitted = permitted.on(&call.pool);
    // An older ledger has leases that a process settled before it died.
    let is_open = |own: &Call| !own.settled || !permitted.replaced.is_empty();
    let by_unseen = calls.iter().filter(|own| {
        own.granted && own.pool == call.pool && permitted.unseen.contains(&own.worker)
    });
    let held: u64 = by_unseen.filter(|own| is_open(own)).map(|own| own.slots).sum();
    let pools = eras.iter().flat_map(|era| &era.setup.pools);
    let slots = pools.filter(|pool| pool.name == call.pool).filter_map(|pool| match pool.rule {
        Rule::Parallel(amount) => Some(amount),
        _ => None,
    });
    slots.min().is_some_and(|slots| held > 0 && slots < held + call.slots)
}

/// Whether the limits of a pool were kept: by what the store admitted, and by all calls together.
fn kept(pool: &'static str, calls: &[Call], eras: &[Era], permitted: &Permitted) -> Vec<String> {
    let found = Case::each(pool, calls, eras, permitted)
        .map(|case| [case.over(), case.holders()].concat())
        .find(|found| !found.is_empty());
    found.unwrap_or_default()
}

fn pools(eras: &[Era]) -> Vec<&'static str> {
    let first = eras.first().map(|era| era.setup.pools.iter().map(|pool| pool.name).collect());
    first.unwrap_or_default()
}

/// Waits that did not end within their time and two seconds. Only for runs by hand: a machine that
/// is busy with other things breaks this too.
#[must_use]
pub fn late(calls: &[Call], permitted: &Permitted) -> Vec<String> {
    if permitted.hindered {
        return Vec::new();
    }
    let late = calls.iter().filter_map(|call| {
        let waited = call.answered?.saturating_sub(call.asked) / 1_000;
        let Call { worker, pool, timeout, .. } = call;
        (waited > timeout + 2_000)
            .then(|| format!("{worker} waited {waited} ms on {pool} with {timeout} ms of time"))
    });
    late.collect()
}

/// A patient call that was refused for the time it waited, or never answered by a living process.
fn starved(call: &Call) -> Option<String> {
    let waited = call.answered?.saturating_sub(call.asked) / 1_000;
    (call.timeout >= 20_000 && !call.granted && waited >= call.timeout).then(|| {
        format!("{} waited {waited} ms on {} in vain: {}", call.worker, call.pool, call.words)
    })
}

struct Case<'a> {
    pool: &'static str,
    granted: Vec<&'a Call>,
    eras: &'a [Era],
    permitted: Permitted,
}

impl<'a> Case<'a> {
    /// What the store admitted, and all calls together unless those without the store do not count.
    fn each(
        pool: &'static str,
        calls: &'a [Call],
        eras: &'a [Era],
        permitted: &Permitted,
    ) -> impl Iterator<Item = Self> {
        let counts = |call: &&Call| draws_on(&call.pool, pool) && call.granted;
        let mut granted: Vec<&Call> = calls.iter().filter(counts).collect();
        granted.sort_by_key(|call| call.answered);
        let mut permitted = permitted.on(pool);
        permitted.times = permitted.times.max(1);
        let by_store = granted.iter().copied().filter(|call| !call.local).collect();
        let by_store = Self { pool, granted: by_store, eras, permitted: permitted.clone() };
        permitted.times += permitted.shares;
        let all = (!permitted.local).then_some(Self { pool, granted, eras, permitted });
        [by_store].into_iter().chain(all)
    }

    /// The era in which a call certainly was decided.
    fn era_of(&self, call: &Call) -> Option<usize> {
        let answered = call.answered?;
        let next = |at: usize| self.eras.get(at + 1).map_or(u64::MAX, |era| era.begins);
        (0..self.eras.len()).find(|at| self.eras[*at].sure <= call.asked && answered < next(*at))
    }

    /// The limit that certainly was in force for a call, and from when charges are remembered.
    fn rule_for(&self, call: &Call) -> Option<(Rule, u64)> {
        let at = self.era_of(call)?;
        let era = &self.eras[at];
        let pool = era.setup.pools.iter().find(|pool| pool.name == self.pool)?;
        let pool_of = |at: usize| {
            let pools = self.eras.get(at).map(|era| &era.setup.pools);
            pools.and_then(|pools| pools.iter().find(|pool| pool.name == self.pool))
        };
        // Each configuration remembers charges for the longest period in it and the one before.
        let memory = |at: usize| {
            // One that a deleted store had is not known to the next one.
            let kept = |at: &usize| {
                self.permitted.wiped.iter().all(|wiped| *wiped < self.eras[*at].begins)
            };
            let before = at.checked_sub(1).filter(kept).and_then(pool_of);
            let periods = [before, pool_of(at)];
            periods.into_iter().flatten().map(|pool| period(pool.rule)).max().unwrap_or_default()
        };
        let forgotten = (0..at).map(|at| self.eras[at + 1].sure.saturating_sub(memory(at)));
        let remembered = forgotten.max().unwrap_or_default();
        // A bucket starts empty, not below, when it is enforced again. A window counts what was
        // admitted meanwhile until that has aged.
        let is_bucket = matches!(pool.rule, Rule::Bucket(..));
        let unenforced =
            (0..at).filter(|at| is_bucket && pool_of(*at).is_some_and(|pool| !pool.enforced));
        let remembered = unenforced
            .map(|at| self.eras[at + 1].sure)
            .fold(remembered, |one, other| one.max(other));
        pool.enforced.then_some((pool.rule, remembered))
    }

    fn times(&self, amount: u64) -> u64 {
        amount * self.permitted.times
    }

    /// What returned by an instant of limits that were lost within the last period.
    fn returned(&self, amount: u64, period: u64, answered: u64) -> u64 {
        let since = self.permitted.lost.iter().filter(|at| **at <= answered);
        let since = since.map(|at| answered - at).filter(|since| *since <= 2 * period);
        since.map(|since| (amount * since).div_ceil(period).min(amount) + 1).sum()
    }

    /// Whether the ledger may have forgotten `earlier` when it decided on `later`.
    fn may_be_forgotten(&self, earlier: &Call, later: &Call) -> bool {
        let between = |at: &&u64| {
            earlier.asked <= **at && later.answered.is_none_or(|answered| answered >= **at)
        };
        let restored = |at: &u64| later.asked > at + 1_000_000;
        self.permitted.stale.iter().any(|at| between(&at) && !restored(at))
            || self.permitted.hindered && self.permitted.replaced.iter().any(|at| between(&at))
            || self.permitted.clock_ahead.iter().any(|at| between(&at))
            || self.permitted.wiped.iter().any(|at| between(&at))
            || self.permitted.dead_forgotten.iter().any(|at| {
                // Dead at most a second later, before it could restore anything.
                between(&at) && earlier.last <= at + 1_000_000
            })
    }

    /// Whether `other` was certainly charged before `call`. Where the limits stay the same and
    /// nothing is forgotten, their order does not matter while both lie between `from` and the
    /// answer of `call`.
    fn is_before(&self, other: &Call, call: &Call, from: u64) -> bool {
        let is_steady = self.eras.len() == 1 && !self.permitted.forgets();
        other.answered <= Some(call.asked)
            || (is_steady && call.asked > from && other.answered <= call.answered)
    }

    /// Rates: every grant against all charges that certainly came before it.
    fn over(&self) -> Vec<String> {
        let charged: Vec<&Call> =
            self.granted.iter().copied().filter(|call| !call.cancelled).collect();
        let mut broken = Vec::new();
        for call in &charged {
            let (Some((rule, remembered)), Some(answered)) = (self.rule_for(call), call.answered)
            else {
                continue;
            };
            let from = match rule {
                Rule::Day(_, begins) => day_of(answered, begins).saturating_sub(1),
                other => answered.saturating_sub(period(other)),
            };
            let mut before: Vec<u64> = charged
                .iter()
                .filter(|other| !std::ptr::eq(**other, *call))
                .filter(|other| self.is_before(other, call, from))
                .filter(|other| other.asked >= remembered && !self.may_be_forgotten(other, call))
                .map(|other| other.asked)
                .collect();
            before.sort_unstable_by(|a, b| b.cmp(a));
            let found = match rule {
                Rule::Window(amount, _) | Rule::Day(amount, _) => {
                    let period = period(rule);
                    let count = before.iter().filter(|asked| **asked > from).count() as u64 + 1;
                    let most = self.times(amount) + self.returned(amount, period, answered);
                    (count > most).then(|| format!("{count} of {amount}"))
                }
                Rule::Bucket(amount, period, burst) => {
                    before.iter().zip(2_u64..).find_map(|(asked, count)| {
                        // Both instants are rounded down.
                        let elapsed = answered + 1 - call.asked.min(*asked);
                        let refilled = elapsed * amount / period;
                        let returned = self.returned(burst, period, answered);
                        let most = self.times(burst + refilled) + returned;
                        (count > most).then(|| format!("{count} of {most}"))
                    })
                }
                _ => None,
            };
            if let Some(found) = found {
                broken.push(format!("over on {}: {found} at {answered}", self.pool));
                break;
            }
        }
        broken
    }

    /// Slots: how many processes certainly held one at the same instant.
    fn holders(&self) -> Vec<String> {
        for call in &self.granted {
            let Some(at) = call.answered else { continue };
            let Some((Rule::Parallel(amount), _)) = self.rule_for(call) else { continue };
            let holders = self.granted.iter().filter(|other| {
                other.answered.is_some_and(|answered| answered <= at)
                    && other.held_until > at
                    && !self.may_be_forgotten(other, call)
                    && matches!(self.rule_for(other), Some((Rule::Parallel(_), _)))
            });
            let holders: Vec<&Call> = holders.copied().collect();
            let held: u64 = holders.iter().map(|other| other.slots).sum();
            if held > self.times(amount) {
                let who: Vec<&str> = holders.iter().map(|other| other.worker.as_str()).collect();
                let (who, pool) = (who.join(", "), self.pool);
                return vec![format!("{held} holders of {amount} on {pool}: {who}")];
            }
        }
        Vec::new()
    }
}

/// When the day of an instant began; runs are shorter than a day.
const fn day_of(at: u64, begins: u64) -> u64 {
    match at.checked_sub(begins) {
        Some(since) => at - since % DAY_PERIOD,
        None => begins.saturating_sub(DAY_PERIOD),
    }
}

fn period(rule: Rule) -> u64 {
    match rule {
        Rule::Window(_, period) | Rule::Bucket(_, period, _) => period,
        Rule::Day(..) => DAY_PERIOD,
        Rule::Parallel(_) | Rule::Absent => 0,
    }
}
