//! Seeded random numbers, and random events that refer to existing keys often enough to matter.

use standpipe_core::{
    Action, AgentName, AgentRule, Amounts, Backoff, CalendarReset, CascadeThreshold, Charged,
    Commit, Configure, Event, Hit, Key, Limit, LimitId, LimitSelector, Margin, Observed, Order,
    Policy, PoolConfig, Portion, Priority, Reading, Recovered, Reserve, Resets, RetryBudget,
    ReturnWindows, Rule, Share, Source, Span, Text, ThrottleKind, Throttled, Unit, Zones,
};

/// A seeded random number generator (`SplitMix64`).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator. The same seed gives the same numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a random number.
    pub const fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `bound`, or 0 if that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.any() % bound }
    }

    /// Returns an index into a list of this length, or 0 if it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// Returns `true` with probability 1 / `times`.
    pub const fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns a random element.
    pub fn one_of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let at = self.index(all.len());
        all.get(at).cloned()
    }
}

/// A seeded stream of random events of a few sessions.
#[derive(Clone, Debug)]
pub struct RandomEvents {
    random: Random,
    numbers: [u64; SESSIONS],
    /// The keys of reserves, latest last. Commits, claims and cancels refer to them.
    keys: Vec<Key>,
}

const SESSIONS: usize = 6;
const AGENTS: [&str; 5] = ["blog", "news", "picard", "data", "neelix"];

impl RandomEvents {
    /// Creates a stream. The same seed gives the same events.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), numbers: [0; SESSIONS], keys: Vec::new() }
    }

    /// Returns the time until the next event: often none, mostly short, rarely long.
    pub const fn pause(&mut self) -> Span {
        match self.random.below(200) {
            0 => Span::secs(self.random.below(200)),
            1..=9 => Span::secs(self.random.below(8)),
            10..=99 => Span::micros(self.random.below(400_000)),
            _ => Span::ZERO,
        }
    }

    /// Returns the next event.
    pub fn event(&mut self) -> Event {
        let at = self.random.index(SESSIONS);
        self.numbers[at] += 1;
        let key = Key { session: at as u64 + 1, number: self.numbers[at] };
        let action = self.action();
        if let Action::Reserve(_) = action {
            self.keys.push(key);
        }
        Event { key, action }
    }

    /// Returns a configuration, so that the pool has limits from its first event on.
    pub fn first(&mut self) -> Event {
        self.numbers[0] += 1;
        let key = Key { session: 1, number: self.numbers[0] };
        Event { key, action: Action::Configure(Box::new(self.configure())) }
    }

    fn action(&mut self) -> Action {
        match self.random.below(100) {
            0..=44 => Action::Reserve(Box::new(self.reserve())),
            45..=74 => Action::Commit(self.commit()),
            75..=77 => Action::Cancel { lease: self.key() },
            78 => Action::Leave { ticket: self.key() },
            79 | 80 => Action::Redate { lease: self.key() },
            81 => Action::Withdraw { lease: self.key() },
            82..=84 => Action::Throttled(self.throttled()),
            85..=87 => Action::Observed(self.observed()),
            88..=91 => {
                let lease = self.random.once_in(2).then(|| self.key());
                let ttl = self.random.once_in(3).then(|| self.span(60));
                Action::Heartbeat { lease, ttl }
            }
            92 => Action::SessionEnded { session: self.random.below(SESSIONS as u64 + 1) },
            93 => Action::OwnerEnded { lease: self.key() },
            94 | 95 => Action::Configure(Box::new(self.configure())),
            96 => {
                let by = self.random.once_in(2).then(|| self.agent());
                Action::Pause { length: self.span(4), by }
            }
            97 => Action::Resume { by: self.random.once_in(2).then(|| self.agent()) },
            98 if self.random.once_in(2) => Action::Calendar { resets: vec![self.calendar()] },
            98 => Action::Recovered(self.recovered()),
            _ if self.random.once_in(20) => Action::Forgotten,
            _ => Action::Heartbeat { lease: None, ttl: None },
        }
    }

    fn key(&mut self) -> Key {
        if self.random.once_in(20) {
            let (session, number) = (self.random.below(8), self.random.below(50));
            return Key { session, number };
        }
        let latest = self.keys.len().saturating_sub(12);
        self.random.one_of(&self.keys[latest..]).unwrap_or_default()
    }

    fn span(&mut self, seconds: u64) -> Span {
        Span::micros(self.random.below(seconds * 1_000_000))
    }

    fn agent(&mut self) -> AgentName {
        named(self.random.one_of(&AGENTS).unwrap_or("blog"))
    }

    fn amounts(&mut self, most: u64) -> Amounts {
        let mut amounts = Vec::new();
        for unit in [Unit::Requests, Unit::InputTokens, Unit::OutputTokens] {
            if self.random.once_in(2) {
                amounts.push((unit, self.random.below(most)));
            }
        }
        Amounts::cost(amounts).unwrap_or_default()
    }

    /// Adds the slots of a call to some costs.
    fn with_slots(&mut self, cost: &Amounts) -> Amounts {
        let slots = self.random.once_in(5).then(|| (Unit::Parallel, self.random.below(4)));
        let amounts = cost.iter().map(|(unit, amount)| (unit.clone(), amount)).chain(slots);
        Amounts::cost(amounts).unwrap_or_default()
    }

    fn reserve(&mut self) -> Reserve {
        let (agent, cost) = (self.agent(), self.amounts(6));
        let mut reserve = Reserve::new(agent, self.with_slots(&cost));
        let tiers = [Priority::Critical, Priority::Standard, Priority::Background];
        reserve.priority = if self.random.once_in(3) { self.random.one_of(&tiers) } else { None };
        reserve.patience = match self.random.below(4) {
            0 => Span::ZERO,
            1 => self.span(5),
            _ => self.span(60),
        };
        reserve.ttl = self.random.once_in(5).then(|| self.span(30));
        let id = format!("job-{}", self.random.below(12));
        reserve.id = if self.random.once_in(6) { Text::new(&id) } else { None };
        reserve.ticket = self.random.once_in(3).then(|| self.key());
        reserve.retry_of = self.random.once_in(10).then(|| self.key());
        reserve.hold = self.random.once_in(20).then(|| self.span(3));
        reserve
    }

    fn commit(&mut self) -> Commit {
        let (lease, used) = (self.key(), self.amounts(9));
        let (progress, refused) = (self.random.once_in(5), self.random.once_in(15));
        Commit { lease, used, progress, refused }
    }

    fn throttled(&mut self) -> Throttled {
        let kinds = [
            ThrottleKind::Quota,
            ThrottleKind::Overload,
            ThrottleKind::Concurrency,
            ThrottleKind::SlowDown,
        ];
        let terminal = self.random.once_in(12).then_some(ThrottleKind::Terminal);
        let kind = terminal.or_else(|| self.random.one_of(&kinds)).unwrap_or(kinds[0]);
        Throttled {
            lease: self.random.once_in(2).then(|| self.key()),
            agent: Some(self.agent()),
            kind,
            retry_after: self.random.once_in(2).then(|| self.span(3)),
            hit: self.random.once_in(2).then_some(Hit { unit: Unit::Requests, period: None }),
        }
    }

    fn observed(&mut self) -> Observed {
        let reading = Reading {
            unit: if self.random.once_in(3) { Unit::Tokens } else { Unit::Requests },
            period: self.random.once_in(3).then_some(Span::secs(5)),
            limit: Some(self.random.below(12)),
            remaining: Some(self.random.below(10)),
            coarse: 1 + self.random.below(3),
            reset_in: self.random.once_in(2).then(|| self.span(20)),
            full_in: self.random.once_in(2).then(|| self.span(9)),
        };
        Observed { lease: self.random.once_in(2).then(|| self.key()), readings: vec![reading] }
    }

    /// Returns an announcement of a reset within the next minute, by a clock that may be wrong.
    fn calendar(&mut self) -> CalendarReset {
        let left = self.span(60);
        let since = Span(DAY.0 - left.0) + self.span(3 * 3_600);
        CalendarReset { limit: LimitId::Window(Unit::Requests, DAY), since, left }
    }

    fn recovered(&mut self) -> Recovered {
        match self.random.below(3) {
            0 => Recovered::Reserve { lease: self.key(), reserve: Box::new(self.reserve()) },
            1 => Recovered::Commit { lease: self.key() },
            _ => Recovered::Throttled(self.throttled()),
        }
    }

    fn configure(&mut self) -> Configure {
        let source = match self.random.below(4) {
            0 => Source::Code,
            1 => Source::File { version: Some(self.random.below(9)), written: 0 },
            _ => Source::Change,
        };
        let amount = |random: &mut Random, least: u64| least + random.below(8);
        let mut limits = vec![
            Limit::new(Rule::Window {
                unit: Unit::Requests,
                amount: amount(&mut self.random, 4),
                period: Span::secs(5),
            }),
            Limit::new(Rule::Bucket {
                unit: Unit::InputTokens,
                amount: amount(&mut self.random, 3),
                period: Span::secs(2),
                burst: amount(&mut self.random, 5),
            }),
            Limit::new(Rule::Window {
                unit: Unit::OutputTokens,
                amount: amount(&mut self.random, 6),
                period: Span::secs(9),
            }),
            Limit::new(Rule::Parallel { amount: amount(&mut self.random, 2) }),
        ];
        limits[2].charged = Charged::End;
        limits[0].pace = self.random.once_in(3).then_some(Span::millis(300));
        limits[0].resets = if self.random.once_in(3) { Resets::Provider } else { Resets::Rolling };
        if self.random.once_in(4) {
            let amount = 20 + self.random.below(40);
            let mut day = Limit::new(Rule::Window { unit: Unit::Requests, amount, period: DAY });
            let day_begins = self.random.one_of(&DAYS).and_then(Text::new);
            day.resets = day_begins.map_or(Resets::Rolling, Resets::Calendar);
            limits.push(day);
        }
        let mut config = PoolConfig::new(limits);
        config.margin = if self.random.once_in(3) { Margin::Auto } else { Margin::Fixed(0) };
        config.slack = Span::millis(self.random.below(3) * 50);
        config.lease_ttl = Span::secs(20);
        config.enforce = !self.random.once_in(10);
        config.order = if self.random.once_in(3) { Order::Fair } else { Order::Arrival };
        config.agents = self.rules();
        config.policy = self.policy();
        if config.policy.learn && self.random.once_in(4) {
            (config.limits, config.agents) = (Vec::new(), Vec::new());
        }
        Configure { source, config }
    }

    /// Returns a policy with each part on or off, and short times so that much happens.
    fn policy(&mut self) -> Policy {
        let backoff = Backoff {
            base: Span::millis(300),
            factor_per_mille: 2_000,
            cap: self.random.once_in(2).then_some(Span::secs(2)),
            jitter: self.random.once_in(2),
        };
        let second = Span::secs(1);
        let comeback = [ReturnWindows::USUAL, ReturnWindows::smear(second)];
        let (cascade, learn) = (self.random.once_in(2), self.random.once_in(2));
        let cascade = cascade.then_some(CascadeThreshold::USUAL);
        Policy {
            backoff: self.random.once_in(2).then_some(backoff),
            comeback: if self.random.once_in(2) { self.random.one_of(&comeback) } else { None },
            cascade,
            retries: self.random.once_in(2).then_some(RetryBudget { per_mille: 100, least: 1 }),
            learn,
            terminal_probe: self.random.once_in(2).then_some(Span::secs(10)),
            zones: if self.random.once_in(3) { Zones::Off } else { Zones::All },
            yields: self.random.once_in(2),
            spreads: self.random.once_in(2),
            promotes: self.random.once_in(2),
            breaker: self.random.once_in(2),
            reconciles: self.random.once_in(2),
            estimates: self.random.once_in(2),
        }
    }

    fn rules(&mut self) -> Vec<AgentRule> {
        let quarter = Share { of: LimitSelector::All, portion: Portion::PerMille(250) };
        let few = Portion::Rate { amount: 3, period: Span::secs(4) };
        let capped = Share { of: LimitSelector::Unit(Unit::Requests), portion: few };
        let mut rules = Vec::new();
        for (name, floors, caps) in
            [("picard", vec![quarter], Vec::new()), ("neelix", Vec::new(), vec![capped])]
        {
            if !self.random.once_in(4) {
                let (name, weight) = (named(name), 1 + u16::from(self.random.once_in(2)));
                rules.push(AgentRule { name, priority: None, floors, caps, weight });
            }
        }
        rules
    }
}

/// Times of day at which a limit may be reset.
const DAYS: [&str; 2] = ["00:00 UTC", "00:00 America/Los_Angeles"];
const DAY: Span = Span::secs(86_400);

fn named(name: &str) -> AgentName {
    super::fixture::ok(AgentName::new(name).ok_or("no name"))
}
