//! Pools: their configuration, their status and their explanations.

use std::time::Duration;

use crate::support::{Hand, World, at_once, file, parallel, patient, per_minute, refused};
use standpipe::observe::Verdict;
use standpipe::{Configured, Error, PoolConfig, Reason, Request, Span, Unit};

fn pool_file(parallel: u64) -> String {
    format!("[pool.\"t/slots\"]\nparallel = {parallel}\n")
}

#[test]
fn b23_two_configurations_never_alternate_and_the_older_is_reported_as_kept() {
    let world = World::new();
    let old = world.process_with(file(&pool_file(2), 1_000));
    let new = world.process_with(file(&pool_file(5), 2_000));
    let (old, new) = (old.pool("t/slots"), new.pool("t/slots"));
    assert_eq!(old.configured().blocking().unwrap(), Some(Configured::Applied));
    assert_eq!(
        new.configured().blocking().unwrap(),
        Some(Configured::Applied),
        "the later file counts"
    );
    for _ in 0..3 {
        for pool in [&old, &new] {
            drop(pool.reserve(at_once()).blocking().unwrap());
            assert_eq!(pool.status().blocking().unwrap().limits[0].amount, 5);
        }
    }
    let late = world.process_with(file(&pool_file(2), 1_000));
    assert_eq!(
        late.pool("t/slots").configured().blocking().unwrap(),
        Some(Configured::Kept),
        "the newer one counts"
    );
    let code = world.process_with(standpipe::Settings::default());
    let kept = code.pool("t/slots").limit(vec![parallel(1)]).blocking().unwrap();
    assert_eq!(kept, Configured::Kept, "limits from code do not count beside a file");
    assert_eq!(new.status().blocking().unwrap().limits[0].amount, 5);
    assert_eq!(new.status().blocking().unwrap().origin.source.as_str(), "file");
}

#[test]
fn b23_between_limits_from_code_the_stricter_wins() {
    let world = World::new();
    let (one, other) = (world.process(), world.process());
    let (one, other) = (one.pool("t/slots"), other.pool("t/slots"));
    assert_eq!(one.limit(vec![parallel(5)]).blocking().unwrap(), Configured::Applied);
    assert_eq!(other.limit(vec![parallel(3)]).blocking().unwrap(), Configured::Applied);
    assert_eq!(one.limit(vec![parallel(5)]).blocking().unwrap(), Configured::Kept);
    assert_eq!(one.status().blocking().unwrap().limits[0].amount, 3);
}

#[test]
fn a_change_at_run_time_counts_at_once_and_keeps_what_was_used() {
    let world = World::new();
    let process = world.process_with(file("[pool.\"t/rate\"]\ntokens = \"100/min\"\n", 1));
    let pool = process.pool("t/rate");
    drop(pool.reserve(at_once().unit("tokens", 60)).blocking().unwrap());
    let mut config = pool.config().blocking().unwrap().unwrap();
    config.limits = vec![per_minute(Unit::Tokens, 70)];
    config.margin = standpipe::policy::Margin::Fixed(0);
    assert_eq!(pool.change(config).blocking().unwrap(), Configured::Applied);
    let limit = &pool.status().blocking().unwrap().limits[0];
    assert_eq!((limit.amount, limit.used, limit.left), (70, 60, 10));
    let mut waiter = Hand::new(pool.reserve(patient().unit("tokens", 20)));
    assert!(waiter.poll().is_pending());
    let wider = PoolConfig::new(vec![per_minute(Unit::Tokens, 90)]);
    assert_eq!(pool.change(wider).blocking().unwrap(), Configured::Applied);
    drop(waiter.run().unwrap());
    assert_eq!(pool.status().blocking().unwrap().origin.changes, 2);
}

#[test]
fn limits_that_cannot_be_used_are_errors() {
    let world = World::new();
    let process = world.process();
    let pool = process.pool("t/slots");
    let none = pool.limit(Vec::new()).blocking().unwrap_err();
    assert!(none.to_string().contains("no limit"), "{none}");
    let zero = pool.limit(vec![parallel(0)]).blocking().unwrap_err();
    assert!(matches!(zero, Error::Invalid { .. }), "{zero}");
    assert_eq!(pool.status().blocking().unwrap().origin.source.as_str(), "none", "nothing changed");
}

#[test]
fn an_unknown_pool_is_an_error_with_a_suggestion() {
    let world = World::new();
    let process = world.process_with(file(&pool_file(2), 1));
    let unknown = process.tap.pool("t/slits").unwrap_err();
    assert!(matches!(unknown, Error::Config(_)), "{unknown}");
    assert!(unknown.to_string().contains("t/slots"), "{unknown}");
    for bad in ["", "slots", "t/slots\n", "t/🚰", &"x".repeat(10_000)] {
        let wrong = process.tap.pool(bad).unwrap_err().to_string();
        assert!(wrong.contains("name of a pool") && wrong.len() < 300, "{wrong}");
    }
}

#[test]
fn in_shadow_mode_everything_is_admitted_with_the_refusal_it_replaced() {
    let world = World::new();
    let process = world.process();
    let pool = process.pool("t/slots");
    let mut config = PoolConfig::new(vec![parallel(1)]);
    config.enforce = false;
    pool.change(config).blocking().unwrap();
    let first = pool.reserve(at_once()).blocking().unwrap();
    assert_eq!(first.instead_of(), None);
    let second = pool.reserve(at_once()).blocking().unwrap();
    assert_eq!(second.instead_of().map(|instead| instead.reason), Some(Reason::Limit));
    let status = pool.status().blocking().unwrap();
    assert!(!status.enforce);
    assert_eq!(status.leases.len(), 2);
    let peeked = pool.peek(&at_once()).blocking().unwrap();
    assert!(peeked.is_admitted() && peeked.why().is_some());
}

#[test]
fn a_peek_takes_nothing() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let before = pool.status().blocking().unwrap();
    assert_eq!(pool.peek(&at_once()).blocking().unwrap(), Verdict::Admitted { instead_of: None });
    let held = pool.reserve(at_once()).blocking().unwrap();
    assert!(matches!(pool.peek(&at_once()).blocking().unwrap(), Verdict::Refused(_)));
    let Verdict::Waits(waits) = pool.peek(&patient()).blocking().unwrap() else {
        panic!("does not wait")
    };
    assert_eq!((waits.reason, waits.position), (Reason::Limit, Some(1)));
    held.cancel().blocking().unwrap();
    assert_eq!(pool.status().blocking().unwrap().limits, before.limits);
}

#[test]
fn the_status_shows_leases_and_tickets_with_their_reasons() {
    let world = World::new();
    let process = world.process();
    let tokens = per_minute(Unit::Tokens, 1_000);
    let pool = process.limited("t/api", vec![tokens, parallel(2)]);
    let request = Request::by("blog").unit("tokens", 700).model("sonnet").task("classify");
    let held = pool.reserve(request).blocking().unwrap();
    world.passes(Span::secs(10), &[]);
    let mut waiter = Hand::new(pool.reserve(Request::by("data").unit("tokens", 400)));
    assert!(waiter.poll().is_pending());
    world.passes(Span::secs(5), &[]);
    let status = pool.status().blocking().unwrap();
    let limit = &status.limits[0];
    assert_eq!(
        (limit.unit.as_str(), limit.kind.as_str(), limit.period_ms),
        ("tokens", "window", Some(60_000))
    );
    assert_eq!((limit.used, limit.held, limit.left), (700, 0, 300));
    assert_eq!(limit.full_again_ms, Some(45_000));
    let slots = &status.limits[1];
    assert_eq!((slots.kind.as_str(), slots.held, slots.left), ("parallel", 1, 1));
    assert_eq!((slots.full_again_ms, slots.period_ms), (None, None));
    let lease = &status.leases[0];
    assert_eq!(
        (lease.agent.as_str(), lease.age_ms, lease.holder.as_str()),
        ("blog", 15_000, "session")
    );
    assert_eq!((lease.model.as_deref(), lease.task.as_deref()), (Some("sonnet"), Some("classify")));
    assert_eq!((&lease.id, lease.pid), (held.id(), Some(std::process::id())));
    let ticket = &status.tickets[0];
    assert_eq!((ticket.agent.as_str(), ticket.position, ticket.waits_ms), ("data", 1, 5_000));
    assert_eq!((ticket.reason.map(|why| why.as_str()), ticket.short_by), (Some("limit"), 100));
    let when = &ticket.when;
    assert_eq!(when.until_ms.or(when.not_before_ms), Some(45_000));
    assert_eq!((&when.waiting_for, ticket.deadline_ms), (&None, 295_000));
    assert_eq!(ticket.limit.as_deref(), Some("tokens per 1min"));
    assert_eq!(status.agents.len(), 2);
    let json = serde_json::to_value(&status).unwrap();
    assert_eq!(json["leases"][0]["cost"]["tokens"], 700);
    let ticket = &json["tickets"][0];
    let instant = ticket["until"].as_str().or(ticket["not_before"].as_str());
    assert!(instant.unwrap().ends_with('Z'), "{ticket}");
}

#[test]
fn a_misspelled_unit_of_a_limit_is_rejected_before_the_pool_exists() {
    let world = World::new();
    let process = world.process();
    let pool = process.tap.pool("t/fresh").unwrap();
    let misspelled = Unit::named("toekns").unwrap();
    let limits = || vec![per_minute(misspelled.clone(), 100)];
    let error = pool.reserve(at_once().limits(limits())).blocking().unwrap_err().to_string();
    assert!(error.contains("`toekns`") && error.contains("did you mean `tokens`?"), "{error}");
    assert!(process.tap.pools().blocking().unwrap().is_empty(), "nothing was created");
    // A unit of the caller's own is one that its call names.
    let call = at_once().unit("toekns", 5).limits(limits());
    assert!(pool.reserve(call).blocking().is_ok());
    let own = vec![per_minute(Unit::named("gpu_seconds").unwrap(), 100)];
    let other = process.tap.pool("t/other").unwrap();
    assert!(other.reserve(at_once().limits(own)).blocking().is_ok(), "others may use it");
}

#[test]
fn an_explanation_has_every_step_of_the_rule() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/api", vec![per_minute(Unit::Tokens, 100), parallel(1)]);
    let _held = pool.reserve(at_once().unit("tokens", 80)).blocking().unwrap();
    let free = pool.explain(&at_once().unit("requests", 1)).blocking().unwrap();
    assert_eq!(free.verdict.as_str(), "refused");
    let names: Vec<&str> = free.steps.iter().map(|step| step.name).collect();
    let rule = ["stop", "size", "delay", "share", "queue", "room"];
    assert_eq!(names, rule);
    let call = pool.explain(&at_once().unit("tokens", 50)).blocking().unwrap();
    let noes: Vec<_> = call.steps.iter().filter(|step| step.says_no()).collect();
    assert_eq!(noes.len(), 1);
    let limits: Vec<_> = noes[0].noes.iter().map(|no| (no.limit.as_deref(), no.short_by)).collect();
    assert_eq!(limits, [(Some("tokens per 1min"), 30), (Some("parallel"), 1)]);
    pool.pause(Duration::from_secs(7)).blocking().unwrap();
    let large = pool.explain(&at_once().unit("tokens", 101)).blocking().unwrap();
    assert_eq!(large.why.map(|why| why.reason), Some(Reason::Never));
    assert!(large.steps[1].says_no() && large.steps[2].says_no(), "every step is asked");
    assert_eq!(large.steps[2].noes[0].when.until_ms, Some(7_000));
}

#[test]
fn limits_from_code_have_a_files_defaults() {
    let world = World::new();
    let process = world.process();
    let pool = process.pool("t/api");
    pool.limit(vec![per_minute(Unit::Requests, 100)]).blocking().unwrap();
    let status = pool.status().blocking().unwrap();
    assert_eq!((status.margin_per_mille, status.margin_auto), (200, true));
    assert_eq!(status.limits[0].effective, 80);
    let written = world.process_with(file("[pool.\"t/file\"]\nrequests = \"100/min\"\n", 1));
    let from_file = written.pool("t/file").config().blocking().unwrap();
    assert_eq!(pool.config().blocking().unwrap(), from_file);
}

#[test]
fn a_pool_that_was_reset_gets_the_files_configuration_again() {
    let directory = std::env::temp_dir().join(format!("standpipe-reset-{}", std::process::id()));
    let open = || {
        let settings = file(&pool_file(2), 1);
        standpipe::Standpipe::builder().settings(settings).home(&directory).open().unwrap()
    };
    let tap = open();
    let pool = tap.pool("t/slots").unwrap();
    drop(pool.reserve(at_once()).blocking().unwrap());
    assert!(pool.reset().blocking().unwrap());
    drop(pool.reserve(at_once()).blocking().unwrap());
    assert_eq!(pool.status().blocking().unwrap().limits[0].amount, 2);
    drop((tap, pool));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_refusal_has_the_same_text_in_json() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let _held = pool.reserve(at_once()).blocking().unwrap();
    let no = refused(pool.reserve(at_once()).blocking());
    let json = serde_json::to_value(&no).unwrap();
    assert_eq!(json["reason"], "limit");
    assert_eq!(json["limit"], "parallel");
    assert_eq!(json["detail"], no.to_string());
}
