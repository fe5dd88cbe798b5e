//! A pause by hand names the agent that ordered it, for as long as that pause is what callers wait
//! for.

use standpipe_core::{Action, Instant, Notice, Outcome, Span};

use crate::support::words::{REQUESTS, SECOND, agent, pool, secs, window};
use crate::support::world::{BEGINNING, World};

fn ordered(world: &mut World, by: &str, length: Span) -> Outcome {
    world.send("operator", Action::Pause { length, by: Some(agent(by)) })
}

/// Who ordered the running pause, and when.
fn order(world: &World) -> Option<(String, Instant)> {
    let order = world.state.facts().throttling.order.as_ref()?;
    Some((order.by.as_ref()?.to_string(), order.at))
}

#[test]
fn a_pause_names_who_ordered_it_until_it_ends() {
    let mut world = World::new(pool([window(REQUESTS, 100, SECOND)]));
    let begun = ordered(&mut world, "ops", secs(60));
    let named = Notice::Paused { until: BEGINNING + secs(60), by: Some(agent("ops")) };
    assert!(begun.notices.contains(&named), "{begun:?}");
    world.after(secs(1));
    let _ = ordered(&mut world, "night", secs(10));
    assert_eq!(order(&world), Some(("ops".to_owned(), BEGINNING)), "a shorter one changes nothing");
    let _ = ordered(&mut world, "night", secs(120));
    let night = ("night".to_owned(), BEGINNING + secs(1));
    assert_eq!(order(&world), Some(night), "the longer one counts");
    world.at(BEGINNING + secs(121));
    let _ = world.reserve("p", "a").admitted();
    assert_eq!(order(&world), None, "it is over");
    let _ = ordered(&mut world, "ops", secs(60));
    let _ = world.resume();
    assert_eq!(order(&world), None, "it was ended");
}

/// What callers wait for is the refusal from then on, and resuming is no longer free of risk.
#[test]
fn a_refusal_that_lengthens_a_pause_replaces_its_order() {
    let mut world = World::new(pool([window(REQUESTS, 100, SECOND)]));
    let _ = ordered(&mut world, "ops", secs(10));
    let _ = world.throttled(None, Some(secs(5)));
    assert!(order(&world).is_some(), "a shorter refusal changes nothing");
    let longer = world.throttled(None, Some(secs(60)));
    assert!(longer.notices.contains(&Notice::Paused { until: BEGINNING + secs(60), by: None }));
    assert_eq!(order(&world), None);
    assert!(world.state.facts().throttling.incident.is_some());
    let _ = ordered(&mut world, "ops", secs(90));
    assert_eq!(order(&world).map(|(by, _)| by).as_deref(), Some("ops"));
}
