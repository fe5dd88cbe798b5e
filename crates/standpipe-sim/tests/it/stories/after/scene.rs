//! What the stories on the tap share: a tap, agents on it, and what was seen of the ledger.

use std::cell::RefCell;
use std::rc::Rc;

use standpipe_core::{
    AgentName, Decision, Limit, Notice, Policy, PoolConfig, Rule as Declared, Span, State, Unit,
};
use standpipe_dialect::Dialect;
use standpipe_sim::{
    Agent, CallContext, ClientOptions, Coordinated, DecisionRecord, Network, PlannedCall, Provider,
    Reply, Report, Shape, SharedLedger, Step, Strategy, World,
};

use crate::stories::scene::{HOUR, STEADY};

/// A tap, and what was seen of its first ledger after each step of anybody.
#[derive(Clone, Debug)]
pub(crate) struct Tale {
    pub(crate) tap: SharedLedger,
    log: Rc<RefCell<Vec<Look>>>,
}

/// What was seen of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) at: u64,
    pub(crate) in_flight: u64,
    /// Of those in flight, how many began in single file, while everybody goes so.
    pub(crate) single_file: Option<u64>,
    pub(crate) streak: u32,
    pub(crate) cautious: Option<u64>,
    pub(crate) bears: Option<u64>,
    pub(crate) effective: Vec<u64>,
    pub(crate) paused: bool,
    /// How often the shortest rates are halved.
    pub(crate) halvings: u8,
}

impl Look {
    fn of(at: u64, state: &State) -> Self {
        let facts = state.facts();
        let single_file = facts.cascade.sequential.map(|sequential| {
            let began = sequential.began;
            facts.leases.values().filter(|lease| lease.started >= began).count() as u64
        });
        let figures = state.figures(SharedLedger::instant(at));
        Self {
            at,
            in_flight: facts.leases.len() as u64,
            single_file,
            streak: facts.throttling.streak,
            cautious: state.cautious(),
            bears: facts.learned.concurrency.map(|bears| bears.calls),
            effective: figures.iter().map(|figures| figures.effective).collect(),
            paused: facts.pause.is_some(),
            halvings: facts.ramp.map_or(0, |ramp| ramp.halvings),
        }
    }
}

impl Tale {
    pub(crate) fn new(shape: Shape, config: PoolConfig) -> Self {
        Self::of(vec![(dialect(shape), config)])
    }

    pub(crate) fn of(pools: Vec<(Dialect, PoolConfig)>) -> Self {
        Self { tap: SharedLedger::new(pools), log: Rc::default() }
    }

    pub(crate) fn agent(&self, name: &str, work: Vec<PlannedCall>) -> Agent {
        self.agent_with(ClientOptions::USUAL, name, work)
    }

    pub(crate) fn agent_with(
        &self,
        options: ClientOptions,
        name: &str,
        work: Vec<PlannedCall>,
    ) -> Agent {
        let known = AgentName::new(&name.replace(' ', "-")).unwrap();
        let tapped = Coordinated::new(&self.tap, known, options);
        Agent::new(name, Watched { tapped, tale: self.clone() }, work)
    }

    pub(crate) fn looks(&self) -> Vec<Look> {
        self.log.borrow().clone()
    }

    pub(crate) fn notices(&self) -> Vec<(u64, Notice)> {
        self.tap.notices(0)
    }

    /// When calls were admitted, and whose they were.
    pub(crate) fn admitted(&self) -> Vec<DecisionRecord> {
        let admitted = |told: &DecisionRecord| matches!(told.decision, Decision::Admit(_));
        self.tap.decisions(0).into_iter().filter(admitted).collect()
    }

    /// When pauses were told, and until when.
    /// The refusals that began or lengthened a pause.
    pub(crate) fn refusals(&self) -> Vec<Refused> {
        let mut last = None;
        let pause = |(at, notice): (u64, Notice)| match notice {
            Notice::Throttled { new, streak, .. } => {
                last = Some((new, streak));
                None
            }
            Notice::Paused { until, .. } => {
                let (new, streak) = last?;
                Some(Refused { at, until: SharedLedger::moment(until), new, streak })
            }
            _ => None,
        };
        self.notices().into_iter().filter_map(pause).collect()
    }

    pub(crate) fn pauses(&self) -> Vec<(u64, u64)> {
        let pause = |(at, notice): (u64, Notice)| match notice {
            Notice::Paused { until, .. } => Some((at, SharedLedger::moment(until))),
            _ => None,
        };
        self.notices().into_iter().filter_map(pause).collect()
    }
}

/// A refusal that began or lengthened a pause.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) at: u64,
    pub(crate) until: u64,
    /// Whether its call was admitted after the last pause began.
    pub(crate) new: bool,
    pub(crate) streak: u32,
}

/// An agent on the tap whose every step is followed by a look at the ledger.
#[derive(Debug)]
struct Watched {
    tapped: Coordinated,
    tale: Tale,
}

impl Watched {
    fn look(&self, at: u64) {
        let look = self.tale.tap.look(0, |state| Look::of(at, state));
        self.tale.log.borrow_mut().push(look);
    }
}

impl Strategy for Watched {
    fn begin(&mut self, now: u64, ask: &CallContext) -> Step {
        let step = self.tapped.begin(now, ask);
        self.look(now);
        step
    }

    fn on_reply(&mut self, now: u64, ask: &CallContext, reply: &Reply) -> Step {
        let step = self.tapped.on_reply(now, ask, reply);
        self.look(now);
        step
    }

    fn on_wake(&mut self, now: u64, ask: &CallContext) -> Step {
        let step = self.tapped.on_wake(now, ask);
        self.look(now);
        step
    }

    fn take_wakeups(&mut self) -> Vec<usize> {
        self.tapped.take_wakeups()
    }

    fn on_kill(&mut self, now: u64) {
        self.tapped.on_kill(now);
        self.look(now);
    }
}

pub(crate) const fn dialect(shape: Shape) -> Dialect {
    match shape {
        Shape::Anthropic => Dialect::Anthropic,
        Shape::OpenAi => Dialect::OpenAi,
        Shape::Azure => Dialect::AzureOpenAi,
        Shape::Gemini => Dialect::Gemini,
        Shape::GitHub => Dialect::GitHub,
        Shape::Mistral | Shape::Plain => Dialect::Generic,
    }
}

/// A pool with what people get who say nothing else, and these limits used whole.
pub(crate) fn usual(limits: Vec<Limit>) -> PoolConfig {
    PoolConfig { policy: Policy::usual(), ..PoolConfig::new(limits) }
}

/// So many requests in any stretch of time, declared.
pub(crate) fn declared(amount: u64, period: u64) -> Limit {
    Limit::new(Declared::Window { unit: Unit::Requests, amount, period: Span(period) })
}

/// Runs a world to its end; a story that does not end is a fault.
pub(crate) fn play(provider: Provider, agents: Vec<Agent>) -> (Report, World) {
    play_over(STEADY, provider, agents)
}

pub(crate) fn play_over(
    network: Network,
    provider: Provider,
    agents: Vec<Agent>,
) -> (Report, World) {
    let mut world = World::new(provider, network, agents, 1);
    let story = world.run(240 * HOUR);
    assert!(story.is_over(), "{story}");
    (story, world)
}
