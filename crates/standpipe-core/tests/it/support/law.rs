//! What the book allows: the room on every limit, when a call may be made, and whether what was
//! admitted kept to guarantee 1 in every stretch of time, by trying them all.

use std::collections::BTreeSet;

use standpipe_core::{
    AgentName, AgentRule, Amounts, Instant, Priority, Reserve, Rule, Span, bounds,
};

use super::book::{Book, Call, Guarantee};
use super::mark::{Charge, Mark};

impl Book {
    /// Whether a call may be made now, as far as limits and the pause are concerned.
    pub(crate) fn admits(&self, cost: &Amounts) -> bool {
        !self.is_never(cost) && self.objections(cost).is_empty()
    }

    /// Whether the cost is above a stated limit.
    pub(crate) fn is_never(&self, cost: &Amounts) -> bool {
        let limits = self.config.limits.iter().enumerate();
        limits.into_iter().any(|(at, limit)| self.need(at, cost) > limit.stated())
    }

    /// Why a call may not be made now.
    pub(crate) fn objections(&self, cost: &Amounts) -> Vec<(Guarantee, String)> {
        let mut objections = Vec::new();
        if self.now < self.paused_until {
            objections.push((Guarantee::Pause, format!("paused until {:?}", self.paused_until)));
        }
        for (at, limit) in self.config.limits.iter().enumerate() {
            let need = self.need(at, cost);
            if need > 0 && !self.has_room(at, need) {
                let what = format!("{need} of {limit:?} with {} left", self.room(at));
                objections.push((self.guarantee(at), what));
            }
            let opens = self.pace_opens(at);
            if need > 0 && self.now < opens {
                objections.push((Guarantee::Pace, format!("{limit:?} opens at {opens:?}")));
            }
        }
        objections
    }

    /// Why a call of this agent may not be made now, as far as caps and other agents' floors are
    /// concerned. Only what is certain from the outside: windows and calls in flight, and floors of
    /// agents that have a call in flight or had one admitted a moment ago. What is earmarked for a
    /// ticket that is due is not kept for an agent that returns afterwards.
    pub(crate) fn share_objections(
        &self,
        reserve: &Reserve,
        may_be_due: bool,
    ) -> Vec<(Guarantee, String)> {
        let mut objections = Vec::new();
        let caps = self.config.agent(&reserve.agent).map_or(&[][..], |rule| &rule.caps);
        for (at, limit) in self.config.limits.iter().enumerate() {
            let need = self.need(at, &reserve.cost);
            if need == 0 || matches!(limit.rule, Rule::Bucket { .. }) {
                continue;
            }
            let used = self.used_by(at, &reserve.agent);
            let cap = caps.iter().filter_map(|cap| cap.of_limit(limit)).min();
            let cap = cap.map(|cap| cap.max(1));
            if cap.is_some_and(|cap| used + need > cap) {
                objections.push((Guarantee::Cap, format!("{used} and {need} of {cap:?}")));
            }
            let kept = self.kept_from(at, reserve);
            if i128::from(need + kept) > self.room(at) && kept > 0 && !may_be_due {
                let what = format!("{need} of {} with {kept} kept", self.room(at));
                objections.push((Guarantee::Floor, what));
            }
        }
        objections
    }

    /// What the floors of others keep of a limit from this caller, at least.
    fn kept_from(&self, limit: usize, reserve: &Reserve) -> u64 {
        let tier = reserve.priority.unwrap_or_default();
        if tier == Priority::Critical || self.config.margin.per_mille() != 0 {
            return 0;
        }
        let periods = self.config.limits.iter().filter_map(|limit| limit.id().period());
        let lately = periods.min().unwrap_or(bounds::IDLE).min(bounds::IDLE);
        let is_active = |name: &AgentName| {
            let own = self.calls.iter().filter(|call| call.agent == *name);
            own.into_iter().any(|c| c.ended.is_none() || self.now < c.granted_at + lately)
        };
        let limits = &self.config.limits;
        let unfilled = |rule: &AgentRule| {
            let floor = rule.floors.iter().filter_map(|f| f.of_limit(&limits[limit])).max();
            floor.unwrap_or(0).saturating_sub(self.used_by(limit, &rule.name))
        };
        // Floors of its own tier do not hold back a call that its own floor covers.
        let own = self.config.agent(&reserve.agent).map_or(0, unfilled);
        let covered = self.need(limit, &reserve.cost) <= own;
        let others = self.config.agents.iter().filter(|rule| {
            let above = match covered {
                true => rule.priority.unwrap_or_default() < tier,
                false => rule.priority.unwrap_or_default() <= tier,
            };
            above && rule.name != reserve.agent && is_active(&rule.name)
        });
        let kept = others.map(|rule| {
            let unfilled = unfilled(rule);
            // Less than what its owner asks for is not kept.
            let asks = self.most_asked.get(&rule.name).map_or(0, |most| most[limit]);
            if unfilled < asks { 0 } else { unfilled }
        });
        kept.sum()
    }

    /// What counts of one agent's calls on a window, or the slots that it holds.
    fn used_by(&self, limit: usize, agent: &AgentName) -> u64 {
        let own = self.calls.iter().filter(|call| call.agent == *agent);
        if matches!(self.config.limits[limit].rule, Rule::Parallel { .. }) {
            return own.filter(|call| call.ended.is_none()).map(|call| call.cost.slots()).sum();
        }
        let counts = |mark: &Mark| {
            let young = mark.charges.iter().filter(|c| self.now < c.at + self.length(limit));
            young.map(|charge| charge.units).sum::<u64>() + mark.held
        };
        own.map(|call| counts(&call.marks[limit])).sum()
    }

    /// The limits without room for this now.
    pub(crate) fn lacking(&self, cost: &Amounts) -> Vec<usize> {
        let needs = (0..self.config.limits.len()).map(|at| (at, self.need(at, cost)));
        let lacks = |(at, need): &(usize, u64)| *need > 0 && !self.has_room(*at, *need);
        needs.filter(lacks).map(|(at, _)| at).collect()
    }

    /// The whole units that are left of a limit; below nothing when more was used than foreseen.
    pub(crate) fn room(&self, limit: usize) -> i128 {
        match self.config.limits[limit].rule {
            Rule::Window { .. } => i128::from(self.effective(limit)) - self.counted(limit),
            Rule::Bucket { .. } => {
                let flow = self.flow(limit);
                let full = i128::from(self.effective(limit)) * flow.per;
                let left = full - self.tanks[limit].missing() - self.held(limit) * flow.per;
                left.div_euclid(flow.per)
            }
            Rule::Parallel { amount } => {
                let slots: u64 = self.living().map(|call| call.cost.slots()).sum();
                i128::from(amount) - i128::from(slots)
            }
        }
    }

    /// The most that is given out at once.
    pub(crate) fn effective(&self, limit: usize) -> u64 {
        match self.config.limits[limit].rule {
            Rule::Window { amount, .. } => self.share(amount),
            Rule::Bucket { burst, .. } => self.share(burst),
            Rule::Parallel { amount } => amount,
        }
    }

    /// The first instant from now on at which a call may be made if nothing else happens; none if
    /// it is larger than a limit, or has to wait for the end of a call in flight.
    pub(crate) fn until(&self, cost: &Amounts) -> Option<Instant> {
        if self.is_never(cost) {
            return None;
        }
        let mut epochs = BTreeSet::from([self.now, self.paused_until.max(self.now)]);
        let mut after = self.clone();
        after.frozen = true;
        for (at, limit) in self.config.limits.iter().enumerate() {
            epochs.insert(self.pace_opens(at));
            let period = limit.id().period().unwrap_or_default() + self.config.slack;
            let charges = after.calls.iter().flat_map(|call| &call.marks[at].charges);
            epochs.extend(charges.map(|charge| charge.at + period));
        }
        let first = epochs.range(self.now..).find_map(|epoch| {
            let mut then = after.clone();
            then.advance(*epoch);
            let refilled = then.refilled_at(cost);
            let next = epochs.range(Instant(epoch.0 + 1)..).next();
            then.advance(refilled);
            (next.is_none_or(|next| refilled < *next) && then.admits(cost)).then_some(refilled)
        });
        let waits = self.living().next().is_some();
        assert!(waits || first.is_some(), "after everything has aged there is room");
        first
    }

    /// When every bucket has refilled enough, if no lease ends before.
    fn refilled_at(&self, cost: &Amounts) -> Instant {
        let mut latest = self.now;
        for (at, limit) in self.config.limits.iter().enumerate() {
            let need = self.need(at, cost).min(self.effective(at));
            if need == 0 || !matches!(limit.rule, Rule::Bucket { .. }) {
                continue;
            }
            let flow = self.flow(at);
            let allowed = (i128::from(self.effective(at) - need) - self.held(at)) * flow.per;
            let over = (self.tanks[at].missing() - allowed).max(0);
            let wait = (over + flow.units - 1) / flow.units;
            latest = latest.max(self.now + Span(u64::try_from(wait).expect("within bounds")));
        }
        latest
    }

    /// Whether a limit has room for so much: of what is given out, or, for a cost that is above it
    /// but not above what is stated, because nothing else is there.
    fn has_room(&self, limit: usize, need: u64) -> bool {
        if need <= self.effective(limit) {
            return i128::from(need) <= self.room(limit);
        }
        let stated = need <= self.config.limits[limit].stated();
        let empty = match self.config.limits[limit].rule {
            Rule::Window { .. } => self.counted(limit) == 0,
            Rule::Bucket { .. } => self.tanks[limit].missing() == 0 && self.held(limit) == 0,
            Rule::Parallel { .. } => false,
        };
        stated && empty
    }

    /// What counts on a window now: charges of the last period, and what is held.
    fn counted(&self, limit: usize) -> i128 {
        let charges = self.calls.iter().flat_map(|call| &call.marks[limit].charges);
        let young = charges.filter(|charge| self.now < charge.at + self.length(limit));
        young.map(|charge| i128::from(charge.units)).sum::<i128>() + self.held(limit)
    }

    fn held(&self, limit: usize) -> i128 {
        self.calls.iter().map(|call| i128::from(call.marks[limit].held)).sum()
    }

    fn pace_opens(&self, limit: usize) -> Instant {
        match (self.granted_at[limit], self.config.limits[limit].pace) {
            (Some(last), Some(pace)) => last + pace,
            _ => Instant(0),
        }
    }

    /// A period with its slack.
    fn length(&self, limit: usize) -> Span {
        self.config.limits[limit].id().period().unwrap_or_default() + self.config.slack
    }

    fn guarantee(&self, limit: usize) -> Guarantee {
        match self.config.limits[limit].rule {
            Rule::Window { .. } => Guarantee::Window,
            Rule::Bucket { .. } => Guarantee::Bucket,
            Rule::Parallel { .. } => Guarantee::Parallel,
        }
    }

    /// Every stretch of a period in which more was reserved than a window gives out.
    pub(crate) fn windows_over(&self) -> Option<String> {
        let limits = self.config.limits.iter().enumerate();
        let windows = limits.filter(|(_, limit)| matches!(limit.rule, Rule::Window { .. }));
        windows.map(|(at, _)| at).find_map(|at| {
            let charges = self.reserved(at);
            charges.iter().find_map(|(_, first)| {
                let end = first.at + self.length(at);
                let inside = |charge: &Charge| first.at <= charge.at && charge.at < end;
                // What is in flight and not charged yet counts up to the present.
                let mut by_call = vec![0; self.calls.len()];
                for (call, charge) in charges.iter().filter(|(_, charge)| inside(charge)) {
                    by_call[*call] += charge.units;
                }
                if self.now < end {
                    for (call, units) in by_call.iter_mut().enumerate() {
                        *units += self.calls[call].marks[at].held;
                    }
                }
                let callers = by_call.iter().filter(|units| **units > 0).count();
                let sum = by_call.iter().sum::<u64>();
                // One call alone may take up to what is stated.
                let most =
                    if callers > 1 { self.effective(at) } else { self.config.limits[at].stated() };
                (sum > most).then(|| format!("{sum} of {most} from {:?} on limit {at}", first.at))
            })
        })
    }

    /// Every stretch of time in which more was reserved than a bucket gives out.
    pub(crate) fn buckets_over(&self) -> Option<String> {
        let limits = self.config.limits.iter().enumerate();
        let buckets = limits.filter(|(_, limit)| matches!(limit.rule, Rule::Bucket { .. }));
        buckets.map(|(at, _)| at).find_map(|at| {
            let flow = self.flow(at);
            let mut charges = self.reserved(at);
            charges.sort_by_key(|(_, charge)| charge.at);
            (0..charges.len()).find_map(|from| {
                let (mut sum, mut burst) = (0, self.effective(at));
                charges[from..].iter().find_map(|(call, charge)| {
                    sum += i128::from(charge.units);
                    // A call above what is given out is admitted to a full bucket.
                    burst = burst.max(self.calls[*call].marks[at].estimate);
                    let elapsed = i128::from(charge.at.since(charges[from].1.at).0);
                    let most = i128::from(burst) * flow.per + elapsed * flow.units;
                    let over = sum * flow.per > most;
                    let stretch = (charges[from].1.at, charge.at);
                    over.then(|| format!("{sum} within {stretch:?} on limit {at}"))
                })
            })
        })
    }

    /// What was reserved since an instant and still counts, and by how many calls.
    pub(crate) fn reserved_since(&self, limit: usize, since: Instant) -> (u64, usize) {
        let of_call = |call: &Call| {
            let charges = call.marks[limit].charges.iter();
            charges.filter(|own| own.at >= since && !own.beyond).map(|own| own.units).sum::<u64>()
        };
        let units = self.calls.iter().map(of_call).filter(|units| *units > 0);
        (units.clone().sum(), units.count())
    }

    /// What was charged as reserved, of each call.
    fn reserved(&self, limit: usize) -> Vec<(usize, Charge)> {
        let calls = self.calls.iter().enumerate();
        let all = calls.flat_map(|(number, call)| {
            let charges = call.marks[limit].charges.iter();
            charges.filter(|charge| !charge.beyond).map(move |charge| (number, charge.clone()))
        });
        all.collect()
    }
}
