//! An audit from lines that are made up.

use super::*;
use crate::finding::{Finding, Level};
use crate::journal::WaitPart;
use crate::testing::TestPool;
use standpipe_core::{Action, AgentName, Amounts, Limit, PoolConfig, Reserve, Rule, Span, Unit};

/// A pool of 100 requests and 10,000 tokens a minute, with a call of `blog` in flight.
fn busy(enforce: bool) -> PoolStatus {
    let period = Span::secs(60);
    let requests = Rule::Window { unit: Unit::Requests, amount: 100, period };
    let tokens = Rule::Window { unit: Unit::Tokens, amount: 10_000, period };
    let limits = [requests, tokens, Rule::Parallel { amount: 5 }].map(Limit::new).to_vec();
    let mut pool = TestPool::configured(PoolConfig { enforce, ..PoolConfig::new(limits) });
    pool.admit("blog", None);
    pool.status()
}

/// The same after the call has ended: it is in the journal.
fn status(enforce: bool) -> PoolStatus {
    PoolStatus { leases: Vec::new(), ..busy(enforce) }
}

fn name() -> PoolName {
    "a/b".parse().unwrap()
}

fn event(what: EventData) -> Event {
    Event { at: Timestamp { millis: 0 }, pool: "a/b".to_owned(), what }
}

/// So many calls in one second, of so many tokens together.
fn used(agent: &str, second: u64, calls: u32, tokens: u64) -> Event {
    let units = [("requests".to_owned(), u64::from(calls)), ("tokens".to_owned(), tokens)];
    event(EventData::Usage(Usage {
        agent: agent.to_owned(),
        from: Timestamp { millis: second * 1_000 },
        per_second: vec![calls],
        enforced: true,
        calls: u64::from(calls),
        units: BTreeMap::from(units),
        ..Usage::default()
    }))
}

fn in_shadow(mut event: Event) -> Event {
    if let EventData::Usage(usage) = &mut event.what {
        usage.enforced = false;
    }
    event
}

fn waited(agent: &str, reason: &str, ended: &str, waited_ms: u64) -> [Event; 2] {
    let (agent, reason, ended) = (agent.to_owned(), reason.to_owned(), ended.to_owned());
    let usage = Usage { agent: agent.clone(), waited_ms, enforced: true, ..Usage::default() };
    let (model, priority, count, longest_ms) = (None, None, 1, waited_ms);
    let wait = EventData::Wait {
        agent,
        model,
        priority,
        reason,
        limit: None,
        used: None,
        usable: None,
        position: None,
        held_by: Vec::new(),
        also: Vec::new(),
        ended,
        next: None,
        refused_for: None,
        count,
        waited_ms,
        longest_ms,
    };
    [event(wait), event(EventData::Usage(usage))]
}

fn audit(events: impl IntoIterator<Item = Event>, status: Option<&PoolStatus>) -> PoolAudit {
    let mut tally = JournalTotals::default();
    events.into_iter().for_each(|event| tally.add(event));
    tally.audit(&name(), status)
}

fn found<'a>(audit: &'a PoolAudit, check: &str) -> Vec<&'a Finding> {
    let of = audit.findings.iter().filter(|finding| finding.check == check);
    of.inspect(|finding| assert!(finding.remedy.is_some(), "{finding:?}")).collect()
}

#[test]
fn every_agent_has_its_average_and_its_peak_and_all_have_theirs() {
    let events = [
        used("blog", 600, 20, 2_000),
        used("blog", 659, 10, 1_000),
        used("blog", 60_000, 3, 300),
        used("engage", 610, 12, 600),
    ];
    let audit = audit(events, Some(&status(true)));
    let agents: Vec<_> = audit.agents.iter().map(|a| (a.agent.as_str(), a.calls)).collect();
    assert_eq!(agents, [("blog", 33), ("engage", 12)]);
    let rates: Vec<_> = audit.agents[0].rates.iter().map(|r| (r.average.tenths, r.peak)).collect();
    assert_eq!(rates, [(165, 30), (16_500, 3_000)], "33 in two minutes, 30 in the busiest");
    let [requests, tokens] = &audit.limits[..] else { panic!("{:?}", audit.limits) };
    assert_eq!((requests.stated, requests.aim), (Some(100), Some(80)));
    assert_eq!((requests.average.tenths, requests.average_percent), (285, Some(28)));
    assert_eq!((requests.peak, requests.peak_at), (42, Some(Timestamp { millis: 600_000 })));
    assert_eq!((tokens.peak, tokens.peak_percent), (3_600, Some(36)));
    assert_eq!(audit.first.zip(audit.last).map(|(a, b)| b.millis - a.millis), Some(59_400_000));
    let [fine] = &audit.findings[..] else { panic!("{:?}", audit.findings) };
    assert_eq!((fine.level, fine.pool.as_deref()), (Level::Ok, Some("a/b")));
    assert!(fine.what.contains("29 %"), "28.5 %: {}", fine.what);
}

#[test]
fn agents_who_never_met_contend_when_they_do() {
    let events = [used("blog", 600, 50, 0), used("engage", 6_000, 40, 0)];
    let audit = audit(events, Some(&status(true)));
    assert_eq!(audit.limits[0].peak, 50);
    let contention = found(&audit, "contention");
    assert_eq!(contention[0].level, Level::Warning);
    assert!(contention[0].what.contains("90 % of the 100"), "{}", contention[0].what);
}

#[test]
fn a_peak_counts_where_nobody_is_held_back() {
    let events = || [used("blog", 600, 60, 0), used("blog", 660, 1, 0), used("e", 601, 21, 0)];
    let held_back = audit(events(), Some(&status(true)));
    assert_eq!(found(&held_back, "contention")[0].level, Level::Ok, "{:?}", held_back.findings);
    let shadow = audit(events().map(in_shadow), Some(&status(false)));
    let contention = found(&shadow, "contention");
    assert!(contention[0].what.contains("81 in the busiest period"), "{}", contention[0].what);
    assert!(contention[0].remedy.as_ref().unwrap().contains("remove `enforce = false`"));
}

#[test]
fn one_agent_that_takes_nearly_all_is_named_if_there_are_others() {
    let greedy = used("blog", 600, 5, 9_000);
    let alone = audit([greedy.clone()], Some(&status(true)));
    assert_eq!(found(&alone, "one agent"), [] as [&Finding; 0]);
    let mut events = vec![greedy, used("engage", 6_000, 1, 1)];
    let both = audit(events.clone(), Some(&status(true)));
    let finding = found(&both, "one agent")[0];
    assert_eq!((finding.agent.as_deref(), finding.level), (Some("blog"), Level::Note));
    events.extend(waited("engage", "limit", "admitted", 1));
    let both = audit(events, Some(&status(true)));
    let finding = found(&both, "one agent")[0];
    assert_eq!(finding.level, Level::Warning, "another agent had to wait for it");
    assert!(finding.what.starts_with("tokens per 1min"), "{}", finding.what);
}

#[test]
fn long_waits_are_told_with_what_they_were_for() {
    let mut events = vec![used("blog", 600, 1, 0), used("engage", 600, 10, 0)];
    events.extend(waited("blog", "cap", "admitted", 6_000));
    events.extend(waited("engage", "limit", "admitted", 6_000));
    let report = audit(events, Some(&status(true)));
    let [wait] = found(&report, "waits")[..] else { panic!("{:?}", report.findings) };
    assert_eq!(wait.agent.as_deref(), Some("blog"));
    assert!(wait.remedy.as_ref().unwrap().contains("its own cap"), "{wait:?}");
    assert_eq!(report.waited_ms, 12_000);

    // Most of a wait was for something else than its event's reason, over all.
    let mut events = vec![used("blog", 600, 1, 0)];
    for _ in 0..2 {
        let [mut wait, usage] = waited("blog", "limit", "admitted", 10_000);
        if let EventData::Wait { also, .. } = &mut wait.what {
            let (reason, limit) = ("cap".to_owned(), None);
            also.push(WaitPart { reason, limit, waited_ms: 6_000 });
        }
        events.extend([wait, usage]);
    }
    let report = audit(events, Some(&status(true)));
    let remedy = found(&report, "waits")[0].remedy.clone().unwrap();
    assert!(remedy.contains("its own cap"), "{remedy}");

    let gave_up = waited("blog", "limit", "refused", 10);
    let report = audit(gave_up, Some(&status(true)));
    assert!(found(&report, "waits")[0].what.contains("1 not admitted in time"));
}

#[test]
fn a_pool_that_was_full_at_times_is_told_though_nobody_waited_long() {
    let mut events = vec![used("blog", 600, 2, 0), used("engage", 600, 2, 0)];
    events.extend(waited("blog", "limit", "admitted", 1_900));
    let fine = audit(events.clone(), Some(&status(true)));
    assert_eq!(found(&fine, "contention")[0].level, Level::Ok);
    events.extend(waited("engage", "limit", "admitted", 200));
    let full = audit(events, Some(&status(true)));
    assert_eq!(found(&full, "contention")[0].level, Level::Note);
}

/// 2 % of the requests, 2.9 % of the tokens.
#[test]
fn the_limit_that_is_used_most_is_named() {
    let fine = audit(vec![used("blog", 600, 2, 290)], Some(&status(true)));
    let what = &found(&fine, "contention")[0].what;
    assert!(what.contains("3 % of the quota (tokens per 1min)"), "{what}");
}

fn refused(about: &str) -> Event {
    let (agent, lease, about) = (None, None, about.to_owned());
    event(EventData::Throttle { agent, lease, about, retry_after_ms: None, said: None })
}

#[test]
fn refusals_retries_and_leases_taken_back_are_told() {
    let (mut retried, mut unknown) = (used("blog", 600, 10, 0), used("other", 600, 0, 0));
    if let (EventData::Usage(blog), EventData::Usage(other)) =
        (&mut retried.what, &mut unknown.what)
    {
        (blog.retries, blog.refused, other.refused) = (3, 2, 1);
    }
    let (lease, agent, why) = ("l".to_owned(), "blog".to_owned(), "expired".to_owned());
    let events = [
        retried,
        unknown,
        refused("quota"),
        refused("overload"),
        event(EventData::Reclaim { lease, agent, why }),
    ];
    let report = audit(events, Some(&status(true)));
    assert_eq!((report.refused, report.overloads, report.agents[0].refused), (3, 1, 2));
    assert!(found(&report, "429s")[0].what.contains("refused 3 calls, 2 of them of blog"));
    assert!(found(&report, "retries")[0].what.contains("3 of 10"));
    assert_eq!(found(&report, "unsettled")[0].level, Level::Note);
}

#[test]
fn a_pool_without_a_rate_still_shows_who_calls_how_often() {
    let report = audit([used("blog", 600, 7, 0)], None);
    assert_eq!(report.limits[0].limit, "requests per 1min");
    assert_eq!((report.limits[0].stated, report.limits[0].peak), (None, 7));
    assert_eq!(found(&report, "quota")[0].level, Level::Note);
    let nothing = audit([], Some(&status(true)));
    assert_eq!((nothing.calls, nothing.findings), (0, Vec::new()));
}

#[test]
fn several_requests_in_a_call_count_as_several() {
    let mut batch = used("blog", 600, 2, 0);
    if let EventData::Usage(usage) = &mut batch.what {
        usage.units.insert("requests".to_owned(), 20);
    }
    let report = audit([batch], Some(&status(true)));
    assert_eq!((report.calls, report.limits[0].peak), (2, 20));
}

#[test]
fn units_that_came_with_no_call_count_when_they_came() {
    let mut later = used("blog", 700, 0, 500);
    if let EventData::Usage(usage) = &mut later.what {
        usage.per_second.clear();
    }
    let report = audit([used("blog", 600, 1, 0), later], Some(&status(true)));
    let tokens = &report.limits[1];
    assert_eq!((tokens.peak, tokens.peak_at), (500, Some(Timestamp { millis: 700_000 })));
}

#[test]
fn what_was_recorded_in_the_other_mode_is_left_out() {
    let events = || vec![in_shadow(used("blog", 600, 90, 0)), used("blog", 700, 3, 0)];
    let held_back = audit(events(), Some(&status(true)));
    assert_eq!((held_back.calls, held_back.left_out, held_back.limits[0].peak), (3, 90, 3));
    let shadow = audit(events(), Some(&status(false)));
    assert_eq!((shadow.calls, shadow.left_out, shadow.limits[0].peak), (90, 3, 90));
    let only = audit(events().drain(..1), Some(&status(true)));
    assert_eq!((only.calls, only.left_out), (90, 0), "better than nothing");
}

#[test]
fn where_there_are_prices_what_was_used_is_money() {
    let prices = BTreeMap::from([(standpipe_core::Unit::Tokens, 3_000_000)]);
    let mut tally = JournalTotals::new(BTreeMap::from([("a/b".to_owned(), prices)]));
    tally.add(used("blog", 1, 2, 1_000_000));
    tally.add(used("blog", 2, 1, 1));
    let audit = tally.audit(&name(), None);
    assert_eq!(audit.agents[0].micro_usd, Some(3_000_003));
    let mut tally = JournalTotals::default();
    tally.add(used("blog", 1, 2, 1_000_000));
    assert_eq!(tally.audit(&name(), None).agents[0].micro_usd, None);
}

/// A full bucket of 60, refilled with 60 a minute.
fn bucket() -> PoolStatus {
    let (unit, period) = (Unit::Requests, Span::secs(60));
    let rule = Rule::Bucket { unit, amount: 60, period, burst: 60 };
    TestPool::new(vec![Limit::new(rule)]).status()
}

#[test]
fn a_bucket_may_pass_its_burst_and_its_rate_in_a_period() {
    let events = [used("blog", 600, 80, 0), used("engage", 6_000, 1, 0)];
    let report = audit(events, Some(&bucket()));
    let requests = &report.limits[0];
    assert_eq!((requests.stated, requests.peak_stated), (Some(60), Some(120)));
    assert_eq!((requests.peak, requests.peak_percent), (80, Some(66)));
    assert_eq!(found(&report, "one agent"), [] as [&Finding; 0], "80 of 120");
    let events = [used("blog", 600, 110, 0), used("engage", 6_000, 1, 0)];
    let report = audit(events, Some(&bucket()));
    let alone = &found(&report, "one agent")[0].what;
    assert!(alone.contains("110 of the 120 that a full bucket allows"), "{alone}");
}

#[test]
fn a_period_that_used_all_is_not_fine() {
    let report = audit([used("blog", 600, 100, 0)], Some(&status(true)));
    assert!(report.findings.iter().all(|finding| finding.level != Level::Ok), "{report:?}");
    let events = [used("blog", 600, 1, 10_000), used("blog", 9_000, 1, 1)];
    let tokens = audit(events, Some(&status(true)));
    let [note] = found(&tokens, "contention")[..] else { panic!("{:?}", tokens.findings) };
    assert!(note.what.contains("the busiest period used"), "{}", note.what);
}

#[test]
fn calls_that_still_wait_count_and_no_total_is_below_the_longest() {
    let mut pool = status(true);
    let mut waiting = TestPool::new(vec![Limit::new(Rule::Parallel { amount: 1 })]);
    waiting.admit("blog", None);
    let engage = AgentName::new("engage").unwrap();
    let patience = Span::secs(60);
    let call = Reserve { patience, ..Reserve::new(engage, Amounts::cost([]).unwrap()) };
    waiting.apply(Action::from(call));
    pool.tickets = waiting.status().tickets;
    pool.tickets[0].waits_ms = 24_000;
    let report = audit([used("blog", 600, 1, 0)], Some(&pool));
    let engage = report.agents.iter().find(|agent| agent.agent == "engage").unwrap();
    assert_eq!((engage.waiting, engage.waited_ms, engage.longest_ms), (1, 24_000, 24_000));
    assert!(found(&report, "waits")[0].what.ends_with("; 1 still waits"), "{report:?}");
    // A call in flight has recorded its wait, and not its use.
    let [wait, _] = waited("blog", "limit", "admitted", 9_000);
    let report = audit([used("blog", 600, 1, 0), wait], Some(&status(true)));
    assert_eq!((report.agents[0].waited_ms, report.agents[0].longest_ms), (9_000, 9_000));
}

#[test]
fn a_pool_without_rates_has_no_limit_to_lower() {
    let mut call = used("blog", 600, 10, 0);
    if let EventData::Usage(usage) = &mut call.what {
        usage.refused = 1;
    }
    let report = audit([call], None);
    let remedy = found(&report, "429s")[0].remedy.as_ref().unwrap();
    assert!(remedy.starts_with("no rate of this pool is known"), "{remedy}");
}

#[test]
fn a_cancelled_call_is_no_call() {
    let cancelled = |mut event: Event, count| {
        if let EventData::Usage(usage) = &mut event.what {
            usage.cancelled = count;
            usage.units.clear();
        }
        event
    };
    let nothing = audit([cancelled(used("blog", 600, 1, 0), 1)], Some(&status(true)));
    assert_eq!((nothing.calls, nothing.first, nothing.agents[0].cancelled), (0, None, 1));
    // Admitted by one process and cancelled by another.
    let mut later = used("blog", 601, 0, 0);
    if let EventData::Usage(usage) = &mut later.what {
        (usage.cancelled, usage.per_second) = (4, Vec::new());
    }
    let each = (600..610).map(|second| cancelled(used("blog", second, 1, 0), 0));
    let report = audit(each.chain([later]), Some(&status(true)));
    assert_eq!((report.calls, report.agents[0].cancelled), (6, 4));
    assert_eq!((report.limits[0].peak, report.limits[0].average.tenths), (6, 60));
}

#[test]
fn agents_with_the_same_cause_are_one_finding_and_have_the_calls_of_the_table() {
    let mut events = vec![used("blog", 600, 1, 0), used("data", 600, 2, 0)];
    for agent in ["blog", "data", "late"] {
        events.extend(waited(agent, "limit", "admitted", 30_000));
    }
    let report = audit(events.clone(), Some(&status(true)));
    let [wait] = found(&report, "waits")[..] else { panic!("{:?}", report.findings) };
    let what = "data, blog and late waited 1 min 30 s for 3 calls, the longest 30 s";
    assert_eq!((wait.what.as_str(), wait.agent.as_deref()), (what, None));
    assert!(wait.remedy.as_ref().unwrap().starts_with("give those that must not wait"));
    let alone = audit(waited("late", "limit", "admitted", 30_000), Some(&status(true)));
    let [wait] = found(&alone, "waits")[..] else { panic!("{:?}", alone.findings) };
    assert_eq!(wait.what, "late waited 30 s, the longest 30 s", "it has 0 calls in the table");
}

#[test]
fn a_wait_for_a_slot_is_not_shortened_by_a_higher_rate() {
    let mut events = vec![used("blog", 600, 1, 0)];
    events.extend(waited("blog", "order", "admitted", 30_000));
    if let EventData::Wait { limit, .. } = &mut events[1].what {
        *limit = Some("parallel".to_owned());
    }
    let report = audit(events, Some(&status(true)));
    let remedy = found(&report, "waits")[0].remedy.as_ref().unwrap();
    assert!(remedy.starts_with("mostly for a call in flight to end"), "{remedy}");
    assert!(!remedy.contains("higher limit"), "{remedy}");
}

#[test]
fn calls_that_are_not_written_yet_are_not_passed_over() {
    let status = busy(true);
    let until = Timestamp { millis: status.leases[0].since.millis + 4_000 };
    let complete = |written: Option<u64>| {
        let mut tally = JournalTotals::default();
        let line =
            written.map(|millis| Event { at: Timestamp { millis }, ..used("blog", 1, 1, 0) });
        line.into_iter().for_each(|line| tally.add(line));
        tally.complete_until(&name(), Some(&status), until)
    };
    let bound = Some(Timestamp { millis: until.millis - 10_000 });
    assert_eq!((complete(None), complete(Some(until.millis - 9_000))), (bound, bound));
    assert_eq!(complete(Some(until.millis - 3_000)), None, "its admission is written");
    let later = Timestamp { millis: until.millis + 60_000 };
    let mut tally = JournalTotals::default();
    tally.add(used("news", 1, 1, 0));
    assert_eq!(tally.complete_until(&name(), Some(&status), later), None, "another machine's");
}

#[test]
fn a_wait_after_a_refusal_is_not_a_full_limit() {
    let full = |reason: &str| {
        let [wait, _] = waited("blog", reason, "admitted", 2_000);
        let report = audit([used("blog", 600, 1, 0), wait], Some(&status(true)));
        report.findings.iter().any(|finding| finding.what.contains("the limits were full"))
    };
    assert!(full("limit") && !full("pause"));
}

#[test]
fn an_average_is_not_above_the_peak() {
    let period = Span::secs(50);
    let rule = Rule::Window { unit: Unit::Requests, amount: 5, period };
    let pool = TestPool::new(vec![Limit::new(rule)]).status();
    let report = audit([used("blog", 600, 5, 0), used("blog", 655, 5, 0)], Some(&pool));
    let rate = &report.agents[0].rates[0];
    assert_eq!((rate.average.tenths, rate.peak), (50, 5), "10 in a minute are 8.3 in 50 s");
    assert_eq!(
        (report.limits[0].average.tenths, report.limits[0].average_percent),
        (50, Some(100))
    );
}

mod incidents;

#[test]
fn calls_that_named_another_pool_are_told_apart() {
    let mut part = used("blog", 60, 3, 300);
    if let EventData::Usage(usage) = &mut part.what {
        (usage.part, usage.retries, usage.cancelled) = (true, 2, 1);
    }
    let audit = audit([part, used("blog", 61, 2, 200)], Some(&status(true)));
    let [blog] = &audit.agents[..] else { panic!("{audit:?}") };
    let parts = Parts { calls: 2, retries: 2, ..Parts::default() };
    assert_eq!((blog.calls, blog.parts), (4, parts));
}

#[test]
fn a_remedy_fits_its_cause() {
    let remedy = |events: Vec<Event>, check: &str| {
        let report = audit(events, Some(&status(true)));
        found(&report, check)[0].remedy.clone().unwrap()
    };
    let [wait, usage] = waited("blog", "pace", "admitted", 10_000);
    let paced = remedy(vec![used("blog", 600, 1, 0), wait, usage], "waits");
    assert!(paced.contains("`pace`"), "{paced}");
    let mut call = used("blog", 600, 1, 0);
    if let EventData::Usage(usage) = &mut call.what {
        usage.refused = 1;
        usage.refusals.insert("retry_budget".to_owned(), 1);
    }
    let at_once = remedy(vec![call.clone(), refused("concurrency")], "429s");
    assert!(at_once.contains("`parallel`"), "{at_once}");
    let (agent, client) = ("blog".to_owned(), "OpenAI/JS".to_owned());
    let by_client = event(EventData::ClientRetry { agent, client, guessed: false });
    let own = remedy(vec![call.clone()], "not admitted");
    assert!(own.contains("`retry_budget`") && !own.contains("SDK"), "{own}");
    let of_clients = remedy(vec![call, by_client], "not admitted");
    assert!(of_clients.contains("`max_retries=0`"), "{of_clients}");
}
