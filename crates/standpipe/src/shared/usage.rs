//! What calls used, for the journal. Nothing here is decided, and nobody waits for it.

use std::time::Duration;

use standpipe_core::{
    Action, AgentName, Amounts, Key, Priority, Reserve, State, Text, ThrottleKind, Unit,
};

use super::Shared;
use crate::desk::Desk;
use crate::journal::{Use, Whose};
use crate::lease::Granted;
use crate::reply::{Meaning, Read};

/// A call that was admitted, as far as the record has to know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) agent: &'a str,
    pub(crate) model: Option<&'a str>,
    /// None where nobody knows it.
    pub(crate) tier: Option<Priority>,
    /// What it said it would take.
    pub(crate) cost: &'a Amounts,
    /// `false` in shadow mode.
    pub(crate) enforced: bool,
    /// Its money was computed: it will be from what it used.
    pub(crate) priced: bool,
}

/// The same of a call whose lease another process may have been granted.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    agent: AgentName,
    model: Option<Text>,
    tier: Priority,
    cost: Amounts,
    enforced: bool,
    priced: bool,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended<'a> {
    /// With these figures, and at the estimate for what they do not name.
    Used(&'a Amounts),
    /// The provider refused it for a reason of quota.
    Refused,
    /// It failed for a reason that says nothing about quota.
    Failed,
    /// It was never sent.
    Cancelled,
}

impl<'a> Ended<'a> {
    /// How a refusal ends a call. One for want of capacity says nothing about quota.
    pub(crate) const fn by_refusal(kind: ThrottleKind) -> Self {
        match kind {
            ThrottleKind::Overload => Self::Failed,
            _ => Self::Refused,
        }
    }

    /// How this ends a call, if it does.
    pub(crate) const fn by(action: &'a Action) -> Option<Self> {
        match action {
            Action::Commit(commit) if !commit.progress => Some(Self::Used(&commit.used)),
            Action::Cancel { .. } => Some(Self::Cancelled),
            _ => None,
        }
    }
}

impl Known {
    pub(crate) fn call(&self) -> Call<'_> {
        Call {
            agent: self.agent.as_str(),
            model: self.model.as_ref().map(Text::as_str),
            tier: Some(self.tier),
            cost: &self.cost,
            enforced: self.enforced,
            priced: self.priced,
        }
    }
}

impl Shared {
    /// A call was admitted.
    pub(crate) fn note_admitted(&self, desk: &Desk, granted: &Granted) {
        let retry = granted.reserve.retry_of.is_some();
        let admitted = granted.is_new.then_some(Use::Admitted { retry });
        // Who asks again for what it has already and gets it at once is no call.
        let waited = granted.is_new || !granted.waited.is_zero();
        let waited = waited.then(|| Use::Waited(millis(granted.waited)));
        self.record(granted.call().whose(desk), admitted.into_iter().chain(waited));
    }

    /// A call waited and was not admitted. In shadow mode nobody is in that place.
    pub(crate) fn note_waited(&self, desk: &Desk, asker: Asker<'_>, waited: Duration) {
        self.record(asker.whose(desk), [Use::Waited(millis(waited))]);
    }

    /// A call was not admitted.
    pub(crate) fn note_denied(&self, desk: &Desk, asker: Asker<'_>, reason: &'static str) {
        self.record(asker.whose(desk), [Use::Denied(reason)]);
    }

    /// A call ended.
    pub(crate) fn note_ended(&self, desk: &Desk, call: Call<'_>, how: Ended<'_>) {
        let whose = call.whose(desk);
        match how {
            Ended::Used(figures) => {
                let named = figures.iter();
                let at_estimate = call.cost.iter().filter(|(unit, _)| {
                    figures.of(unit).is_none() && !(call.priced && **unit == Unit::Usd)
                });
                let uses = named.chain(at_estimate).map(|(unit, amount)| Use::Used(unit, amount));
                self.record(whose, uses);
            }
            Ended::Refused | Ended::Failed => {
                let sent =
                    call.cost.of(&Unit::Requests).map(|sent| Use::Used(&Unit::Requests, sent));
                let refused = matches!(how, Ended::Refused).then_some(Use::Refused);
                self.record(whose, sent.into_iter().chain(refused));
            }
            Ended::Cancelled => self.record(whose, [Use::Cancelled]),
        }
    }

    /// A call was answered.
    pub(crate) fn note_answered(&self, desk: &Desk, call: Call<'_>, read: &Read, used: &Amounts) {
        match read.meaning {
            Meaning::Served => self.note_ended(desk, call, Ended::Used(&read.figures(used))),
            Meaning::Failed { .. } => self.note_ended(desk, call, Ended::Failed),
            Meaning::Refused { kind, .. } => self.note_ended(desk, call, Ended::by_refusal(kind)),
        }
    }

    /// The provider refused a call that nobody holds a lease for.
    pub(crate) fn note_refused(&self, desk: &Desk, agent: Option<&str>, kind: ThrottleKind) {
        if kind == ThrottleKind::Overload {
            return;
        }
        let agent = agent.unwrap_or(AgentName::OTHER);
        let counter = desk.counter();
        let state = counter.member.replica().state();
        let tier = AgentName::new(agent).and_then(|agent| own_tier(state, &agent));
        let enforced = is_enforced(state);
        drop(counter);
        let whose = Whose { pool: desk.pool(), agent, model: None, tier, enforced };
        self.record(whose, [Use::Refused]);
    }

    /// Adds it up. The keeper, if there is one, sees that it is written in time.
    fn record<'a>(&self, whose: Whose<'_>, uses: impl IntoIterator<Item = Use<'a>>) {
        if let Some(due) = self.journal.used(whose, uses) {
            self.keeper.plan(due);
        }
    }

    /// The call of a lease, while it is in flight. Only asked where a record is kept.
    pub(crate) fn call_of(&self, desk: &Desk, lease: Key) -> Option<Known> {
        if !self.journal.is_kept() {
            return None;
        }
        self.find(desk, |state| known(state, lease)).ok()?
    }
}

impl<'a> Call<'a> {
    fn whose(self, desk: &'a Desk) -> Whose<'a> {
        let Call { agent, model, tier, enforced, .. } = self;
        Whose { pool: desk.pool(), agent, model, tier, enforced }
    }
}

/// Who asked and has no lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) reserve: &'a Reserve,
    /// None where nobody knows it.
    pub(crate) tier: Option<Priority>,
}

impl<'a> Asker<'a> {
    fn whose(self, desk: &'a Desk) -> Whose<'a> {
        let Self { reserve, tier } = self;
        let (agent, model) = (reserve.agent.as_str(), reserve.model.as_ref().map(Text::as_str));
        Whose { pool: desk.pool(), agent, model, tier, enforced: true }
    }
}

impl Granted {
    /// Its call.
    pub(crate) fn call(&self) -> Call<'_> {
        Call {
            agent: self.reserve.agent.as_str(),
            model: self.reserve.model.as_ref().map(Text::as_str),
            tier: self.tier,
            cost: &self.reserve.cost,
            enforced: self.enforced,
            priced: self.priced,
        }
    }
}

/// Whether a pool holds calls back.
pub(crate) fn is_enforced(state: &State) -> bool {
    state.facts().config.as_ref().is_none_or(|config| config.enforce)
}

/// The tier a call asks in.
pub(crate) fn tier_asked(state: &State, reserve: &Reserve) -> Option<Priority> {
    reserve.priority.or_else(|| own_tier(state, &reserve.agent))
}

/// An agent's own tier. Those who are not told apart have none.
fn own_tier(state: &State, agent: &AgentName) -> Option<Priority> {
    if agent.as_str() == AgentName::OTHER {
        return None;
    }
    let rule = state.facts().config.as_ref().and_then(|config| config.agent(agent));
    Some(rule.and_then(|rule| rule.priority).unwrap_or_default())
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn known(state: &State, lease: Key) -> Option<Known> {
    let facts = state.facts();
    let lease = facts.leases.get(&lease)?;
    Some(Known {
        agent: facts.agents.get(usize::from(lease.agent))?.name.clone(),
        model: lease.call.model.clone(),
        tier: lease.tier,
        cost: lease.call.cost.clone(),
        enforced: is_enforced(state),
        priced: state.has_prices(),
    })
}
