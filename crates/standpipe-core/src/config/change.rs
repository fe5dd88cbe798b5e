//! Puts a configuration into force: limits change, what was used stays.
//!
//! Windows, floors and caps are views of the remembered charges of their unit, and a bucket replays
//! them, so a new or changed one counts as if it had always been in force; see
//! `usage/unit_usage.rs`.

use alloc::vec::Vec;

use crate::bounds;
use crate::config::compiled::{CompiledConfig, Constraint, ConstraintKind};
use crate::config::precedence::Precedence;
use crate::config::{LimitId, Margin, Order, PoolConfig, Resets};
use crate::event::{Configure, Key};
use crate::facts::{Facts, Provenance};
use crate::id::ConstraintSet;
use crate::outcome::{Answer, Configured, Reason};
use crate::provider::cascade::Cascade;
use crate::provider::learn::Learned;
use crate::provider::return_windows::Returning;
use crate::queue::ticket::{Phase, QueueKey};
use crate::rules::retry_budget::RetryUsage;
use crate::rules::zone::Zone;
use crate::state::{Index, State};
use crate::time::{Instant, Span};
use crate::usage::bucket::Bucket;
use crate::usage::calendar::Calendar;
use crate::usage::counter::{Count, UsageCounter};
use crate::usage::history::HistoryEntry;
use crate::usage::money::Spending;

impl State {
    pub(crate) fn configure(&mut self, configure: &Configure, now: Instant) -> Answer {
        if let Err(invalid) = configure.config.check() {
            return Answer::Configured(Configured::Invalid(invalid));
        }
        Answer::Configured(match self.resolve(configure, now) {
            Precedence::Same => Configured::Same,
            Precedence::Kept => Configured::Kept,
            Precedence::Applies(config, provenance) => {
                self.install(*config, provenance, now);
                Configured::Applied
            }
        })
    }

    /// Whether a configuration would change anything. If not, it need not be sent.
    #[must_use]
    pub fn would_configure(&self, configure: &Configure, now: Instant) -> bool {
        let precedence = self.resolve(configure, now.max(self.facts.clock));
        configure.config.check().is_ok() && matches!(precedence, Precedence::Applies(..))
    }

    /// Returns the state as it would be with this configuration, to ask how it decides a call
    /// before the configuration is sent.
    #[must_use]
    pub fn configured(&self, configure: &Configure, now: Instant) -> Self {
        let now = now.max(self.facts.clock);
        let mut ahead = self.at(now).into_owned();
        let _ = ahead.configure(configure, now);
        ahead.effects = crate::state::Effects::default();
        ahead.next = ahead.next_change(now);
        ahead
    }

    pub(crate) fn install(&mut self, config: PoolConfig, provenance: Provenance, now: Instant) {
        let old = core::mem::take(&mut self.index.compiled);
        self.facts.apply_policies(&config);
        let free = bounds::LIMITS.saturating_sub(config.limits.len());
        self.facts.learned.limits.truncate(free);
        let new = CompiledConfig::of(&config, &self.facts);
        let there = |limit: &LimitId| new.constraints.iter().any(|own| own.id == *limit);
        self.facts.auto_margins.retain(|margin| there(&margin.limit));
        self.facts.external.retain(|external| there(&external.limit));
        if !config.policy.promotes {
            for agent in &mut self.facts.agents {
                (agent.denied, agent.promoted) = (None, None);
            }
        }
        let waiting = self.facts.tickets.values().filter(|ticket| ticket.phase != Phase::Lapsed);
        let waiting: Vec<Key> = waiting.map(|ticket| ticket.key).collect();
        let reordered = self.facts.config.as_ref().is_some_and(|was| was.order != config.order);
        if reordered {
            for agent in &mut self.facts.agents {
                agent.tags = [0; 3];
                agent.promoted.iter_mut().for_each(|promoted| promoted.tag = 0);
            }
        }
        for ticket in self.facts.tickets.values_mut() {
            (ticket.phase, ticket.earmarked) = (Phase::Lapsed, ConstraintSet::default());
            if config.policy.comeback.is_none() {
                ticket.returns = Instant(0);
            }
        }
        if self.facts.config.as_ref().is_some_and(|before| config.enforce && !before.enforce) {
            self.facts.enforced = now;
        }
        self.carry_histories(&config, &new, now);
        let mut new = new;
        new.connect(&self.facts.units);
        let counters = new.constraints.iter();
        self.facts.counters =
            counters.map(|constraint| self.counter_for(&config, constraint, &old, now)).collect();
        self.fit_histories(now);
        self.facts.config = Some(config);
        self.facts.provenance = provenance;
        self.facts.used = now;
        self.index = Index::of(&self.facts);
        if reordered {
            self.retag();
        }
        self.record_floor_owners(now);
        let left = self.left_of_stated(now);
        self.facts.leases.values_mut().for_each(|lease| lease.left.clone_from(&left));
        self.set_gate();
        self.refuse_impossible(now);
        let waiting = waiting.iter().filter_map(|key| self.index.queue_key_of.get(key).copied());
        let mut waiting: Vec<QueueKey> = waiting.collect();
        waiting.sort_unstable();
        self.enqueue_these(&waiting, now);
        if self.is_shadow() {
            // In shadow mode every waiter is admitted with its next claim.
            self.effects.wake.extend(self.facts.tickets.values().map(|ticket| ticket.key));
        }
    }

    /// Gives every agent with a floor a record: the floor of an agent that was never seen is lent
    /// from when it was named.
    fn record_floor_owners(&mut self, now: Instant) {
        let rules = self.facts.config.iter().flat_map(|config| &config.agents);
        let owners = rules.filter(|rule| !rule.floors.is_empty()).map(|rule| rule.name.clone());
        for name in owners.collect::<Vec<_>>() {
            let _ = self.agent_for(&name, now);
        }
    }

    /// What a constraint remembers under a new configuration. Windows count the history of their
    /// unit; a bucket that is new or has another rule replays it.
    fn counter_for(
        &self,
        config: &PoolConfig,
        constraint: &Constraint,
        old: &CompiledConfig,
        now: Instant,
    ) -> UsageCounter {
        let mut others = old.constraints.rows();
        let same = others.find(|(_, other)| is_same_limit(constraint, other));
        let known = same.map(|(at, other)| (&self.facts.counters[at], other));
        let reset = known.and_then(|(counter, _)| counter.reset.clone());
        let reset = reset.filter(|_| constraint.resets == Resets::Provider);
        let mut count = match known {
            Some((counter, other)) => match counter.count {
                Count::Bucket(mut bucket) if self.has_same_rule(config, constraint, other) => {
                    bucket.rescale(now, other.spec.as_refill(), constraint.spec.as_refill());
                    Count::Bucket(bucket)
                }
                Count::Bucket(before) => {
                    Count::Bucket(self.replay_bucket(constraint, Some((before, other)), now))
                }
                // What another calendar released may count in the days of this one.
                Count::Window { .. } if changes_days(constraint, other) => {
                    Count::Window { began: None }
                }
                kept => kept,
            },
            None => match constraint.fresh().count {
                Count::Bucket(_) => Count::Bucket(self.replay_bucket(constraint, None, now)),
                Count::Pace { .. } => Count::Pace { last: self.last_grant(constraint) },
                fresh => fresh,
            },
        };
        if let Count::Bucket(bucket) = &mut count
            && self.facts.enforced == now
        {
            let (spec, mark) = (&constraint.spec, self.next_mark(constraint));
            bucket.forgive_debt(now, spec.effective, mark, spec.as_refill());
        }
        let zone = known.map_or(Zone::Green, |(counter, _)| counter.zone);
        // Whether those who were active had a floor is not known of a limit that had none.
        let floored = known.filter(|(_, other)| other.floored);
        let without_floor =
            floored.map_or(self.facts.tier_activity, |(counter, _)| counter.without_floor);
        let protects = config.policy.protects() && constraint.floored;
        let without_floor = if protects { without_floor } else { [None; 3] };
        let same_days = known.filter(|(_, other)| other.resets == constraint.resets);
        let calendar = same_days.map_or_else(Calendar::default, |(counter, _)| counter.calendar);
        let spread = known.and_then(|(counter, other)| Some((counter.spread?, other)));
        let spread = self.spread_bucket(constraint, spread, now);
        UsageCounter { count, reset, zone, without_floor, spread, calendar }
    }

    /// Whether a bucket continues. One with another refill or period would have refilled wrongly,
    /// and one that is charged at another time of the call counted other charges.
    fn has_same_rule(
        &self,
        config: &PoolConfig,
        constraint: &Constraint,
        other: &Constraint,
    ) -> bool {
        let rule = |config: &PoolConfig| {
            let mut limits = config.limits.iter();
            limits.find(|limit| limit.id() == constraint.id).map(|limit| limit.rule.clone())
        };
        let before = self.facts.config.as_ref().and_then(rule);
        before == rule(config)
            && constraint.spec.period == other.spec.period
            && constraint.spec.charged == other.spec.charged
    }

    /// The mark of the next charge of a constraint's unit.
    fn next_mark(&self, constraint: &Constraint) -> u64 {
        constraint.unit.map_or(0, |unit| self.facts.units[unit].next_mark)
    }

    /// When a call was last charged that a new pace counts.
    fn last_grant(&self, constraint: &Constraint) -> Option<Instant> {
        let unit = self.history_of(constraint.id.unit(), constraint.spec.charged)?;
        self.facts.units[unit].history.last_stamp()
    }

    /// A bucket as if it had been in force when the remembered charges were made.
    fn replay_bucket(
        &self,
        constraint: &Constraint,
        before: Option<(Bucket, &Constraint)>,
        now: Instant,
    ) -> Bucket {
        let (spec, refill) = (&constraint.spec, constraint.spec.as_refill());
        let mark = self.next_mark(constraint);
        let lost = self.facts.state_lost_at.filter(|lost| now < *lost + spec.remembers());
        let mut bucket = lost
            .map_or_else(Bucket::default, |lost| Bucket::empty(lost, spec.effective, 0, refill));
        let unit = constraint.unit.map(|unit| &self.facts.units[unit]);
        let own = unit.iter().flat_map(|unit| unit.history.charges());
        // What others used of the key is in no history of the unit.
        let external = self.facts.external.iter().filter(|known| known.limit == constraint.id);
        let mut charges: Vec<HistoryEntry> =
            own.chain(external.flat_map(|known| known.charged.charges())).collect();
        charges.sort_by_key(|charge| charge.stamp);
        let mut forgiven = false;
        for charge in charges {
            // A slice may end after now.
            let at = charge.stamp.min(now);
            if at > self.facts.enforced && !forgiven {
                let from = self.facts.enforced;
                bucket.forgive_debt(from, spec.effective, charge.mark, refill);
                forgiven = true;
            }
            bucket.charge(at, charge.units, refill);
        }
        if !forgiven {
            bucket.forgive_debt(self.facts.enforced, spec.effective, mark, refill);
        }
        if self.facts.enforced == now {
            return bucket;
        }
        // The debt of a bucket may be older than what is remembered.
        if let Some((before, other)) = before {
            let owed = before.used_at(now, other.spec.as_refill());
            let counted = bucket.used_at(now, refill);
            if owed > other.spec.effective && owed > counted {
                bucket.charge(now, owed - counted, refill);
            }
        }
        bucket
    }

    /// Refuses waiting calls that a lowered limit can never hold.
    pub(crate) fn refuse_impossible(&mut self, now: Instant) {
        let impossible = self.facts.tickets.iter().filter(|(queue_key, ticket)| {
            let candidate = self.candidate_of(**queue_key, ticket);
            self.never_fits(&candidate).is_some()
        });
        let keys: Vec<Key> = impossible.map(|(_, ticket)| ticket.key).collect();
        self.end_tickets(Reason::Never, now, |ticket| keys.contains(&ticket.key));
    }
}

impl Facts {
    /// Drops what belongs to policies that a configuration does not have.
    pub(crate) fn apply_policies(&mut self, config: &PoolConfig) {
        let policy = &config.policy;
        if policy.comeback.is_none() {
            (self.returning, self.ramp) = (Returning::default(), None);
        }
        if policy.cascade.is_none() {
            self.cascade = Cascade::default();
        }
        if !policy.learn {
            self.learned = Learned::default();
        }
        if !policy.gates() {
            self.unanswered.clear();
        }
        if policy.retries.is_none() {
            self.retry_usage = RetryUsage::default();
        }
        if !policy.protects() {
            self.tier_activity = [None; 3];
        }
        if !policy.promotes {
            self.paused_total = Span::ZERO;
        }
        if config.order != Order::Fair {
            self.virtual_time = [0; 3];
        }
        if config.margin != Margin::Auto {
            self.auto_margins.clear();
        }
        if !policy.reconciles {
            self.external.clear();
        }
        if !policy.estimates {
            self.sizes.clear();
        }
        if !policy.breaker {
            self.pre_emptive = false;
        }
        if config.prices.is_empty() {
            self.spending = Spending::default();
        }
    }
}

/// Whether a limit gets or loses a calendar, or another one.
fn changes_days(constraint: &Constraint, other: &Constraint) -> bool {
    let calendars = constraint.resets.is_calendar() || other.resets.is_calendar();
    calendars && constraint.resets != other.resets
}

/// Whether two constraints are the same limit, or the pace of the same limit.
fn is_same_limit(constraint: &Constraint, other: &Constraint) -> bool {
    let gate = |constraint: &Constraint| constraint.kind == ConstraintKind::Gate;
    other.id == constraint.id && gate(other) == gate(constraint)
}
