//! Scenes on long quotas with agents that call every five minutes, each run with a policy and
//! without it.

use standpipe_core::{
    AgentName, AgentRule, LimitSelector, Margin, Policy, PoolConfig, Portion, Priority, Share,
    Span, Unit,
};
use standpipe_sim::{
    Agent, ClientOptions, Coordinated, Options, Pattern, PlannedCall, Provider, Report, Rule,
    Shape, WaitMode, World,
};

use super::super::scene::{Tale, declared, usual};
use crate::stories::scene::{HOUR, MILLI, MINUTE, SECOND, STEADY, calls, requests};

pub(super) const DAY: u64 = 24 * HOUR;

/// A quota, and who draws on it beside the slow agent.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) amount: u64,
    pub(super) period: u64,
    /// How many periods it lasts.
    pub(super) periods: u64,
    pub(super) policy: Policy,
    pub(super) margin: Margin,
    /// The tier of the slow agent, its calls besides one every five minutes, once a period, and
    /// its floor per period.
    pub(super) slow: Slow,
    pub(super) busy: Vec<Busy>,
    /// The slow agent makes a call so often.
    pub(super) interval: u64,
    /// The busy agents want a call so often; 0 is one after the other.
    pub(super) every: u64,
    /// Units that others on the key take in each period, one call per second.
    pub(super) others: u64,
    /// The answers do not show what is left.
    pub(super) silent: bool,
}

/// An agent with a call every five minutes.
#[derive(Clone, Copy)]
pub(super) struct Slow {
    pub(super) tier: Priority,
    /// Calls that it wants besides, in the middle of each period.
    pub(super) burst: u64,
    pub(super) floor: u64,
    pub(super) patience: u64,
}

/// An agent that always wants more.
#[derive(Clone, Copy)]
pub(super) struct Busy {
    pub(super) tier: Priority,
    pub(super) wait_mode: WaitMode,
}

/// What came of it.
pub(super) struct Came {
    pub(super) story: Report,
    /// What was used of the quota by all, in thousandths.
    pub(super) used: u64,
    /// What the busy agents were admitted.
    pub(super) busy: usize,
}

impl Scene {
    /// Nothing but a quota.
    pub(super) fn new(amount: u64, period: u64) -> Self {
        let slow = Slow { tier: Priority::Critical, burst: 0, floor: 0, patience: period };
        Self {
            amount,
            period,
            periods: if period == HOUR { 12 } else { 2 },
            policy: Policy::usual(),
            margin: Margin::Fixed(0),
            slow,
            busy: Vec::new(),
            interval: 5 * MINUTE,
            every: 0,
            others: 0,
            silent: false,
        }
    }

    pub(super) fn beside(mut self, tier: Priority, wait_mode: WaitMode) -> Self {
        self.busy.push(Busy { tier, wait_mode });
        self
    }

    pub(super) fn run(&self) -> Came {
        let until = self.periods * self.period;
        let limits = usual(vec![declared(self.amount, self.period)]);
        let agents = vec![self.rule_of_slow()];
        let (policy, margin) = (self.policy.clone(), self.margin);
        let tale = Tale::new(Shape::OpenAi, PoolConfig { policy, margin, agents, ..limits });
        let agent = |name: &str, options, work, tier: Priority| {
            let tapped = Coordinated::new(&tale.tap, AgentName::new(name).unwrap(), options);
            Agent::new(name, tapped, work).priority(tier as u8)
        };
        let options = ClientOptions { patience: self.slow.patience, ..ClientOptions::USUAL };
        let slow = agent("slow", options, self.work_of_slow(), self.slow.tier);
        let mut all = vec![slow.lanes(usize::try_from(self.slow.burst + 1).unwrap())];
        let pattern = if self.every == 0 { Pattern::AtOnce } else { Pattern::Every(self.every) };
        for (nth, busy) in self.busy.iter().enumerate() {
            let options = ClientOptions {
                patience: until,
                wait_mode: busy.wait_mode,
                ..ClientOptions::USUAL
            };
            let wanted = usize::try_from(self.amount * (self.periods + 1)).unwrap();
            let work = calls(wanted, 150 * MILLI, pattern);
            all.push(agent(&format!("busy-{nth}"), options, work, busy.tier));
        }
        let mut world = World::new(self.provider(), STEADY, all, 1);
        let story = world.run(until);
        let record = world.provider().record();
        let ours: u64 = record.used(0).iter().sum();
        let used = (ours + record.foreign_accepted) * 1_000 / (self.amount * self.periods);
        let busy = story.agents[1..].iter().map(|agent| agent.done).sum();
        Came { story, used, busy }
    }

    fn rule_of_slow(&self) -> AgentRule {
        let Slow { tier, floor, .. } = self.slow;
        let portion = Portion::Rate { amount: floor.max(1), period: Span(self.period) };
        let share = Share { of: LimitSelector::Unit(Unit::Requests), portion };
        let floors = if floor > 0 { vec![share] } else { Vec::new() };
        let name = AgentName::new("slow").unwrap();
        AgentRule { name, priority: Some(tier), floors, caps: Vec::new(), weight: 1 }
    }

    fn work_of_slow(&self) -> Vec<PlannedCall> {
        let count = usize::try_from(self.periods * self.period / self.interval).unwrap();
        let mut work = calls(count, 500 * MILLI, Pattern::Every(self.interval));
        for nth in 0..self.periods {
            let at = nth * self.period + self.period / 2 + 2 * MINUTE;
            let one = PlannedCall { at, lasts: 500 * MILLI, ..PlannedCall::default() };
            work.extend((0..self.slow.burst).map(|_| one));
        }
        work
    }

    /// Others take their part in the second third of each period.
    fn provider(&self) -> Provider {
        let mut rules = vec![requests(self.amount, self.period)];
        for nth in (0..self.periods).filter(|_| self.others > 0) {
            let from = nth * self.period + self.period / 3 + nth * 40 * SECOND;
            let until = from + self.others * SECOND;
            rules.push(Rule::Foreign { per_second: 1, input: 0, output: 0, from, until });
        }
        let (silent, refused_count) = (self.silent, false);
        let options = Options { silent, refused_count, ..Options::of(Shape::OpenAi) };
        Provider::new(Shape::OpenAi, rules, 1).with(options)
    }
}
