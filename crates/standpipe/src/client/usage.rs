//! What calls used, for the journal.
//!
//! It only counts: it changes no decision and never waits for the store to write. The sums are in
//! `standpipe-observe`.

use std::time::Duration;

use standpipe_core::{
    Action, AgentName, Amounts, Key, PoolRef, Priority, Reserve, State, Text, ThrottleKind, Unit,
};
use standpipe_observe::pool_set;

use super::StoreClient;
use crate::client::PoolClient;
use crate::journal::{UsageChange, UsageKey};
use crate::lease::Granted;
use crate::provider::reply::{Meaning, Read};

/// What the journal records of a call that was admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) agent: &'a str,
    pub(crate) model: Option<&'a str>,
    /// `None` if it is not known.
    pub(crate) tier: Option<Priority>,
    /// The cost it was admitted with.
    pub(crate) cost: &'a Amounts,
    /// `false` in shadow mode.
    pub(crate) enforced: bool,
    /// Whether its money is computed from what it used.
    pub(crate) priced: bool,
    /// The pools of a call on several.
    pub(crate) part_of: Option<&'a PoolRef>,
}

/// The same for a call whose lease may have been granted to another process.
#[derive(Clone, Debug)]
pub(crate) struct KnownCall {
    agent: AgentName,
    model: Option<Text>,
    tier: Priority,
    cost: Amounts,
    enforced: bool,
    priced: bool,
    part_of: Option<PoolRef>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended<'a> {
    /// With these amounts, and at the estimate for units they do not name.
    Used(&'a Amounts),
    /// The provider refused it for a reason of quota.
    Refused,
    /// It failed for a reason other than quota.
    Failed,
    /// It was never sent.
    Cancelled,
}

impl<'a> Ended<'a> {
    /// Returns how a refusal ends a call. An overload of the provider is no matter of quota.
    pub(crate) const fn by_refusal(kind: ThrottleKind) -> Self {
        match kind {
            ThrottleKind::Overload => Self::Failed,
            _ => Self::Refused,
        }
    }

    /// Returns how an action ends a call, if it does.
    pub(crate) const fn by(action: &'a Action) -> Option<Self> {
        match action {
            Action::Commit(commit) if !commit.progress => Some(Self::Used(&commit.used)),
            Action::Cancel { .. } | Action::Withdraw { .. } => Some(Self::Cancelled),
            _ => None,
        }
    }
}

impl KnownCall {
    pub(crate) fn call(&self) -> Call<'_> {
        Call {
            agent: self.agent.as_str(),
            model: self.model.as_ref().map(Text::as_str),
            tier: Some(self.tier),
            cost: &self.cost,
            enforced: self.enforced,
            priced: self.priced,
            part_of: self.part_of.as_ref(),
        }
    }
}

/// What a provider counts of a call that it does not serve.
static SENT: [Unit; 3] = [Unit::Requests, Unit::Points, Unit::Content];

impl StoreClient {
    /// Records that a call was admitted.
    pub(crate) fn note_admitted(&self, client: &PoolClient, granted: &Granted, waited: Duration) {
        let retry = granted.reserve.retry_of.is_some();
        let admitted = granted.is_new.then_some(UsageChange::Admitted { retry });
        // A repeated id that returns an existing lease at once is not a new call.
        let counts = granted.is_new || !waited.is_zero();
        let waited = counts.then(|| UsageChange::Waited(millis(waited)));
        self.record(granted.call().whose(client), admitted.into_iter().chain(waited));
    }

    /// Records that a call waited and was not admitted. In shadow mode every call is admitted.
    pub(crate) fn note_waited(
        &self,
        client: &PoolClient,
        requester: Requester<'_>,
        waited: Duration,
    ) {
        self.record(requester.whose(client), [UsageChange::Waited(millis(waited))]);
    }

    /// Records that a call was not admitted.
    pub(crate) fn note_denied(
        &self,
        client: &PoolClient,
        requester: Requester<'_>,
        reason: &'static str,
    ) {
        self.record(requester.whose(client), [UsageChange::Denied(reason)]);
    }

    /// Records how a call ended.
    pub(crate) fn note_ended(&self, client: &PoolClient, call: Call<'_>, how: Ended<'_>) {
        let whose = call.whose(client);
        match how {
            Ended::Used(figures) => {
                let named = figures.iter();
                let at_estimate = call.cost.iter().filter(|(unit, _)| {
                    // Slots are held while the call runs, and not used up.
                    let counted = **unit != Unit::Parallel;
                    let computed = call.priced && **unit == Unit::Usd;
                    figures.of(unit).is_none() && counted && !computed
                });
                let uses =
                    named.chain(at_estimate).map(|(unit, amount)| UsageChange::Used(unit, amount));
                self.record(whose, uses);
            }
            Ended::Refused | Ended::Failed => {
                let sent = SENT.iter();
                let sent =
                    sent.filter_map(|unit| Some(UsageChange::Used(unit, call.cost.of(unit)?)));
                let refused = matches!(how, Ended::Refused).then_some(UsageChange::Refused);
                self.record(whose, sent.chain(refused));
            }
            Ended::Cancelled => self.record(whose, [UsageChange::Cancelled]),
        }
    }

    /// Records how the provider answered a call.
    pub(crate) fn note_answered(
        &self,
        client: &PoolClient,
        call: Call<'_>,
        read: &Read,
        used: &Amounts,
    ) {
        match read.meaning {
            Meaning::Served => self.note_ended(client, call, Ended::Used(&read.figures(used))),
            Meaning::Failed { .. } => self.note_ended(client, call, Ended::Failed),
            Meaning::Refused { kind, .. } => self.note_ended(client, call, Ended::by_refusal(kind)),
        }
    }

    /// Records that the provider refused a call without a lease.
    pub(crate) fn note_refused(
        &self,
        client: &PoolClient,
        agent: Option<&str>,
        kind: ThrottleKind,
    ) {
        if kind == ThrottleKind::Overload {
            return;
        }
        let agent = agent.unwrap_or(AgentName::OTHER);
        let dispatcher = client.dispatcher();
        let state = dispatcher.participant.replica().state();
        let tier = AgentName::new(agent).and_then(|agent| own_tier(state, &agent));
        let enforced = is_enforced(state);
        drop(dispatcher);
        let whose =
            UsageKey { pool: client.pool(), agent, model: None, tier, enforced, part: false };
        self.record(whose, [UsageChange::Refused]);
    }

    /// Adds to the sums. The maintenance thread, if it runs, writes them in time.
    fn record<'a>(&self, whose: UsageKey<'_>, uses: impl IntoIterator<Item = UsageChange<'a>>) {
        if let Some(due) = self.journal().used(whose, uses) {
            self.maintenance().plan(due);
        }
    }

    /// Returns the call of a lease while it is in flight. Without a journal it reads nothing.
    pub(crate) fn call_of(&self, client: &PoolClient, lease: Key) -> Option<KnownCall> {
        if !self.journal().is_kept() {
            return None;
        }
        self.find(client, |state| known_call(state, lease)).ok()?
    }
}

impl<'a> Call<'a> {
    fn whose(self, client: &'a PoolClient) -> UsageKey<'a> {
        let Call { agent, model, tier, enforced, part_of, .. } = self;
        let part = pool_set::is_part(part_of, client.pool());
        UsageKey { pool: client.pool(), agent, model, tier, enforced, part }
    }
}

/// A caller without a lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester<'a> {
    pub(crate) reserve: &'a Reserve,
    /// `None` if it is not known.
    pub(crate) tier: Option<Priority>,
}

impl<'a> Requester<'a> {
    fn whose(self, client: &'a PoolClient) -> UsageKey<'a> {
        let Self { reserve, tier } = self;
        let (agent, model) = (reserve.agent.as_str(), reserve.model.as_ref().map(Text::as_str));
        let part = pool_set::is_part(reserve.part_of.as_ref(), client.pool());
        UsageKey { pool: client.pool(), agent, model, tier, enforced: true, part }
    }
}

impl Granted {
    /// Returns the call of the lease.
    pub(crate) fn call(&self) -> Call<'_> {
        Call {
            agent: self.reserve.agent.as_str(),
            model: self.reserve.model.as_ref().map(Text::as_str),
            tier: self.tier,
            cost: &self.reserve.cost,
            enforced: self.enforced,
            priced: self.priced,
            part_of: self.reserve.part_of.as_ref(),
        }
    }
}

/// Returns whether a pool enforces its limits.
pub(crate) fn is_enforced(state: &State) -> bool {
    state.facts().config.as_ref().is_none_or(|config| config.enforce)
}

/// Returns the tier that a call requests.
pub(crate) fn requested_tier(state: &State, reserve: &Reserve) -> Option<Priority> {
    reserve.priority.or_else(|| own_tier(state, &reserve.agent))
}

/// Returns an agent's own tier. The agent that stands for all unnamed ones has none.
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

pub(crate) fn known_call(state: &State, lease: Key) -> Option<KnownCall> {
    let facts = state.facts();
    let lease = facts.leases.get(&lease)?;
    Some(KnownCall {
        agent: facts.agents.get(usize::from(lease.agent))?.name.clone(),
        model: lease.call.model.clone(),
        tier: lease.tier,
        cost: lease.call.cost.clone(),
        enforced: is_enforced(state),
        priced: state.has_prices(),
        part_of: lease.call.part_of.clone(),
    })
}
