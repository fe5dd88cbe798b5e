//! Random scenes against the oracle: the hard guarantees about limits, instants and leases.
//!
//! Each test is one property, its name what holds. Order is in `order.rs`, odd events are in
//! `total.rs`.

use proptest::prelude::*;
use standpipe_core::{
    Action, Amounts, Answer, Decision, Event, Found, Instant, LeaseAnswer, Limit, Reason, Refusal,
    Reserve, Span, State,
};

use crate::support::book::{Book, Call, Guarantee};
use crate::support::player::Player;
use crate::support::scene::{
    CAST, Figure, Scene, Sorts, Step, UNITS, WITH_CHANGES, WITH_SHARES, WITH_TICKETS, figure, scene,
};
use crate::support::words::{DAY, HOUR, OUTPUT, REQUESTS, agent, at_end, cost, pool, secs, window};
use crate::support::world::{World, is_admitted, why};
use crate::support::{cases, until_is_exact_at};

proptest! {
    #![proptest_config(cases(1_200))]

    #[test]
    fn window_never_over(scene in scene(WITH_SHARES)) {
        play(&scene, |player| {
            prop_assert_eq!(player.book.windows_over(), None);
            prop_assert_eq!(player.complaint(Guarantee::Window), None);
            Ok(())
        })?;
    }

    #[test]
    fn bucket_never_over(scene in scene(WITH_SHARES)) {
        play(&scene, |player| {
            prop_assert_eq!(player.book.buckets_over(), None);
            prop_assert_eq!(player.complaint(Guarantee::Bucket), None);
            Ok(())
        })?;
    }

    #[test]
    fn parallel_never_over(scene in scene(WITH_SHARES)) {
        play(&scene, |player| {
            prop_assert_eq!(player.complaint(Guarantee::Parallel), None);
            Ok(())
        })?;
    }

    #[test]
    fn pace_and_pause_are_kept(scene in scene(WITH_SHARES)) {
        play(&scene, |player| {
            prop_assert_eq!(player.complaint(Guarantee::Pace), None);
            prop_assert_eq!(player.complaint(Guarantee::Pause), None);
            Ok(())
        })?;
    }

    #[test]
    fn caps_and_floors_are_kept(scene in scene(WITH_SHARES)) {
        play(&scene, |player| {
            prop_assert_eq!(player.complaint(Guarantee::Cap), None);
            prop_assert_eq!(player.complaint(Guarantee::Floor), None);
            Ok(())
        })?;
    }

    /// While a call with an id is in flight or has ended not long ago, the same id answers with it.
    #[test]
    fn an_id_is_one_call(scene in scene(WITH_SHARES)) {
        play(&scene, |player| {
            prop_assert_eq!(player.complaint(Guarantee::Ids), None);
            Ok(())
        })?;
    }

    /// What a critical caller is told after every event is what the oracle's ledger says, limit by
    /// limit: an admission took from all of them, a refusal from none, and refunds went where they
    /// belong.
    #[test]
    fn all_or_nothing(scene in scene(WITH_TICKETS)) {
        play(&scene, decisions_are_the_oracles)?;
    }

    /// The same while limits are raised and lowered: what was used stays, and the next decision
    /// follows the new limit.
    #[test]
    fn changes_take_effect_at_the_next_decision(scene in scene(WITH_CHANGES)) {
        play(&scene, decisions_are_the_oracles)?;
    }

    #[test]
    fn until_is_the_oracles(scene in scene(WITH_CHANGES)) {
        play(&scene, |player| {
            let book = present(player);
            for cost in probes(&book) {
                let told = player.world.state.peek(&critical(cost.clone()), player.world.now);
                if let Some(refusal) = why(&told) {
                    let oracle = book.until(&cost);
                    // The end of a pause is a bound where a call in flight has to end, too.
                    let bound = refusal.reason == Reason::Pause && oracle.is_none();
                    let same = bound || refusal.until == oracle;
                    prop_assert!(same, "{:?} {:?}, not {:?}", cost, refusal, oracle);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn refusal_changes_nothing(scene in scene(WITH_SHARES)) {
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            let before = player.world.state.clone();
            let Some((event, outcome)) = player.step(step) else { continue };
            let Action::Reserve(reserve) = &event.action else { continue };
            // That the owner of a floor asks is remembered: it is no longer idle.
            let rule = scene.config.agent(&reserve.agent);
            let owns = rule.is_some_and(|rule| !rule.floors.is_empty());
            let refused = matches!(outcome.answer, Answer::Decided(Decision::Refuse(_)));
            // An ask with the id of one that waits is its claim.
            let new = reserve.ticket.is_none() && reserve.id.is_none();
            if refused && !owns && new {
                let after = silent(before, &event, player.world.now);
                prop_assert_eq!(&player.world.state, &after, "{:?}", outcome);
            }
        }
    }

    #[test]
    fn until_is_exact(
        scene in scene(Sorts { tickets: false, ..WITH_SHARES }),
        spots in prop::collection::vec(0_u64..1_000_000, 4),
    ) {
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            let Some((event, outcome)) = player.step(step) else { continue };
            let Action::Reserve(reserve) = &event.action else { continue };
            if let Answer::Decided(Decision::Refuse(refusal)) = outcome.answer {
                exact(&player, reserve, &refusal, &spots)?;
            }
        }
    }

    /// The same for somebody who waits: alone in line, its claim is admitted at the instant it was
    /// told and not before.
    #[test]
    fn until_is_exact_for_a_ticket(
        scene in scene(Sorts { tickets: false, ..WITH_SHARES }),
        who in 0..CAST.len(),
        figures in [figure(), figure(), figure()],
    ) {
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            player.step(step);
        }
        let (_, name, tier) = CAST[who];
        let cost = player.cost(&figures);
        let world = &mut player.world;
        let decision = world.reserve("waiter", name).tier(tier).amounts(cost).patience(DAY).send();
        let Decision::Wait(hold) = decision else { return Ok(()) };
        // It may have to wait for a call in flight, whose end is not foreseen.
        let Some(until) = hold.refusal.until else { return Ok(()) };
        let state = &world.state;
        let bound = hold.refusal.reason < Reason::Zone && !state.facts().leases.is_empty();
        if bound || state.facts().leases.keys().any(|lease| state.lease_ends(*lease) <= until) {
            return Ok(());
        }
        prop_assert!(until > world.now, "{:?}", hold);
        while world.now + secs(100) < until {
            world.after(secs(100));
            let _ = world.heartbeat("waiter");
            prop_assert!(!is_admitted(&world.claim(hold.ticket).peek()), "{:?}", hold);
        }
        let early = world.claim(hold.ticket).peek_at(until - Span(1));
        prop_assert!(!is_admitted(&early), "{:?} {:?}", hold, early);
        let decision = world.at(until).claim(hold.ticket).send();
        prop_assert!(is_admitted(&decision), "{:?} {:?}", hold, decision);
    }

    #[test]
    fn capacity_is_whole_afterwards(scene in scene(WITH_SHARES)) {
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            player.step(step);
        }
        for (process, ..) in CAST {
            let _ = player.world.kill(process);
        }
        let full = full_cost(&player);
        let told = player.world.after(Span(2 * DAY.0)).reserve("late", "newcomer").amounts(full);
        let told = told.peek();
        prop_assert!(is_admitted(&told), "{:?}", told);
    }

    /// Time passes by events that change nothing just as by those that do, and a copy is one of the
    /// first kind.
    #[test]
    fn copies_change_nothing(
        scene in scene(WITH_SHARES),
        copies in prop::collection::vec((any::<prop::sample::Index>(), 0_u64..=1_000), 1..20),
    ) {
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            player.step(step);
        }
        let log = &player.world.log;
        let (mut plain, mut copied) = (State::new(), State::new());
        let (mut notices, mut told) = (Vec::new(), Vec::new());
        for (at, (event, now, _)) in log.iter().enumerate() {
            if at > 0 {
                let (which, part) = &copies[at % copies.len()];
                let (copy, _, _) = &log[which.index(at)];
                let (_, sent, _) = log.iter().find(|(first, _, _)| first == copy).unwrap();
                let between = log[at - 1].1.0 + now.since(log[at - 1].1).0 * part / 1_000;
                // A first event that is resent when its session is forgotten begins a new one.
                if Instant(between).since(*sent) < secs(120) || copy.key.number > 1 {
                    let outcome = copied.apply(copy, Instant(between));
                    let none = matches!(outcome.answer, Answer::Duplicate | Answer::SessionEnded);
                    prop_assert!(none, "{:?} {:?}", copy, outcome);
                    told.extend(outcome.notices);
                }
            }
            let (left, right) = (plain.apply(event, *now), copied.apply(event, *now));
            prop_assert_eq!(&left.answer, &right.answer, "{:?}", event);
            prop_assert_eq!(&plain, &copied, "{:?}", event);
            notices.extend(left.notices);
            told.extend(right.notices);
        }
        prop_assert_eq!(notices, told);
    }

    #[test]
    fn peek_and_time_change_nothing(scene in scene(WITH_SHARES)) {
        play(&scene, |player| {
            let state = player.world.state.clone();
            let same = player.world.state.peek(&critical(full_cost(player)), player.world.now);
            let _ = player.world.state.peek(&critical(full_cost(player)), player.world.now + DAY);
            prop_assert_eq!(&state, &player.world.state);
            prop_assert_eq!(same, state.peek(&critical(full_cost(player)), player.world.now));
            Ok(())
        })?;
    }

    /// Each lease ends exactly once, at the instant the oracle expects, and whatever is said about
    /// it afterwards changes nothing.
    #[test]
    fn leases_end_once(scene in scene(WITH_SHARES)) {
        let mut player = Player::new(&scene);
        for step in &scene.steps {
            let before = player.world.state.clone();
            let Some((event, outcome)) = player.step(step) else { continue };
            prop_assert_eq!(player.complaint(Guarantee::Leases), None);
            prop_assert_eq!(player.complaint(Guarantee::Sessions), None);
            for call in &player.book.calls {
                let found = matches!(player.world.state.find(call.lease), Found::Lease);
                prop_assert_eq!(found, call.ended.is_none(), "{:?}", call);
            }
            let gone = Answer::Lease(LeaseAnswer::Gone);
            if outcome.answer == gone && !matches!(event.action, Action::Throttled(_)) {
                let after = silent(before, &event, player.world.now);
                prop_assert_eq!(&player.world.state, &after, "{:?}", event);
            }
        }
    }

    /// Figures are totals: the last one counts, however often and in whatever pieces it was said.
    #[test]
    fn progress_totals_replace(
        estimate in 0_u64..=40,
        grown in prop::collection::vec((0_u64..=20, 1_usize..=3), 0..6),
        last in prop::option::of(0_u64..=20),
    ) {
        let mut world = World::new(pool([at_end(window(OUTPUT, 100, HOUR))]));
        let lease = world.reserve("p", "a").cost(&[(OUTPUT, estimate)]).admitted();
        let mut total = 0;
        for (more, times) in grown {
            total += more;
            for _ in 0..times {
                let answer = world.after(secs(1)).commit(lease).used(&[(OUTPUT, total)]);
                let answer = answer.progress().send();
                prop_assert!(matches!(answer, LeaseAnswer::Lives(_)), "{:?}", answer);
            }
            prop_assert_eq!(left(&world), 100_u64.saturating_sub(total.max(estimate)));
        }
        let settled = last.map_or(total.max(estimate), |more| total + more);
        let figures = last.map(|_| (OUTPUT, settled));
        let answer = world.commit(lease).used(figures.as_slice()).send();
        prop_assert_eq!(answer, LeaseAnswer::Ended);
        prop_assert_eq!(left(&world), 100_u64.saturating_sub(settled));
    }

    /// What every lease and ticket gives back when nobody sent a call is all there is.
    #[test]
    fn cancelling_everything_gives_everything_back(scene in scene(WITH_TICKETS)) {
        let mut config = scene.config.clone();
        config.limits.iter_mut().for_each(|limit| limit.pace = None);
        let mut player = Player::new(&Scene { config, steps: Vec::new() });
        for step in &scene.steps {
            let now = player.world.now;
            if matches!(step, Step::Ask { .. } | Step::Claim(_) | Step::Cancel(_) | Step::Pass(_)) {
                player.step(step);
            }
            // A call whose lease ends by itself was sent, for all the ledger knows: not in here.
            let sent = |call: &Call| call.ended.is_some() && call.weight() > 0;
            if present(&player).calls.iter().any(sent) {
                player.world.now = now;
            }
        }
        let book = present(&player);
        for key in player.tickets.iter().map(|(ticket, _, _)| *ticket).chain(book.leases()) {
            player.world.cancel(key);
        }
        let full = full_cost(&player);
        let told = player.world.reserve("late", "newcomer").amounts(full).peek();
        prop_assert!(is_admitted(&told), "{:?}", told);
    }
}

/// Plays a scene and looks after every step that was an event.
fn play(
    scene: &Scene,
    mut look: impl FnMut(&Player) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let mut player = Player::new(scene);
    for step in &scene.steps {
        if player.step(step).is_some() {
            look(&player)?;
        }
    }
    Ok(())
}

/// Whatever a critical caller asks for, it is admitted exactly if the oracle would.
fn decisions_are_the_oracles(player: &Player) -> Result<(), TestCaseError> {
    let book = present(player);
    for cost in probes(&book) {
        let told = player.world.state.peek(&critical(cost.clone()), player.world.now);
        let (ours, oracle) = (is_admitted(&told), book.admits(&cost));
        prop_assert_eq!(ours, oracle, "{:?}: {:?} {:?}", cost, told, book.objections(&cost));
    }
    Ok(())
}

/// The oracle's book as of now.
fn present(player: &Player) -> Book {
    let mut book = player.book.clone();
    book.advance(player.world.now);
    book
}

/// Costs just within and just beyond what is left, unit by unit and together.
fn probes(book: &Book) -> Vec<Amounts> {
    let mut probes = Vec::new();
    let mut together = vec![(REQUESTS, 0)];
    for unit in UNITS {
        let limits = book.config.limits.iter().enumerate();
        let counts = limits.filter(|(_, limit)| limit.id().unit() == Some(&unit));
        let Some(room) = counts.map(|(at, _)| book.room(at)).min() else { continue };
        let room = u64::try_from(room.max(0)).expect("small");
        for amount in [room, room + 1] {
            let mut figures = vec![(REQUESTS, 0)];
            figures.retain(|(other, _)| *other != unit);
            figures.push((unit.clone(), amount));
            probes.push(cost(&figures));
        }
        together.retain(|(other, _)| *other != unit);
        together.push((unit, room));
    }
    probes.push(cost(&together));
    probes
}

/// As much of everything as is ever given out at once.
fn full_cost(player: &Player) -> Amounts {
    player.cost(&[Figure::Effective; 3])
}

/// How much output a pool still has to give.
fn left(world: &World) -> u64 {
    let fits = |n: &u64| {
        let probe = critical(cost(&[(REQUESTS, 0), (OUTPUT, *n)]));
        is_admitted(&world.state.peek(&probe, world.now))
    };
    (1..=100).rev().find(fits).unwrap_or(0)
}

fn critical(cost: Amounts) -> Reserve {
    let mut reserve = Player::reserve("first", cost);
    reserve.priority = Some(standpipe_core::Priority::Critical);
    reserve.agent = agent("somebody");
    reserve
}

/// What becomes of the state when the sender only says that it lives.
fn silent(mut before: State, event: &Event, now: Instant) -> State {
    let beat = Action::Heartbeat { lease: None, ttl: None };
    let _ = before.apply(&Event { key: event.key, action: beat }, now);
    before
}

/// Refused at every instant before the named one, admitted at it; and if there is none, never.
fn exact(
    player: &Player,
    reserve: &Reserve,
    refusal: &Refusal,
    spots: &[u64],
) -> Result<(), TestCaseError> {
    if refusal.until.is_none() {
        let book = present(player);
        let waits = book.living().next().is_some();
        let never = waits || book.is_never(&reserve.cost) || is_above_its_cap(player, reserve);
        prop_assert!(never, "{:?} for {:?}", refusal, reserve);
    }
    until_is_exact_at(&player.world, reserve, refusal, spots)
}

/// Whether a call is larger than the most its agent may ever use of a limit.
fn is_above_its_cap(player: &Player, reserve: &Reserve) -> bool {
    let config = &player.book.config;
    let caps = config.agent(&reserve.agent).map_or(&[][..], |rule| &rule.caps);
    let above = |(at, limit): (usize, &Limit)| {
        let most = caps.iter().filter_map(|cap| cap.of_limit(limit)).min();
        most.is_some_and(|most| player.book.need(at, &reserve.cost) > most)
    };
    config.limits.iter().enumerate().any(above)
}
