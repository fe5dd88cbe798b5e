//! States in which calls cannot run, or checks cannot, and the limits that providers refused.

use standpipe_core::{Limit, Rule, Span, ThrottleKind};

use super::super::*;
use super::{Kept, NOW, event, one, overview, pool, refused, scene};
use crate::journal::{Event, EventData, UnwritableFile};
use crate::status::{Incident, LostLedger, Pause, PoolStatus, Retries, Stop};
use crate::testing::TestPool;

#[test]
fn an_unreachable_store_is_one_failure_and_what_needs_it_is_not_well() {
    let mut scene = scene(vec![pool("my/api")]);
    scene.survey = None;
    let store = scene.store.as_mut().unwrap();
    let error = "redis://127.0.0.1:1 cannot be reached: connection refused; start it".to_owned();
    (store.pools, store.server) = (Err(error.clone()), Some(Err(error)));
    (store.round_trip, store.journal) = (Ok(RoundTrip::NoPool), Some("state".into()));
    let diagnosis = Diagnosis::of(&scene);
    assert_eq!(diagnosis.count(Level::Failure), 1, "{diagnosis:#?}");
    let text = |level| {
        let found = diagnosis.findings.iter().filter(|f| f.level == level);
        found.map(|f| format!("{}: {}\n", f.check, f.what)).collect::<String>()
    };
    let says = "store: not checked while the store is unreachable: writing, server, clocks, pools, \
                stale state, processes\n";
    assert_eq!(text(Level::Note), says, "one fault has one note");
    let ok = text(Level::Ok);
    assert!(ok.contains("429s: no 429s in 7 days"), "the journal is on this machine: {ok}");
    assert!(!ok.contains("no pool yet") && !ok.contains("abandoned"), "{ok}");
}

/// What is found of one pool that was changed like this.
fn changed(group: Group, week: &[Event], change: impl FnOnce(&mut PoolStatus)) -> Vec<Finding> {
    let mut pool = TestPool::new(vec![Limit::new(Rule::Parallel { amount: 1 })]);
    pool.admit("blog", Some(Span::secs(600)));
    let mut overview = overview(&pool);
    change(&mut overview.status);
    let mut scene = scene(vec![("my/api".parse().unwrap(), Ok(overview))]);
    scene.week = week.to_vec();
    group(&scene)
}

fn in_ms(for_ms: u64) -> Option<Pause> {
    Some(Pause { until: NOW, for_ms, by: None, at: None })
}

#[test]
fn a_stopped_or_paused_pool_is_not_well() {
    one(&changed(blocked::check, &[], |_| ()), Level::Ok, "no pool is stopped");
    let stop = || Some(Stop { until: None, for_ms: None, look_ms: Some(3_600_000) });
    let mut refused = refused(300_000, Some("blog"), "terminal");
    if let EventData::Throttle { said, .. } = &mut refused.what {
        *said = Some("Your credit balance is too low".to_owned());
    }
    let found = changed(blocked::check, &[refused], |status| status.terminal = stop());
    let says = "the provider stopped `my/api`, so no call is admitted; blog was refused 5 min ago \
                (\"Your credit balance is too low\")";
    one(&found, Level::Failure, says);
    let remedy = found[0].remedy.as_ref().unwrap();
    assert!(remedy.ends_with("then: standpipe resume my/api"), "{remedy}");
    let found = changed(blocked::check, &[], |status| status.terminal = stop());
    assert!(found[0].what.ends_with("no call is admitted"), "{found:?}");
    let found = changed(blocked::check, &[], |status| status.pause = in_ms(8_000));
    one(&found, Level::Note, "`my/api` is paused for another 8 s");
    let ago = |status: &PoolStatus| Timestamp { millis: status.at.millis - 3_000 };
    let found = changed(blocked::check, &[], |status| {
        let at = Some(ago(status));
        status.pause = Some(Pause { until: NOW, for_ms: 8_000, by: Some("ops".to_owned()), at });
    });
    one(&found, Level::Note, "is paused for another 8 s, ordered by ops 3 s ago");
    let found = changed(blocked::check, &[], |status| {
        let (at, agent) = (ago(status), Some("blog".to_owned()));
        let kind = ThrottleKind::Quota.into();
        status.trouble.incident = Some(Incident { kind, agent, at, ago_ms: 3_000 });
        status.pause = in_ms(8_000);
    });
    one(&found, Level::Note, "is paused for another 8 s: blog got a 429 (quota) 3 s ago");
}

#[test]
fn a_lost_ledger_is_not_well_while_limits_count_as_full_and_a_week_after() {
    let deleted = || {
        let what = "the ledger of `my/api` was deleted; its limits count as full and so on";
        event(60_000, EventData::Store { what: what.to_owned() })
    };
    let lose = |status: &mut PoolStatus| status.learning = in_ms(40_000);
    let says = "the store lost the ledger of `my/api`; slots count as full for another 40 s; until";
    one(&changed(losses::check, &[], lose), Level::Warning, says);
    let says = "lost the ledger of `my/api` 1 min ago; slots count as full";
    one(&changed(losses::check, &[deleted()], lose), Level::Warning, says);
    let found = changed(losses::check, &[deleted()], |_| ());
    one(&found, Level::Warning, "`my/api`: the ledger of `my/api` was deleted 1 min ago; until");
    let remedy = found[0].remedy.as_ref().unwrap();
    assert!(remedy.contains("docs/recipes/backup.md") && remedy.contains("keep state"), "{remedy}");
}

#[test]
fn losses_of_another_store_are_left_out() {
    let lost = |pool: &str, what: &str| {
        let what = EventData::Store { what: what.to_owned() };
        Event { pool: pool.to_owned(), ..event(60_000, what) }
    };
    let server = "`my/api` was lost on redis://h; rates count as full";
    let week = [lost("x/w", "the ledger of `x/w` was deleted"), lost("my/api", server)];
    one(&Kept::new().found(losses::check, &week), Level::Ok, "no loss of a ledger");
    let mut kept = Kept::new();
    kept.scene.store.as_mut().unwrap().place = "redis://h".to_owned();
    one(&kept.found(losses::check, &week), Level::Warning, "was lost on redis://h");
}

#[test]
fn a_pool_in_shadow_mode_is_a_note() {
    let found = changed(blocked::check, &[], |status| status.enforce = false);
    one(&found, Level::Note, "`my/api` runs in shadow mode");
}

#[test]
fn a_journal_on_a_full_or_read_only_disk_is_not_well() {
    let mut kept = Kept::new();
    kept.scene.survey.as_mut().unwrap().free = 100;
    one(&kept.found(journal::check, &[]), Level::Warning, "its disk is full");
    let mut kept = Kept::new();
    kept.scene.store.as_mut().unwrap().unwritable = vec![UnwritableFile {
        path: "j".into(),
        why: "read-only file system".to_owned(),
        is_directory: false,
        is_read_only: true,
        owner: None,
    }];
    let found = kept.found(journal::check, &[]);
    one(&found, Level::Warning, "read-only");
    assert!(found[0].remedy.as_ref().unwrap().starts_with("mount its file system"), "{found:?}");
}

#[test]
fn what_several_processes_report_of_one_loss_is_one_loss() {
    let store = |ago, what: &str| event(ago, EventData::Store { what: what.to_owned() });
    let entries = "the store lost its latest entries; 2 of this process's were put back";
    let deleted = "the ledger of `my/api` was deleted; its limits count as full and so on";
    let week = [store(90_000, deleted), store(89_000, entries), store(60_000, entries)];
    let says = "`my/api`: the ledger of `my/api` was deleted 1 min ago; until";
    one(&Kept::new().found(losses::check, &week), Level::Warning, says);
    let week = [store(200_000, deleted), week[0].clone(), week[1].clone()];
    let says = "`my/api`: the ledger of `my/api` was deleted 2 times in 7 days";
    one(&Kept::new().found(losses::check, &week), Level::Warning, says);
}

#[test]
fn a_ledger_that_is_gone_is_a_failure_with_its_file_and_the_way_out() {
    let mut scene = scene(Vec::new());
    scene.store.as_mut().unwrap().lost = vec![LostLedger {
        pool: "my/api".parse().unwrap(),
        file: "state/pools/my+api.pool".to_owned(),
        slots_full_ms: 600_000,
    }];
    let found = losses::check(&scene);
    one(&found, Level::Failure, "`my/api`: its ledger state/pools/my+api.pool is gone; the next");
    let remedy = found[0].remedy.as_ref().unwrap();
    assert!(remedy.ends_with("running: standpipe store reset my/api --yes"), "{remedy}");
}

#[test]
fn entries_that_the_store_lost_are_told_and_an_outage_is_not() {
    let store = |ago, what: &str| event(ago, EventData::Store { what: what.to_owned() });
    let mut kept = Kept::new();
    let outage = store(9_000, "the store is unavailable; calls are admitted without limit");
    let week = [outage.clone()];
    one(&kept.found(losses::check, &week), Level::Ok, "no loss of a ledger was recorded");
    let entries = "the store lost its latest entries; 1 of this process's were put back";
    let week = [store(60_000, entries), outage, store(5_000, entries)];
    let says = "`my/api`: the store lost its latest entries 2 times in 7 days, last 5 s ago; until \
                processes restored their calls, those in flight were unknown, so limits may";
    one(&kept.found(losses::check, &week), Level::Warning, says);
    // Found by this look: the store reports it, and the ledgers are not well.
    let text = "the ledger of `my/odd` is damaged: it is a directory. It is kept as x; a new one";
    kept.scene.store.as_mut().unwrap().messages = vec![text.to_owned()];
    assert_eq!(kept.found(losses::check, &[]), []);
    let found = store::check(&kept.scene);
    let warning = found.iter().find(|finding| finding.level == Level::Warning).unwrap();
    assert!(warning.what.ends_with("a new one"), "{warning:?}");
    assert!(warning.remedy.as_ref().unwrap().starts_with("find out what"), "{warning:?}");
}

#[test]
fn a_stopped_process_that_holds_the_only_slot_is_not_well() {
    let stopped = |status: &mut PoolStatus| {
        (status.leases[0].pid, status.leases[0].stopped) = (Some(8_803), true);
    };
    let found = changed(blocked::check, &[], stopped);
    one(&found, Level::Note, "process 8803 (blog) is stopped and holds 1 lease of `my/api`");
    let found = changed(blocked::check, &[], |status| {
        stopped(status);
        status.waiting = 1;
    });
    one(&found, Level::Warning, "holds 1 lease of `my/api`, and 1 call waits");
    let remedy = found[0].remedy.as_ref().unwrap();
    assert!(remedy.contains("kill -CONT 8803") && remedy.contains("kill -9 8803"), "{remedy}");
}

#[test]
fn b10_a_stopped_process_that_waits_idles_the_room_that_is_kept_for_it() {
    let mut pool = TestPool::new(vec![Limit::new(Rule::Parallel { amount: 1 })]);
    pool.admit("busy", None);
    let mut call = standpipe_core::Reserve::new(
        standpipe_core::AgentName::new("late").unwrap(),
        standpipe_core::Amounts::cost([]).unwrap(),
    );
    call.patience = Span::secs(60);
    pool.apply(standpipe_core::Action::from(call));
    let mut ticket = pool.status().tickets.remove(0);
    (ticket.pid, ticket.stopped) = (Some(12_074), true);
    let found = changed(blocked::check, &[], |status| status.tickets = vec![ticket]);
    let says = "process 12074 (late) is stopped and waits on `my/api`: room that is free";
    one(&found, Level::Warning, says);
    let remedy = found[0].remedy.as_ref().unwrap();
    assert!(remedy.contains("kill -CONT 12074") && remedy.contains("kill -9 12074"), "{remedy}");
}

#[test]
fn p2_a_retry_budget_that_is_used_up_is_not_well() {
    let used_up = |status: &mut PoolStatus| {
        let retries = Retries { left: 0, per_minute: 3, used_up: in_ms(40_000) };
        status.trouble.retries = Some(retries);
    };
    let says = "the retry budget of `my/api` is used up: 0 of 3 left, so retries are refused for \
                another 40 s";
    let found = changed(blocked::check, &[], used_up);
    one(&found, Level::Warning, says);
    let remedy = |found: &[Finding]| found[0].remedy.clone().unwrap();
    assert!(remedy(&found).contains("`retry_budget`"), "{found:?}");
    let (agent, client) = ("blog".to_owned(), "OpenAI/JS".to_owned());
    let retry = EventData::ClientRetry { agent, client, guessed: false };
    let found = changed(blocked::check, &[event(0, retry)], used_up);
    assert!(remedy(&found).contains("`max_retries=0`"), "{found:?}");
}

#[test]
fn b25_a_failure_of_the_store_always_has_a_remedy() {
    let mut scene = scene(vec![pool("my/api")]);
    let store = scene.store.as_mut().unwrap();
    store.pools = Err("redis://127.0.0.1:1 is busy with a long-running script".to_owned());
    let found = store::check(&scene);
    let failure = found.iter().find(|finding| finding.level == Level::Failure).unwrap();
    assert!(failure.remedy.as_ref().unwrap().contains("then run doctor again"), "{failure:?}");
}

#[test]
fn a_slot_that_no_process_owns_is_not_well_while_others_want_it() {
    one(&changed(stale::check, &[], |_| ()), Level::Ok, "no abandoned");
    let waiting = |age_ms| {
        changed(stale::check, &[], |status| {
            (status.waiting, status.leases[0].age_ms) = (2, age_ms);
        })
    };
    // A call that began a moment ago probably still runs.
    one(&waiting(59_999), Level::Ok, "no abandoned");
    let found = waiting(60_000);
    one(&found, Level::Warning, "blog has held a slot of `my/api` without a process for");
    assert!(found[0].what.ends_with("and 2 calls wait"), "{found:?}");
    let remedy = found[0].remedy.as_ref().unwrap();
    assert!(remedy.contains("standpipe commit") && remedy.contains("standpipe cancel"), "{remedy}");
    let late = EventData::Wait {
        agent: "news".to_owned(),
        model: None,
        priority: None,
        reason: "limit".to_owned(),
        limit: Some("parallel".to_owned()),
        used: None,
        usable: None,
        position: None,
        held_by: Vec::new(),
        also: Vec::new(),
        ended: "refused".to_owned(),
        next: None,
        refused_for: None,
        count: 1,
        waited_ms: 50,
        longest_ms: 50,
    };
    let old = |status: &mut PoolStatus| status.leases[0].age_ms = 60_000;
    let found = changed(stale::check, &[event(0, late)], old);
    one(&found, Level::Warning, "and 1 call was not admitted in time");
    let owned = changed(stale::check, &[], |status| {
        (status.waiting, status.leases[0].pid, status.leases[0].age_ms) = (2, Some(1), 60_000);
    });
    one(&owned, Level::Ok, "no abandoned");
}

#[test]
fn each_limit_has_its_own_margin_and_the_refused_one_is_named() {
    let mut kept = Kept::new();
    let status = |kept: &mut Kept, change: &dyn Fn(&mut PoolStatus)| {
        change(&mut super::pools_of(&mut kept.scene)[0].1.as_mut().unwrap().status);
    };
    status(&mut kept, &|status| {
        let mut points = status.limits[0].clone();
        (points.unit, points.limit) = ("points".to_owned(), "points per 1min".to_owned());
        (points.amount, points.margin_per_mille) = (900, Some(500));
        status.limits[0].margin_per_mille = Some(50);
        status.limits.push(points);
    });
    let quota = |ago| refused(ago, Some("blog"), "quota");
    let margin = |limit: &str, per_mille| {
        event(8_000, EventData::Margin { limit: limit.to_owned(), per_mille })
    };
    let found = kept.found(refusals::check, &[quota(9_000), quota(5_000)]);
    let each = "; margin auto, now 5 % of requests 100/min, 50 % of points 900/min";
    assert!(found[0].what.ends_with(each), "{found:?}");
    let remedy = |found: &[Finding]| found[0].remedy.clone().unwrap();
    assert!(remedy(&found).starts_with("a limit is set too high: lower it; if"), "{found:?}");
    let week = [
        margin("requests per 1min", 50),
        quota(9_000),
        margin("points per 1min", 280),
        quota(5_000),
        margin("points per 1min", 500),
    ];
    let found = kept.found(refusals::check, &week);
    one(&found, Level::Warning, "the last 5 s ago, on points per 1min; margin auto");
    assert!(remedy(&found).starts_with("points per 1min is set too high: lower it;"), "{found:?}");
}

#[test]
fn b19_a_reading_that_was_not_believed_is_no_proof_that_nobody_bypasses() {
    let anomaly = |about: &str| {
        let (value, why) = ("4 remaining".to_owned(), "it is about a smaller burst".to_owned());
        event(9_000, EventData::Anomaly { about: about.to_owned(), value, why })
    };
    let headers = std::collections::BTreeMap::from([("x-ratelimit".to_owned(), "9".to_owned())]);
    let reported = event(9_500, EventData::Observe { lease: None, headers });
    let mut kept = Kept::new();
    let week = [reported.clone(), anomaly("retry-after")];
    one(&kept.found(bypass::check, &week), Level::Ok, "counted no call that bypassed");
    let week = [reported, anomaly("requests per 1min"), anomaly("requests per 1min")];
    let found = kept.found(bypass::check, &week);
    one(&found, Level::Note, "2 readings of requests per 1min in 7 days showed less than");
    assert!(found[0].what.ends_with("(4 remaining): it is about a smaller burst"), "{found:?}");
}

#[test]
fn a_directory_for_everybody_is_one_finding_with_one_remedy() {
    let mut scene = scene(Vec::new());
    scene.survey.as_mut().unwrap().mode = 0o1777;
    let error = "every user can write to /tmp (mode 1777); use a directory of your own".to_owned();
    scene.store = Err(error);
    let found = store::check(&scene);
    assert!(found.iter().all(|finding| !finding.what.contains("other users")), "{found:?}");
    assert_eq!(found.iter().filter(|finding| finding.remedy.is_some()).count(), 1, "{found:?}");
}
