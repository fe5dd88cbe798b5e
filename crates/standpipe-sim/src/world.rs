//! A world of agents that call providers: an event loop over virtual time, without threads.
//!
//! Events fire in order of their instant and, within one, in the order they were put there. So a
//! world with the same agents and the same seed runs the same way every time.

mod agent;
mod client_options;
mod coordinated;
mod queue;
mod report;
mod strategy;
mod uncoordinated;

pub use self::agent::{Agent, Pattern, PlannedCall, Work};
pub use self::client_options::{ClientOptions, CostHint, WaitMode};
pub use self::coordinated::Coordinated;
pub use self::report::{AgentReport, Report, Wave};
pub use self::strategy::{CallContext, Step, Strategy};
pub use self::uncoordinated::{Retries, Uncoordinated};

use self::queue::Queue;
use crate::provider::{Arrival, CallId, Provider, Reply};
use crate::random::Random;

/// Agents, providers, and the network between them.
#[derive(Debug)]
pub struct World {
    /// One for each pool.
    providers: Vec<Provider>,
    network: Network,
    agents: Vec<Agent>,
    calls: Vec<Ongoing>,
    queue: Queue<What>,
    random: Random,
    now: u64,
}

/// The delays of the network, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// From the agent to the provider.
    pub there: u64,
    /// From the provider to the agent.
    pub back: u64,
    /// The largest random delay in addition, each way.
    pub jitter: u64,
}

/// A planned call and its state.
#[derive(Debug)]
struct Ongoing {
    agent: usize,
    wanted: PlannedCall,
    state: State,
    /// The reply on its way to the agent.
    reply: Option<Reply>,
    /// When the provider accepted it.
    accepted: Option<u64>,
    /// The number of waits so far.
    waits: u64,
    /// Whether it waits now.
    waiting: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its planned instant has not come.
    Future,
    /// Its planned instant has come, but its agent is busy or the call it follows is not done.
    Due,
    /// Its agent has begun it.
    Begun,
    Done,
    GivenUp,
    /// The call it follows was given up, so it never begins.
    Lost,
}

/// The events of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The planned instant of a call.
    Due(usize),
    /// An agent begins the calls it can.
    Look(usize),
    /// A call reaches the provider.
    Arrives(usize),
    /// The provider finishes a call.
    Finishes(usize, CallId),
    /// A reply reaches the agent.
    Replies(usize),
    /// The nth wait of a call ends.
    Wakes(usize, u64),
    /// An agent is killed.
    Killed(usize),
}

impl World {
    /// Creates a world at instant 0.
    #[must_use]
    pub fn new(provider: Provider, network: Network, mut agents: Vec<Agent>, seed: u64) -> Self {
        let mut queue = Queue::default();
        let mut calls = Vec::new();
        for (agent, of) in agents.iter_mut().enumerate() {
            of.work.sort_by_key(|wanted| wanted.at);
            for wanted in std::mem::take(&mut of.work) {
                let call = calls.len();
                of.calls.push(call);
                queue.push(wanted.at, What::Due(call));
                calls.push(Ongoing::new(agent, wanted));
            }
            if let Some(at) = of.killed_at {
                queue.push(at, What::Killed(agent));
            }
        }
        let providers = vec![provider];
        Self { providers, network, agents, calls, queue, random: Random::new(seed), now: 0 }
    }

    /// Adds a pool, which gets the next number.
    #[must_use]
    pub fn and(mut self, provider: Provider) -> Self {
        self.providers.push(provider);
        self
    }

    /// Runs until no event is left, or until an instant, and returns the result.
    pub fn run(&mut self, until: u64) -> Report {
        while let Some((at, what)) = self.queue.pop_by(until) {
            if !self.is_stale(what) {
                self.now = at;
                self.happens(what);
            }
        }
        Report::of(self)
    }

    /// Returns the first provider, with its record.
    #[must_use]
    pub fn provider(&self) -> &Provider {
        &self.providers[0]
    }

    /// Returns the provider of each pool.
    #[must_use]
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// Whether an event is obsolete: the waiter was woken before, or the agent was killed.
    fn is_stale(&self, what: What) -> bool {
        match what {
            What::Due(call) => self.calls[call].state != State::Future,
            What::Wakes(call, nth) => !self.calls[call].waiting || self.calls[call].waits != nth,
            _ => false,
        }
    }

    fn happens(&mut self, what: What) {
        match what {
            What::Due(call) => {
                self.calls[call].state = State::Due;
                self.look(self.calls[call].agent);
            }
            What::Look(agent) => self.look(agent),
            What::Arrives(call) => self.arrives(call),
            What::Finishes(call, id) => {
                let PlannedCall { pool, used, .. } = self.calls[call].wanted;
                let reply = self.providers[pool].finish(self.now, id, used);
                self.send_back(call, reply);
            }
            What::Replies(call) => {
                let begun = self.calls[call].state == State::Begun;
                if let Some(reply) = self.calls[call].reply.take().filter(|_| begun) {
                    self.step(call, |strategy, now, ask| strategy.on_reply(now, ask, &reply));
                }
            }
            What::Wakes(call, _) => {
                self.calls[call].waiting = false;
                self.step(call, |strategy, now, ask| strategy.on_wake(now, ask));
            }
            What::Killed(agent) => self.killed(agent),
        }
    }

    /// An agent begins the calls it can, in order.
    fn look(&mut self, agent: usize) {
        for nth in self.agents[agent].first..self.agents[agent].calls.len() {
            let call = self.agents[agent].calls[nth];
            match self.calls[call].state {
                // Later calls are not due either.
                State::Future => break,
                State::Begun => continue,
                State::Due if self.agents[agent].has_lane() => {}
                State::Due => break,
                State::Done | State::GivenUp | State::Lost => {
                    self.agents[agent].pass(nth);
                    continue;
                }
            }
            match self.follows(agent, nth) {
                Some(State::GivenUp | State::Lost) => self.end(call, State::Lost),
                Some(State::Done) | None => {
                    self.agents[agent].busy += 1;
                    self.calls[call].state = State::Begun;
                    self.step(call, |strategy, now, ask| strategy.begin(now, ask));
                }
                _ => {}
            }
        }
    }

    /// The state of the call that an agent's nth call follows, if there is one.
    fn follows(&self, agent: usize, nth: usize) -> Option<State> {
        let before = self.agents.get(self.agents[agent].after?)?;
        Some(self.calls[*before.calls.get(nth)?].state)
    }

    fn takes(&mut self, call: usize, step: Step) {
        match step {
            Step::Send => {
                let at = self.now + self.network.there + self.delay();
                self.queue.push(at, What::Arrives(call));
            }
            // At least a moment later, or a strategy that always waits until now would stop time.
            Step::WaitUntil(at) => {
                let ongoing = &mut self.calls[call];
                ongoing.waits += 1;
                ongoing.waiting = true;
                self.queue.push(at.max(self.now + 1), What::Wakes(call, ongoing.waits));
            }
            Step::Done => self.end(call, State::Done),
            Step::GiveUp => self.end(call, State::GivenUp),
        }
    }

    fn arrives(&mut self, call: usize) {
        let ongoing = &mut self.calls[call];
        match self.providers[ongoing.wanted.pool].arrive(self.now, &ongoing.wanted.call) {
            Arrival::Accepted(id) => {
                ongoing.accepted = Some(self.now);
                self.queue.push(self.now + ongoing.wanted.lasts, What::Finishes(call, id));
            }
            Arrival::Refused(reply) => self.send_back(call, reply),
        }
    }

    fn send_back(&mut self, call: usize, reply: Reply) {
        self.calls[call].reply = Some(reply);
        let late = self.calls[call].wanted.late;
        let at = self.now + self.network.back + self.delay() + late;
        self.queue.push(at, What::Replies(call));
    }

    fn end(&mut self, call: usize, state: State) {
        let agent = self.calls[call].agent;
        if self.calls[call].state == State::Begun {
            self.agents[agent].busy -= 1;
        }
        self.calls[call].state = state;
        self.queue.push(self.now, What::Look(agent));
        for (other, of) in self.agents.iter().enumerate() {
            if of.after == Some(agent) {
                self.queue.push(self.now, What::Look(other));
            }
        }
    }

    fn delay(&mut self) -> u64 {
        self.random.below(self.network.jitter.saturating_add(1))
    }

    /// Takes the next step of a call, then wakes the calls that the strategy names.
    fn step(
        &mut self,
        call: usize,
        next: impl FnOnce(&mut dyn Strategy, u64, &CallContext) -> Step,
    ) {
        let Ongoing { agent, ref wanted, .. } = self.calls[call];
        let wanted = *wanted;
        let of = &mut self.agents[agent];
        let PlannedCall { pool, call: what, .. } = wanted;
        let ask = CallContext { number: call, pool, priority: of.priority, call: what };
        let step = next(of.strategy.as_mut(), self.now, &ask);
        self.takes(call, step);
        self.wake(agent);
    }

    /// Wakes the calls that an agent's strategy names.
    fn wake(&mut self, agent: usize) {
        for call in self.agents[agent].strategy.take_wakeups() {
            if let Some(Ongoing { waiting: true, waits, .. }) = self.calls.get(call) {
                self.queue.push(self.now, What::Wakes(call, *waits));
            }
        }
    }

    fn killed(&mut self, agent: usize) {
        for call in self.agents[agent].calls.clone() {
            self.calls[call].waiting = false;
            if matches!(self.calls[call].state, State::Future | State::Due | State::Begun) {
                self.end(call, State::GivenUp);
            }
        }
        self.agents[agent].strategy.on_kill(self.now);
        self.wake(agent);
    }
}

impl Ongoing {
    fn new(agent: usize, mut wanted: PlannedCall) -> Self {
        wanted.call.agent = u32::try_from(agent).unwrap_or(u32::MAX);
        let (reply, accepted) = (None, None);
        Self { agent, wanted, state: State::Future, reply, accepted, waits: 0, waiting: false }
    }
}
