//! A world of agents that call providers: an event loop over virtual time, without threads.
//!
//! Events fire in order of their instant and, within one, in the order they were put there. So a
//! world with the same agents and the same seed runs the same way every time.

mod agent;
mod alone;
mod habits;
mod manner;
mod queue;
mod story;
mod tapped;

pub use self::agent::{Agent, Pattern, Wanted, Work};
pub use self::alone::{Alone, Retries};
pub use self::habits::{Habits, Says, Waits};
pub use self::manner::{Ask, Manner, Step};
pub use self::story::{AgentStory, Story, Wave};
pub use self::tapped::Tapped;

use self::queue::Queue;
use crate::provider::{Arrival, CallId, Provider, Reply};
use crate::random::Random;

/// Agents, providers, and the way between them.
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

/// How long it takes to the provider and back, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// There.
    pub there: u64,
    /// And back.
    pub back: u64,
    /// Up to so much more, each way, by chance.
    pub jitter: u64,
}

/// A call that is wanted, and where it stands.
#[derive(Debug)]
struct Ongoing {
    agent: usize,
    wanted: Wanted,
    state: State,
    /// On its way back.
    reply: Option<Reply>,
    /// When the provider accepted it.
    accepted: Option<u64>,
    /// How often it has waited.
    waits: u64,
    /// Whether it waits now.
    waiting: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its time has not come.
    Future,
    /// Its time has come, but its agent is busy or what it follows is not done.
    Due,
    /// Its agent is at it.
    Begun,
    Done,
    GivenUp,
    /// What it follows was given up, so that it never began.
    Lost,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A call's time comes.
    Due(usize),
    /// An agent looks for what it can begin.
    Look(usize),
    /// A call reaches the provider.
    Arrives(usize),
    /// The provider is through with a call.
    Finishes(usize, CallId),
    /// A reply reaches the agent.
    Replies(usize),
    /// A call has waited long enough, for the nth time.
    Wakes(usize, u64),
    /// An agent is killed.
    Killed(usize),
}

impl World {
    /// One in which nothing has happened yet.
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

    /// The same with another pool, which is given the next number.
    #[must_use]
    pub fn and(mut self, provider: Provider) -> Self {
        self.providers.push(provider);
        self
    }

    /// Lets it run until nothing more happens, or until an instant, and tells what came of it.
    pub fn run(&mut self, until: u64) -> Story {
        while let Some((at, what)) = self.queue.pop_by(until) {
            if !self.is_stale(what) {
                self.now = at;
                self.happens(what);
            }
        }
        Story::of(self)
    }

    /// The provider, or the first of them, and with it what it saw.
    #[must_use]
    pub fn provider(&self) -> &Provider {
        &self.providers[0]
    }

    /// The provider of each pool.
    #[must_use]
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// Whether it no longer concerns anybody: who waits was rung before, who wants was killed.
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
                let Wanted { pool, used, .. } = self.calls[call].wanted;
                let reply = self.providers[pool].finish(self.now, id, used);
                self.send_back(call, reply);
            }
            What::Replies(call) => {
                let begun = self.calls[call].state == State::Begun;
                if let Some(reply) = self.calls[call].reply.take().filter(|_| begun) {
                    self.step(call, |manner, now, ask| manner.replied(now, ask, &reply));
                }
            }
            What::Wakes(call, _) => {
                self.calls[call].waiting = false;
                self.step(call, |manner, now, ask| manner.woken(now, ask));
            }
            What::Killed(agent) => self.killed(agent),
        }
    }

    /// An agent begins what it can, in order.
    fn look(&mut self, agent: usize) {
        for nth in self.agents[agent].first..self.agents[agent].calls.len() {
            let call = self.agents[agent].calls[nth];
            match self.calls[call].state {
                // What comes after is not due either.
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
                    self.step(call, |manner, now, ask| manner.wants(now, ask));
                }
                _ => {}
            }
        }
    }

    /// Where the call stands that an agent's nth call follows, if it follows one.
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
            // At least a moment later, or a manner that always waits until now would stop time.
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

    /// Asks a call's agent what to do next with it, and does it; then those look who should.
    fn step(&mut self, call: usize, next: impl FnOnce(&mut dyn Manner, u64, &Ask) -> Step) {
        let Ongoing { agent, ref wanted, .. } = self.calls[call];
        let wanted = *wanted;
        let of = &mut self.agents[agent];
        let Wanted { pool, call: what, .. } = wanted;
        let ask = Ask { number: call, pool, priority: of.priority, call: what };
        let step = next(of.manner.as_mut(), self.now, &ask);
        self.takes(call, step);
        self.ring(agent);
    }

    /// Wakes whom an agent says to wake.
    fn ring(&mut self, agent: usize) {
        for call in self.agents[agent].manner.rings() {
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
        self.agents[agent].manner.killed(self.now);
        self.ring(agent);
    }
}

impl Ongoing {
    fn new(agent: usize, mut wanted: Wanted) -> Self {
        wanted.call.agent = u32::try_from(agent).unwrap_or(u32::MAX);
        let (reply, accepted) = (None, None);
        Self { agent, wanted, state: State::Future, reply, accepted, waits: 0, waiting: false }
    }
}
