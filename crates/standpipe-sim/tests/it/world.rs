//! The world keeps its promises: the same seed gives the same story, lanes and chains hold, and a
//! strategy is asked in the order of events.

use std::cell::RefCell;
use std::rc::Rc;

use standpipe_sim::{
    Agent, CallContext, Network, Pattern, PlannedCall, Provider, Reply, Report, Retries, Rule,
    Shape, Step, Strategy, Uncoordinated, Unit, Work, World,
};

const SECOND: u64 = 1_000_000;
const NETWORK: Network = Network { there: 10_000, back: 10_000, jitter: 90_000 };

fn provider(amount: u64) -> Provider {
    let rule = Rule::Rolling { unit: Unit::Requests, amount, period: SECOND };
    Provider::new(Shape::Anthropic, vec![rule], 3)
}

fn work(calls: usize, lasts: u64, pattern: Pattern) -> Vec<PlannedCall> {
    let like = PlannedCall { lasts, ..PlannedCall::default() };
    Work { calls, like, pattern, vary: 300 }.calls(9)
}

fn busy(seed: u64) -> Report {
    let agent = |n: u64| {
        let strategy = Uncoordinated::new(Retries::SDK, Retries::by_hand(5), n);
        Agent::new(format!("agent {n}"), strategy, work(20, SECOND, Pattern::Apart(SECOND)))
    };
    World::new(provider(5), NETWORK, (0..9).map(agent).collect(), seed).run(u64::MAX)
}

#[test]
fn the_same_seed_gives_the_same_story_and_another_another() {
    assert_eq!(busy(1), busy(1));
    assert_ne!(busy(1), busy(2));
}

/// What was asked, when, and about which call.
type Note = (&'static str, u64, usize);

/// Notes what it is asked, and waits a second before each call.
#[derive(Clone, Debug, Default)]
struct Noting(Rc<RefCell<Vec<Note>>>);

impl Strategy for Noting {
    fn begin(&mut self, now: u64, ask: &CallContext) -> Step {
        self.0.borrow_mut().push(("wants", now, ask.number));
        Step::WaitUntil(now + SECOND)
    }

    fn on_reply(&mut self, now: u64, ask: &CallContext, reply: &Reply) -> Step {
        assert_eq!(reply.status, 200);
        self.0.borrow_mut().push(("replied", now, ask.number));
        Step::Done
    }

    fn on_wake(&mut self, now: u64, ask: &CallContext) -> Step {
        self.0.borrow_mut().push(("woken", now, ask.number));
        Step::Send
    }
}

#[test]
fn a_manner_is_asked_step_by_step_and_lane_by_lane() {
    let strategy = Noting::default();
    let like = PlannedCall { lasts: SECOND, ..PlannedCall::default() };
    let work = Work { calls: 2, like, pattern: Pattern::AtOnce, vary: 0 }.calls(1);
    let agents = vec![Agent::new("one", strategy.clone(), work)];
    let network = Network { there: 10, back: 5, jitter: 0 };
    let story = World::new(provider(5), network, agents, 1).run(u64::MAX);
    let round = 2 * SECOND + 15;
    let of = |call: usize, from: u64| {
        [("wants", from, call), ("woken", from + SECOND, call), ("replied", from + round, call)]
    };
    assert_eq!(*strategy.0.borrow(), [of(0, 0), of(1, round)].concat());
    assert_eq!(story.agents[0].waits, [SECOND + 10, round + SECOND + 10]);
}

#[test]
fn as_many_calls_run_as_there_are_lanes() {
    for lanes in [1, 3, 10] {
        let work = work(10, SECOND, Pattern::AtOnce);
        let agent = Agent::new("one", Uncoordinated::new(Retries::NONE, Retries::NONE, 1), work);
        let mut world = World::new(provider(100), NETWORK, vec![agent.lanes(lanes)], 1);
        let story = world.run(SECOND / 2);
        assert!(!story.is_over());
        assert_eq!(world.provider().open(), lanes);
        assert_eq!(world.run(u64::MAX).done, 10);
    }
}

/// A strategy that would wait until now for ever does not stop time.
#[test]
fn time_goes_on() {
    #[derive(Debug)]
    struct Stuck;
    impl Strategy for Stuck {
        fn begin(&mut self, now: u64, _: &CallContext) -> Step {
            Step::WaitUntil(now)
        }
        fn on_reply(&mut self, _: u64, _: &CallContext, _: &Reply) -> Step {
            Step::Done
        }
        fn on_wake(&mut self, now: u64, _: &CallContext) -> Step {
            Step::WaitUntil(now)
        }
    }
    let agents = vec![Agent::new("stuck", Stuck, work(1, SECOND, Pattern::AtOnce))];
    let story = World::new(provider(1), NETWORK, agents, 1).run(1_000);
    assert_eq!((story.ended, story.made, story.is_over()), (999, 0, false));
}
