//! A ledger at all its bounds at once fits into its file of 6 MB.

use standpipe_core::{
    Action, Agent, AgentName, AgentRule, Amounts, CallId, Configure, Event, Instant, Key, Limit,
    LimitSelector, Order, PoolConfig, Portion, QueueKey, Reserve, Rule, Share, Source, Span, State,
    Text, Ticket, Unit, bounds,
};
use standpipe_store::layout::encode_state;
use standpipe_store_file::{FileStore, Options, Sizes};

use crate::support::Scratch;

/// A call with all details: three units, a model, an id.
fn call(agent: u64, id: u64, patience: Span) -> Action {
    let cost = [(Unit::InputTokens, 1_200), (Unit::OutputTokens, 800)];
    let name = format!("worker-{}@host-{}", agent % 1_024, agent % 7);
    Action::from(Reserve {
        patience,
        ttl: Some(Span::secs(600)),
        id: Text::new(&format!("4f1c2d3e-{id:04x}-4a5b-8c6d-{id:012x}")),
        model: Text::new("claude-sonnet-4-5-20250929"),
        ..Reserve::new(AgentName::new(&name).unwrap(), Amounts::cost(cost).unwrap())
    })
}

/// Four rates, slots, and agents with floors and caps.
fn config() -> PoolConfig {
    let rate = |unit, amount, period| Limit::new(Rule::Window { unit, amount, period });
    let limits = vec![
        rate(Unit::Requests, 1_000_000, Span::secs(60)),
        rate(Unit::InputTokens, 1_000_000_000_000, Span::secs(60)),
        rate(Unit::OutputTokens, 1_000_000_000_000, Span::secs(60)),
        rate(Unit::Requests, 100_000_000, Span::secs(86_400)),
        Limit::new(Rule::Parallel { amount: FEW }),
    ];
    let share =
        || Share { of: LimitSelector::Unit(Unit::Requests), portion: Portion::PerMille(10) };
    let agents = (0..50).map(|agent| AgentRule {
        name: AgentName::new(&format!("worker-{agent}@host-{}", agent % 7)).unwrap(),
        priority: None,
        floors: vec![share()],
        caps: vec![Share { portion: Portion::PerMille(500), ..share() }],
        weight: bounds::WEIGHT,
    });
    let order = Order::Fair;
    PoolConfig { order, agents: agents.collect(), ..PoolConfig::new(limits) }
}

#[test]
fn all_bounds_at_once_fit_a_file_of_six_megabytes() {
    let mut state = State::new();
    let mut now = bounds::SPAN.0;
    let mut session = 0x00ab_cdef_0000_0000;
    // Every call is a session of its own, as with the command line.
    let mut send = |actions: &[Action]| {
        now += 7_919;
        session += 1;
        let events = actions
            .iter()
            .zip(1..)
            .map(|(action, number)| Event { key: Key { session, number }, action: action.clone() });
        let last = events.map(|event| state.apply(&event, Instant(now)).answer).last();
        last.zip(Some(Key { session, number: 1 })).unwrap()
    };
    send(&[Action::Configure(Box::new(Configure { source: Source::Code, config: config() }))]);
    // Calls that have ended, whose ids are kept; then as many in flight, and as many waiting.
    for id in 0..3 * FEW {
        let (_, lease) = send(&[call(id, id, Span::secs(3_600))]);
        if id < FEW {
            send(&[crate::support::commit(lease)]);
        }
    }
    for _ in 0..2_000 {
        send(&[call(0, 0, Span::ZERO)]);
    }
    // Fill each kind up to its bound with copies.
    let mut facts = state.facts().clone();
    let copies = |few: usize, bound: usize| (0..bound.div_ceil(few)).map(|copy| copy as u64);
    assert!(facts.leases.len() >= 16 && facts.tickets.len() >= 16 && facts.ids.len() >= 16);
    let leases = facts.leases.clone();
    for copy in copies(leases.len(), bounds::LEASES) {
        let moved = |key: Key| Key { session: key.session + (copy << 20), ..key };
        facts.leases.extend(leases.iter().map(|(key, lease)| (moved(*key), lease.clone())));
    }
    let tickets = facts.tickets.clone();
    for copy in copies(tickets.len(), bounds::TICKETS) {
        let moved = |at: QueueKey| QueueKey {
            tag: at.tag + (1 << 62),
            arrival: at.arrival + (copy << 20),
            ..at
        };
        let late = |ticket: &Ticket| Ticket { start: ticket.start + (1 << 62), ..ticket.clone() };
        facts.tickets.extend(tickets.iter().map(|(at, ticket)| (moved(*at), late(ticket))));
    }
    let ids = facts.ids.clone();
    for copy in copies(ids.len(), bounds::IDS) {
        let moved = |own: &CallId| {
            let agent = AgentName::new(&format!("{}-{copy}", own.agent)).unwrap();
            CallId { agent, id: own.id.clone(), part_of: None }
        };
        let copied = ids.iter().map(|(id, known)| (moved(id), *known));
        facts.ids.extend(copied);
    }
    let (first, known) =
        facts.sessions.first_key_value().map(|(key, known)| (*key, *known)).unwrap();
    facts.sessions.extend((0..bounds::SESSIONS_KEPT as u64).map(|more| (first + more, known)));
    let agents = facts.agents.clone();
    for agent in agents.iter().cycle().take(bounds::AGENTS) {
        facts.agents.push(Agent { tags: [1 << 62; 3], ..agent.clone() });
    }
    let size = encode_state(&facts).len() as u64;
    let room = Sizes::default().snapshot;
    assert!(size <= room, "a snapshot of {size} bytes does not fit {room}");
    assert!(size > room / 3, "{size} bytes: something is missing");
}

/// How many of each kind the ledger itself creates; the rest are copies.
const FEW: u64 = 64;

#[test]
fn a_snapshot_that_does_not_fit_enlarges_the_file() {
    let scratch = Scratch::new();
    let sizes = Sizes { log: 64 << 10, snapshot: 512 };
    let store =
        FileStore::open_with(scratch.path(), Options { sizes, ..Options::default() }).unwrap();
    let mut member = crate::support::member(&store);
    let submitted =
        member.submit(vec![crate::support::configure(vec![crate::support::parallel(4_096)])]);
    submitted.unwrap();
    for id in 0..2_000 {
        member.submit(vec![call(id, id, Span::ZERO)]).unwrap();
    }
    let ours = standpipe_store::layout::encode_state(member.replica().state().facts());
    assert_eq!(crate::support::as_read_anew(&store), ours);
    assert_eq!(member.replica().state().facts().leases.len(), 2_000);
}
