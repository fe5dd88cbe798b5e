//! What happens besides calls: refusals, stops, pauses, and use by others.

use super::*;
use crate::status::Stop;

#[test]
fn what_others_use_is_told_and_is_part_of_the_share() {
    let mut pool = status(true);
    let share = |pool: &PoolStatus| {
        let report = audit([used("blog", 600, 20, 0)], Some(pool));
        let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
        (finding.level, finding.check, finding.what.clone())
    };
    pool.limits[0].by_others = 9;
    let (level, check, what) = share(&pool);
    assert_eq!((level, check), (Level::Ok, "contention"));
    assert!(what.contains("all agents and others active, they use 29 % of the quota"), "{what}");
    pool.limits[0].by_others = 70;
    let (level, check, what) = share(&pool);
    assert_eq!((level, check), (Level::Warning, "outside"));
    assert!(what.contains("counts 70 of 100 requests per 1min that Standpipe"), "{what}");
    let idle = audit([], Some(&pool));
    assert_eq!(found(&idle, "outside").len(), 1, "no agent called: {idle:?}");
    let (limit, units, total) = ("requests per 1min".to_owned(), 40, 40);
    let seen = event(EventData::Outside { limit, units, total });
    let both = audit([used("blog", 600, 20, 0), seen], Some(&pool));
    assert_eq!(found(&both, "outside").len(), 1, "once: {both:?}");
}

#[test]
fn a_pause_by_hand_is_no_refusal() {
    let remedy = |more: &[Event]| {
        let mut events = vec![used("blog", 600, 1, 0)];
        events.extend(waited("blog", "pause", "admitted", 8_000));
        events.extend_from_slice(more);
        let report = audit(events, Some(&status(true)));
        found(&report, "waits")[0].remedy.clone().unwrap()
    };
    let paused = |by: Option<&str>| {
        let (until, by) = (Timestamp { millis: 8_000 }, by.map(ToOwned::to_owned));
        event(EventData::Pause { until, for_ms: 8_000, by })
    };
    let (by_hand, after) = (paused(Some("ops")), paused(None));
    let text = remedy(std::slice::from_ref(&by_hand));
    assert!(text.starts_with("mostly for a pause by hand (ops): `standpipe resume a/b`"), "{text}");
    assert!(remedy(std::slice::from_ref(&after)).starts_with("mostly for a pause: "));
    let text = remedy(&[refused("quota"), after.clone()]);
    assert_eq!(text, "mostly after refusals by the provider: fix their cause first");
    let text = remedy(&[refused("quota"), after, by_hand]);
    assert!(text.contains("refusals by the provider and for a pause by hand (ops)"), "{text}");
}

#[test]
fn a_stop_is_no_limit_that_is_too_high() {
    let stop = |count: u64, stops: usize| {
        let mut used = used("blog", 600, 4, 0);
        if let EventData::Usage(usage) = &mut used.what {
            usage.refused = count;
        }
        let stops = std::iter::repeat_n(refused("terminal"), stops);
        let mut pool = status(true);
        pool.terminal = Some(Stop { until: None, for_ms: None, look_ms: None });
        audit(stops.chain([used]), Some(&pool))
    };
    let report = stop(1, 1);
    assert_eq!(found(&report, "429s"), Vec::<&Finding>::new());
    let [stopped] = found(&report, "stopped")[..] else { panic!("{:?}", report.findings) };
    assert_eq!(stopped.what, "the provider stopped the pool once");
    assert!(stopped.remedy.as_ref().unwrap().starts_with("fix the account"), "{stopped:?}");
    let both = stop(3, 2);
    assert_eq!((found(&both, "429s").len(), found(&both, "stopped").len()), (1, 1));
}

#[test]
fn a_stop_that_was_resumed_asks_for_nothing() {
    let report = audit([used("blog", 600, 4, 0), refused("terminal")], Some(&status(true)));
    let [note] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert_eq!((note.level, note.check, &note.remedy), (Level::Note, "stopped", &None));
    assert_eq!(note.what, "the provider stopped the pool once; it was resumed");
}

#[test]
fn one_refusal_is_a_note_and_two_are_a_warning() {
    for (count, level) in [(1, Level::Note), (2, Level::Warning)] {
        let mut call = used("blog", 600, 4, 0);
        if let EventData::Usage(usage) = &mut call.what {
            usage.refused = count;
        }
        let report = audit([call], Some(&status(true)));
        let [finding] = found(&report, "429s")[..] else { panic!("{:?}", report.findings) };
        assert_eq!((finding.level, finding.agent.as_deref()), (level, Some("blog")));
        let remedy = finding.remedy.as_ref().unwrap();
        assert_eq!(remedy.contains("standpipe doctor"), level == Level::Warning, "{remedy}");
    }
}

/// A pool of one slot, which `busy` holds.
fn full() -> PoolStatus {
    let mut pool = TestPool::new(vec![Limit::new(Rule::Parallel { amount: 1 })]);
    pool.admit("busy", None);
    pool.status()
}

#[test]
fn b20_an_agent_that_only_has_calls_in_flight_is_one_of_the_agents() {
    let report = audit([], Some(&full()));
    let shown: Vec<_> =
        report.agents.iter().map(|a| (a.agent.as_str(), a.calls, a.in_flight)).collect();
    assert_eq!(shown, [("busy", 1, 1)]);
    // A line that was written after it began has it already.
    let mut written = used("busy", 600, 1, 0);
    written.at = full().leases[0].since;
    let report = audit([written], Some(&full()));
    assert_eq!((report.agents[0].calls, report.agents[0].in_flight), (1, 1));
}

#[test]
fn b20_a_full_pool_with_calls_that_wait_is_not_well() {
    let mut pool = full();
    let mut call = Reserve::new(AgentName::new("late").unwrap(), Amounts::cost([]).unwrap());
    call.patience = Span::secs(60);
    let mut queued = TestPool::new(vec![Limit::new(Rule::Parallel { amount: 1 })]);
    queued.admit("busy", None);
    queued.apply(Action::from(call));
    pool.tickets = queued.status().tickets;
    let report = audit([], Some(&pool));
    let [note] = found(&report, "waits")[..] else { panic!("{:?}", report.findings) };
    assert_eq!(note.what, "1 call of late waits now for a slot in use by busy");
    assert!(report.findings.iter().all(|finding| finding.level != Level::Ok), "{report:?}");
}

#[test]
fn b20_a_call_that_a_stop_refused_is_not_late_for_a_slot() {
    let mut events = waited("q", "limit", "refused", 1_000).to_vec();
    if let EventData::Usage(usage) = &mut events[1].what {
        usage.refusals.insert("terminal".to_owned(), 1);
    }
    let report = audit(events, Some(&status(true)));
    let agent = &report.agents[0];
    assert_eq!((agent.gave_up, agent.not_admitted), (0, 1));
    assert_eq!(found(&report, "waits"), Vec::<&Finding>::new());
    let [note] = found(&report, "not admitted")[..] else { panic!("{:?}", report.findings) };
    assert_eq!(note.what, "1 call of q was not admitted: the provider stopped the pool");
    assert!(note.remedy.as_ref().unwrap().ends_with("`standpipe resume a/b`"), "{note:?}");
}

#[test]
fn b20_refusals_count_before_the_process_wrote_what_its_calls_used() {
    let of_blog = |about: &str| {
        let mut refused = refused(about);
        if let EventData::Throttle { agent, .. } = &mut refused.what {
            *agent = Some("blog".to_owned());
        }
        refused
    };
    let report = audit([of_blog("quota"), of_blog("overload")], Some(&status(true)));
    let [agent] = &report.agents[..] else { panic!("{:?}", report.agents) };
    assert_eq!((report.refused, agent.refused), (1, 1));
}
