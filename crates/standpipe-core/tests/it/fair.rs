//! Fair order in virtual time: rounds, shares by weight, large calls, callers that never wait, and
//! what tiers and floors do beside it.

use std::collections::BTreeMap;

use standpipe_core::{
    Action, AgentName, AgentRule, Answer, Decision, Instant, Key, Order, Outcome, Phase, Policy,
    PoolConfig, Priority, Span, State, bounds,
};

use crate::support::words::{
    HOUR, MINUTE, SECOND, TOKENS, agent, bucket, cost, floored, millis, parallel, pool, ranked,
    secs, unranked, window,
};
use crate::support::world::World;

/// An agent that always has work.
#[derive(Clone, Copy)]
struct Busy {
    name: &'static str,
    weight: u16,
    tier: Priority,
    /// The tokens of each call.
    size: u64,
    /// How many tickets it keeps; with 0 it asks until it is refused, and never waits.
    tickets: usize,
}

const BUSY: Busy = Busy { name: "one", weight: 1, tier: Priority::Standard, size: 10, tickets: 4 };

/// Busy agents on a pool, and what each was granted.
struct Contest {
    world: World,
    agents: Vec<Busy>,
    waiting: Vec<(Key, usize)>,
    /// Tokens by agent.
    granted: Vec<u64>,
    longest: BTreeMap<&'static str, Span>,
}

impl Contest {
    fn new(mut config: PoolConfig, agents: &[Busy]) -> Self {
        for busy in agents {
            if config.agents.iter().all(|rule| rule.name.as_str() != busy.name) {
                config.agents.push(AgentRule { weight: busy.weight, ..unranked(busy.name) });
            }
        }
        let mut world = World::new(config);
        world.bulk = true;
        let granted = vec![0; agents.len()];
        let (agents, waiting, longest) = (agents.to_vec(), Vec::new(), BTreeMap::new());
        Self { world, agents, waiting, granted, longest }
    }

    /// Lets this much time pass, a tenth of a second at a time, and returns what each was granted.
    fn run(&mut self, length: Span) -> Vec<u64> {
        self.granted.iter_mut().for_each(|granted| *granted = 0);
        let end = self.world.now + length;
        while self.world.now < end {
            self.world.after(millis(100));
            self.claim();
            for at in 0..self.agents.len() {
                self.ask(at);
            }
            self.claim();
        }
        self.world.check();
        self.granted.clone()
    }

    fn ask(&mut self, at: usize) {
        let busy = self.agents[at];
        let patience = if busy.tickets == 0 { Span::ZERO } else { HOUR };
        let asks = if busy.tickets == 0 { 100 } else { busy.tickets };
        for _ in 0..asks {
            let own = self.waiting.iter().filter(|(_, whose)| *whose == at).count();
            if busy.tickets > 0 && own >= busy.tickets {
                return;
            }
            let ask = self.world.reserve("p", busy.name).cost(&[(TOKENS, busy.size)]);
            match ask.tier(busy.tier).patience(patience).send() {
                Decision::Admit(grant) => self.done(at, grant.lease),
                Decision::Wait(queued) => self.waiting.push((queued.ticket, at)),
                Decision::Refuse(_) => return,
            }
        }
    }

    /// Whoever is due claims.
    fn claim(&mut self) {
        let _ = self.world.heartbeat("p");
        while let Some((ticket, since)) = self.due() {
            let place = self.waiting.iter().position(|(own, _)| *own == ticket);
            let (_, at) = self.waiting.remove(place.expect("it waits"));
            let lease = self.world.claim(ticket).admitted();
            let longest = self.longest.entry(self.agents[at].name).or_default();
            *longest = self.world.now.since(since).max(*longest);
            self.done(at, lease);
        }
    }

    fn due(&self) -> Option<(Key, Instant)> {
        let mut tickets = self.world.state.facts().tickets.values();
        let due = tickets.find(|ticket| matches!(ticket.phase, Phase::Due(_)))?;
        Some((due.key, due.since))
    }

    fn done(&mut self, at: usize, lease: Key) {
        self.granted[at] += self.agents[at].size;
        let _ = self.world.commit(lease).send();
    }
}

/// 6,000 tokens a minute, as a bucket that fills by the second.
fn tokens() -> PoolConfig {
    PoolConfig { order: Order::Fair, ..pool([bucket(TOKENS, 100, SECOND, 100)]) }
}

/// Jain's index in thousandths: 1,000 if all are equal.
fn jain(figures: &[u64]) -> u64 {
    let sum: u64 = figures.iter().sum();
    let squares: u64 = figures.iter().map(|figure| figure * figure).sum();
    sum * sum * 1_000 / (squares * figures.len() as u64)
}

/// 500 tickets of one agent stand before ten agents with one each: the ten wait for one round.
#[test]
fn ten_agents_wait_for_one_round_beside_500_tickets() {
    let mut world = World::new(PoolConfig { order: Order::Fair, ..pool([parallel(1)]) });
    world.bulk = true;
    let mut in_flight = world.reserve("p", "first").admitted();
    let ask =
        |world: &mut World, name: &str| world.reserve("p", name).patience(HOUR).waits().ticket;
    let mut tickets: BTreeMap<Key, String> = BTreeMap::new();
    for _ in 0..500 {
        tickets.insert(ask(&mut world, "bulk"), "bulk".to_owned());
    }
    for n in 0..10 {
        let name = format!("news-{n}");
        tickets.insert(ask(&mut world, &name), name);
    }
    let mut served = Vec::new();
    for _ in 0..12 {
        world.after(SECOND).commit(in_flight).send();
        let first = world.state.facts().tickets.values().next().expect("many wait").key;
        in_flight = world.claim(first).admitted();
        served.push(tickets[&first].clone());
    }
    let others = served.iter().filter(|name| *name != "bulk").count();
    assert_eq!(others, 10, "{served:?}");
    world.check();
}

/// However many tickets each has and however large its calls are, all get the same: by tokens, in
/// every minute.
#[test]
fn equals_get_the_same_by_units() {
    let busy = |name, size, tickets| Busy { name, size, tickets, ..BUSY };
    let agents = [busy("a", 5, 8), busy("b", 10, 80), busy("c", 20, 3), busy("d", 40, 6)];
    let mut contest = Contest::new(tokens(), &agents);
    contest.run(secs(10));
    for minute in 0..5 {
        let granted = contest.run(MINUTE);
        assert!(jain(&granted) >= 950, "in minute {minute}: {granted:?}");
        assert!(granted.iter().sum::<u64>() >= 5_900, "nothing is left unused: {granted:?}");
    }
}

#[test]
fn weights_are_kept_within_five_percent() {
    let busy = |name, weight, size| Busy { name, weight, size, tickets: 12, ..BUSY };
    let agents = [busy("a", 1, 10), busy("b", 2, 7), busy("c", 3, 20), busy("d", 6, 5)];
    let mut contest = Contest::new(tokens(), &agents);
    contest.run(secs(10));
    for minute in 0..5 {
        let granted = contest.run(MINUTE);
        let all: u64 = granted.iter().sum();
        for (busy, got) in agents.iter().zip(&granted) {
            let share = all * u64::from(busy.weight) / 12;
            assert!(got.abs_diff(share) * 20 <= share, "{} in {minute}: {granted:?}", busy.name);
        }
    }
}

/// A call of the whole limit is served in its turn among small ones, and as often as its share.
#[test]
fn large_calls_are_not_starved() {
    let small = |name| Busy { name, size: 2, tickets: 20, ..BUSY };
    let large = Busy { name: "large", size: 100, tickets: 1, ..BUSY };
    let mut contest = Contest::new(tokens(), &[small("a"), small("b"), small("c"), large]);
    contest.run(secs(20));
    let granted = contest.run(Span(5 * MINUTE.0));
    assert!(jain(&granted) >= 950, "{granted:?}");
    // Four agents: what it takes comes round every four seconds.
    assert!(contest.longest["large"] <= secs(6), "{:?}", contest.longest);
}

/// An agent that never waits, and asks again and again for a little, gets no more than its share of
/// what others wait for, be it with many small calls or with a large one.
#[test]
fn who_never_waits_gets_no_more_than_its_share() {
    let queued = |name| Busy { name, tickets: 10, ..BUSY };
    let large = Busy { name: "large", size: 100, tickets: 1, ..BUSY };
    let polls = Busy { name: "polls", size: 5, tickets: 0, ..BUSY };
    for (agents, most) in [(vec![queued("a"), queued("b"), polls], 35), (vec![large, polls], 55)] {
        let mut contest = Contest::new(tokens(), &agents);
        contest.run(secs(10));
        let granted = contest.run(Span(3 * MINUTE.0));
        let (all, polled) = (granted.iter().sum::<u64>(), granted.last().copied().unwrap_or(0));
        assert!(polled * 100 <= all * most, "{granted:?}");
    }
}

/// What an agent did not use while it was idle is not owed to it, and what it used while nobody
/// else was there is not held against it.
#[test]
fn idle_time_is_neither_credit_nor_debt() {
    let busy = |name| Busy { name, tickets: 10, ..BUSY };
    let mut contest = Contest::new(tokens(), &[busy("always"), busy("late")]);
    contest.agents.truncate(1);
    contest.run(Span(10 * MINUTE.0));
    contest.agents.push(busy("late"));
    for _ in 0..6 {
        let granted = contest.run(secs(10));
        assert!(jain(&granted) >= 950, "{granted:?}");
    }
}

#[test]
fn higher_tiers_are_served_first() {
    let boss = Busy { name: "boss", tier: Priority::Critical, tickets: 3, size: 50, ..BUSY };
    let cron = Busy { name: "cron", weight: 900, tier: Priority::Background, ..BUSY };
    let mut contest = Contest::new(tokens(), &[boss, BUSY, cron]);
    let granted = contest.run(MINUTE);
    assert!(granted[0] >= 5_900 && granted[1] == 0 && granted[2] <= 100, "{granted:?}");
}

/// A floor is kept as before, and it is part of what its owner gets, not on top of it.
#[test]
fn a_floor_is_kept_and_counts() {
    let owner = |order, per_mille| {
        let config = pool([window(TOKENS, 6_000, MINUTE)]);
        let config = PoolConfig { order, agents: vec![floored("owner", per_mille)], ..config };
        let busy = |name| Busy { name, tickets: 20, ..BUSY };
        let agents = [busy("owner"), busy("a"), busy("b"), busy("c")];
        let mut contest = Contest::new(config, &agents);
        contest.run(Span(2 * MINUTE.0));
        contest.run(Span(4 * MINUTE.0))
    };
    for per_mille in [400, 500] {
        let (before, fair) = (owner(Order::Arrival, per_mille), owner(Order::Fair, per_mille));
        assert!(fair[0] * 100 >= before[0] * 97, "{per_mille}: {fair:?}, was {before:?}");
        assert!(jain(&fair[1..]) >= 990, "the others are equal: {fair:?}");
    }
    for per_mille in [100, 250] {
        let fair = owner(Order::Fair, per_mille);
        assert!(jain(&fair) >= 990, "{per_mille} is part of its share: {fair:?}");
    }
}

/// Agents beyond the table share one record, and so one share; configured ones keep theirs.
#[test]
fn agents_beyond_the_table_share_one_share() {
    let rule = AgentRule { weight: 2, ..ranked("data", Priority::Standard) };
    let config = PoolConfig { order: Order::Fair, agents: vec![rule], ..pool([parallel(1)]) };
    let mut world = World::new(config);
    world.bulk = true;
    let first = world.reserve("p", "first").admitted();
    let tags = |world: &World, ticket: Key| {
        let tickets = &world.state.facts().tickets;
        tickets.iter().find(|(_, own)| own.key == ticket).map(|(key, _)| key.tag).expect("waits")
    };
    for n in 0..bounds::AGENTS - 2 {
        let _ = world.reserve("p", &format!("agent-{n}")).patience(HOUR).waits();
    }
    let whole = tags(&world, world.state.facts().tickets.values().next().expect("waits").key);
    for n in 1..=3 {
        let ticket = world.reserve("p", &format!("unknown-{n}")).patience(HOUR).waits().ticket;
        assert_eq!(tags(&world, ticket), n * whole, "one behind the other");
    }
    let ticket = world.reserve("p", "data").patience(HOUR).waits().ticket;
    assert_eq!(tags(&world, ticket), whole / 2);
    world.commit(first).send();
    world.check();
}

/// Virtual time is lowered long before it could wrap, and nobody notices: every decision is the
/// same as on a ledger whose tags are small.
#[test]
fn tags_never_wrap() {
    let busy = |name, weight, size| Busy { name, weight, size, tickets: 6, ..BUSY };
    let agents = [busy("a", 1, 10), busy("b", 2, 30), busy("c", 5, 7)];
    let mut contest = Contest::new(tokens(), &agents);
    contest.run(secs(20));
    let mut facts = contest.world.state.facts().clone();
    let near = (1 << 62) - (1 << 42);
    let (standard, raise) = (Priority::Standard as usize, |tag: &mut u64| *tag += near);
    raise(&mut facts.virtual_time[standard]);
    facts.agents.iter_mut().for_each(|agent| raise(&mut agent.tags[standard]));
    let tickets = std::mem::take(&mut facts.tickets);
    for (mut queue_key, mut ticket) in tickets {
        raise(&mut queue_key.tag);
        raise(&mut ticket.start);
        facts.tickets.insert(queue_key, ticket);
    }
    let mut high = State::from_facts(facts).expect("tags within bounds");
    let before = contest.world.log.len();
    contest.world.bulk = false;
    let granted = contest.run(MINUTE);
    assert!(granted.iter().all(|tokens| *tokens > 0), "{granted:?}");
    let mut lowered = false;
    for (event, now, outcome) in &contest.world.log[before..] {
        let time = high.facts().virtual_time[standard];
        let reply: Outcome = high.apply(event, *now);
        assert_eq!(&reply, outcome, "{event:?}");
        lowered |= high.facts().virtual_time[standard] < time;
    }
    assert!(lowered, "virtual time was not lowered");
    high.check().expect("a sound ledger");
}

/// The order is part of the configuration: to fair, the tickets that wait get tags in their order.
#[test]
fn a_change_of_the_order_keeps_every_ticket() {
    let config = pool([parallel(1)]);
    let mut world = World::new(config.clone());
    let first = world.reserve("p", "first").admitted();
    let names = ["a", "a", "a", "b", "b", "c"];
    for name in names {
        let _ = world.reserve("p", name).patience(HOUR).waits();
    }
    let order = |world: &World| {
        let facts = world.state.facts();
        let name = |at: &standpipe_core::Ticket| facts.agents[at.agent].name.clone();
        facts.tickets.values().map(name).collect::<Vec<AgentName>>()
    };
    let _ = world.change(PoolConfig { order: Order::Fair, ..config.clone() });
    assert_eq!(order(&world), ["a", "b", "c", "a", "b", "a"].map(agent));
    let _ = world.change(config);
    assert_eq!(order(&world), names.map(agent));
    assert_eq!(world.state.facts().virtual_time, [0; 3]);
    world.commit(first).send();
}

/// A background agent that only polls is promoted without a ticket. Its place in standard is not
/// one of another order.
#[test]
fn a_change_of_the_order_forgets_the_tag_of_a_promotion() {
    let policy = Policy { promotes: true, ..Policy::NONE };
    let config = PoolConfig { policy, longest_lease: None, ..pool([parallel(1)]) };
    let fair = PoolConfig { order: Order::Fair, ..config.clone() };
    let mut world = World::new(fair.clone());
    let _ = world.reserve("p", "first").admitted();
    for _ in 0..8 {
        let _ = world.live(MINUTE).reserve("p", "cron").tier(Priority::Background).refused();
    }
    let promoted = |world: &World| {
        let mut agents = world.state.facts().agents.iter();
        let cron = agents.find(|own| own.name.as_str() == "cron").expect("it asked");
        cron.promoted.expect("for eight minutes").tag
    };
    assert!(promoted(&world) > 0);
    let _ = world.change(config);
    assert_eq!(promoted(&world), 0);
    let _ = world.change(fair);
    let _ = world.reserve("p", "cron").tier(Priority::Background).patience(HOUR).waits();
}

/// A call may name no slots: it waits for none and holds none.
#[test]
fn a_call_of_no_slots_passes_a_full_pool() {
    let mut world = World::new(pool([parallel(1)]));
    let _ = world.reserve("p", "a").admitted();
    let none = cost(&[(standpipe_core::Unit::Parallel, 0)]);
    let lease = world.reserve("p", "b").amounts(none).admitted();
    let reply = world.send("p", Action::Cancel { lease }).answer;
    assert!(matches!(reply, Answer::Lease(_)), "{reply:?}");
}

/// What an agent used alone is no debt, so its first call beside another agent's is placed by its
/// weight: twice the weight is before a call that came earlier, its second call is not.
#[test]
fn weight_comes_before_arrival() {
    let heavy = AgentRule { weight: 2, ..unranked("a") };
    let limits = [window(standpipe_core::Unit::Requests, 20, MINUTE)];
    let config = PoolConfig { order: Order::Fair, agents: vec![heavy], ..pool(limits) };
    let mut world = World::new(config);
    for _ in 0..20 {
        let _ = world.reserve("p", "a").admitted();
    }
    for name in ["c", "a", "a"] {
        let _ = world.reserve("p", name).patience(HOUR).waits();
    }
    let facts = world.state.facts();
    let order = facts.tickets.values().map(|own| facts.agents[own.agent].name.as_str());
    assert_eq!(order.collect::<Vec<_>>(), ["a", "c", "a"]);
}
