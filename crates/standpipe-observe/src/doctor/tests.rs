//! Each check on a scene that is made up.

use standpipe_config::{Problem, Settings};
use standpipe_core::{Limit, Margin, PoolConfig, Rule, Span, Unit};
use standpipe_store::PoolName;

use super::*;
use crate::journal::{Event, EventData};
use crate::status::ConfigSource;
use crate::status::PoolOverview;
use crate::testing::TestPool;

const NOW: Timestamp = Timestamp { millis: 1_700_000_000_000 };

/// An unused pool of 100 requests a minute.
fn pool(name: &str) -> (PoolName, Result<PoolOverview, String>) {
    let rule = Rule::Window { unit: Unit::Requests, amount: 100, period: Span::secs(60) };
    let config = PoolConfig { margin: Margin::Auto, ..PoolConfig::new(vec![Limit::new(rule)]) };
    let pool = TestPool::configured(config);
    (name.parse().unwrap(), Ok(overview(&pool)))
}

fn overview(pool: &TestPool) -> PoolOverview {
    let (status, config, unused_ms) = (pool.status(), None, Some(0));
    PoolOverview { status, config, unused_ms, dead: 0, processes: 0, clock: NOW }
}

/// A scene on a store with a journal.
struct Kept {
    scene: Scene,
}

impl Kept {
    fn new() -> Self {
        let mut scene = scene(vec![pool("my/api")]);
        scene.store.as_mut().unwrap().journal = Some("state".into());
        Self { scene }
    }

    /// What a group finds in a week of these.
    fn found(&mut self, group: Group, week: &[Event]) -> Vec<Finding> {
        self.scene.week = week.to_vec();
        group(&self.scene)
    }
}

/// A machine where all is well, and these pools.
fn scene(pools: Pools) -> Scene {
    let round_trip = match pools.first() {
        Some((name, _)) => RoundTrip::Event(name.clone()),
        None => RoundTrip::Marker,
    };
    let survey = Survey {
        path: "state".into(),
        exists: true,
        mode: 0o700,
        owner: 1_000,
        user: 1_000,
        file_system: Some("ext4".to_owned()),
        network: None,
        free: u64::MAX,
    };
    let store = OpenStore {
        lost: Vec::new(),
        place: "state".to_owned(),
        pools: Ok(pools),
        journal: None,
        unwritable: Vec::new(),
        round_trip: Ok(round_trip),
        messages: Vec::new(),
        quarantined: Vec::new(),
        server: None,
    };
    Scene {
        now: NOW,
        settings: Ok(Settings::default()),
        assumed: false,
        agent: None,
        survey: Some(survey),
        store: Ok(store),
        week: Vec::new(),
    }
}

fn pools_of(scene: &mut Scene) -> &mut Pools {
    scene.store.as_mut().unwrap().pools.as_mut().unwrap()
}

fn settings(text: &str) -> Settings {
    Settings::parse(text, Some("standpipe.toml".as_ref()), 1_000).unwrap()
}

fn event(ago_ms: u64, what: EventData) -> Event {
    Event { at: Timestamp { millis: NOW.millis - ago_ms }, pool: "my/api".to_owned(), what }
}

fn refused(ago_ms: u64, agent: Option<&str>, about: &str) -> Event {
    let (agent, about) = (agent.map(ToOwned::to_owned), about.to_owned());
    event(
        ago_ms,
        EventData::Throttle { agent, lease: None, about, retry_after_ms: None, said: None },
    )
}

fn paused(ago_ms: u64, for_ms: u64) -> Event {
    let until = Timestamp { millis: NOW.millis - ago_ms + for_ms };
    event(ago_ms, EventData::Pause { until, for_ms, by: None })
}

/// Asserts one finding; a warning or a failure has a remedy.
#[track_caller]
fn one(found: &[Finding], level: Level, says: &str) {
    let [finding] = found else { panic!("one of {found:#?}") };
    assert_eq!(finding.level, level, "{finding:?}");
    assert!(finding.what.contains(says), "{finding:?}");
    assert!(level < Level::Warning || finding.remedy.is_some(), "{finding:?}");
    let is_none = finding.remedy.as_ref().is_some_and(|remedy| remedy.starts_with("none"));
    assert!(!is_none, "a remedy is an action: {finding:?}");
}

#[test]
fn where_all_is_well_every_group_says_so() {
    let diagnosis = Diagnosis::of(&scene(vec![pool("my/api")]));
    let odd: Vec<_> = diagnosis.findings.iter().filter(|f| f.level != Level::Ok).collect();
    // The made-up store is in memory and keeps no journal.
    assert_eq!(odd.iter().map(|f| f.check).collect::<Vec<_>>(), ["journal"]);
    assert!(!diagnosis.config_is_broken() && !diagnosis.store_is_unusable());
    for group in ["configuration", "store", "file system", "clocks", "stale state", "processes"] {
        assert!(diagnosis.findings.iter().any(|f| f.check == group), "{group}");
    }
}

#[test]
fn a_broken_file_is_told_at_its_line_and_nothing_else_is_left_out() {
    let mut scene = scene(vec![pool("my/api")]);
    let (file, line) = (Some("x.toml".into()), Some(3));
    let (what, remedy) = ("`60/m` is odd".to_owned(), "min or ms?".to_owned());
    scene.settings = Err(Problem { file, line, what, remedy }.into());
    one(&configuration::check(&scene), Level::Failure, "x.toml:3: `60/m` is odd");
    let diagnosis = Diagnosis::of(&scene);
    assert!(diagnosis.config_is_broken() && !diagnosis.store_is_unusable());
    assert!(diagnosis.findings.iter().any(|f| f.check == "processes"));
}

#[test]
fn an_agent_that_cannot_be_is_a_failure() {
    let mut scene = scene(Vec::new());
    scene.agent = Some("über".to_owned());
    one(&configuration::check(&scene)[1..], Level::Failure, "$STANDPIPE_AGENT");
    scene.agent = Some(String::new());
    assert_eq!(configuration::check(&scene).len(), 1);
}

#[test]
fn pools_that_the_file_does_not_describe_are_named() {
    let mut scene = scene(vec![pool("my/api"), pool("my/old")]);
    scene.settings = Ok(settings("[pool.\"my/api\"]\nrequests = \"60/min\"\n"));
    one(&configuration::check(&scene)[1..], Level::Note, "`my/old` is in the store");
    let open = "open_pools = true\n[pool.\"my/api\"]\nrequests = \"60/min\"\n";
    scene.settings = Ok(settings(open));
    one(&configuration::check(&scene)[1..], Level::Note, "`my/old` has its limits from code");
}

#[test]
fn a_file_without_pools_is_a_warning() {
    let mut scene = scene(Vec::new());
    scene.settings = Ok(settings("open_pools = false\n"));
    one(&configuration::check(&scene)[1..], Level::Warning, "describes no pool");
}

#[test]
fn a_ledger_that_goes_by_another_file_is_told() {
    let mut scene = scene(vec![pool("my/api")]);
    let mut own = settings("[pool.\"my/api\"]\nrequests = \"60/min\"\n");
    scene.settings = Ok(own.clone());
    let origin = &mut pools_of(&mut scene)[0].1.as_mut().unwrap().status.origin;
    (origin.source, origin.written) =
        (ConfigSource::File.into(), Some(Timestamp { millis: 2_000 }));
    let found = configuration::check(&scene);
    one(&found[1..], Level::Warning, "is configured by another file, written 400 d ago, not by");
    // The same file on another machine is saved at another time, and is no other configuration.
    pools_of(&mut scene)[0].1.as_mut().unwrap().config =
        own.pool_config(&"my/api".parse().unwrap());
    assert_eq!(configuration::check(&scene).len(), 1);
    pools_of(&mut scene)[0].1.as_mut().unwrap().config = None;
    own.written = 2_000;
    scene.settings = Ok(own.clone());
    assert_eq!(configuration::check(&scene).len(), 1);
    own.written = NOW.millis + 60_000;
    scene.settings = Ok(own);
    one(&configuration::check(&scene)[1..], Level::Warning, "written in the future");
}

#[test]
fn limits_from_flags_beside_the_file_are_told() {
    let mut scene = scene(vec![pool("my/api")]);
    scene.settings = Ok(settings("[pool.\"my/api\"]\nrequests = \"60/min\"\n"));
    let config = |result: &str, source: &str| {
        let (result, source) = (result.to_owned(), source.to_owned());
        event(1, EventData::Config { result, source })
    };
    scene.week = vec![config("applied", "code"), config("kept", "file"), config("kept", "code")];
    one(&configuration::check(&scene)[1..], Level::Note, "`my/api` 1 time in 7 days");
}

#[test]
fn a_store_that_cannot_be_opened_is_a_failure() {
    let mut scene = scene(Vec::new());
    scene.store = Err("the disk is gone; bring it back".to_owned());
    let found = store::check(&scene);
    one(&found[..1], Level::Failure, "the disk is gone");
    assert_eq!(found[0].remedy.as_deref(), Some("bring it back"));
    assert_eq!(found.len(), 3, "the directory is looked at all the same: {found:?}");
    assert!(Diagnosis::of(&scene).store_is_unusable());
}

#[test]
fn a_pool_that_cannot_be_read_is_a_failure_of_its_own() {
    let broken = ("my/odd".parse().unwrap(), Err("it is odd; fix it".to_owned()));
    let mut scene = scene(vec![pool("my/api"), broken]);
    scene.store.as_mut().unwrap().journal = Some("state".into());
    let found = store::check(&scene);
    one(&found[..1], Level::Failure, "`my/odd` cannot be read: it is odd");
    assert_eq!(found[0].remedy.as_deref(), Some("fix it"));
    let of = |scene: &Scene, check: &str| {
        let found = Diagnosis::of(scene).findings.into_iter();
        found.filter(|f| f.check == check).collect::<Vec<_>>()
    };
    scene.week = vec![{
        let headers = std::collections::BTreeMap::from([("ratelimit".to_owned(), "9".to_owned())]);
        event(9_000, EventData::Observe { lease: None, headers })
    }];
    for check in ["pools", "stale state", "429s", "outside"] {
        one(&of(&scene, check), Level::Note, "not checked for `my/odd`: the ledger cannot be read");
    }
    scene.week = vec![refused(9, None, "quota"), refused(5, None, "quota")];
    assert_eq!(of(&scene, "429s")[0].level, Level::Warning);
    // A directory of one's own that denies access.
    scene.survey.as_mut().unwrap().mode = 0o500;
    let found = store::check(&scene);
    assert_eq!(found[0].remedy.as_deref(), Some("chmod 700 state"));
}

#[test]
fn use_outside_is_not_known_where_no_response_reported_limits() {
    let mut kept = Kept::new();
    let says = "not known for `my/api`: no response with limits was reported in 7 days";
    one(&kept.found(bypass::check, &[]), Level::Ok, says);
    let with = |header: &str| {
        let headers = std::collections::BTreeMap::from([(header.to_owned(), "9".to_owned())]);
        event(9_000, EventData::Observe { lease: None, headers })
    };
    one(&kept.found(bypass::check, &[with("Retry-After")]), Level::Ok, says);
    let reported = with("x-ratelimit-remaining");
    one(&kept.found(bypass::check, std::slice::from_ref(&reported)), Level::Ok, "counted no call");
    let quota = |ago| refused(ago, None, "quota");
    let week = [reported, quota(5_000), quota(4_000)];
    assert_eq!(kept.found(bypass::check, &week), [], "the 429s say that some calls may bypass");
    one(&kept.found(bypass::check, &week[1..]), Level::Ok, says);
    kept.scene.store.as_mut().unwrap().pools = Ok(Vec::new());
    one(&kept.found(bypass::check, &[]), Level::Ok, "no rate to compare");
}

#[test]
fn a_directory_for_strangers_or_without_room_is_told() {
    let mut scene = scene(Vec::new());
    let mut with = |change: fn(&mut Survey), at: usize, says: &str| {
        let before = scene.survey.clone();
        change(scene.survey.as_mut().unwrap());
        one(&store::check(&scene)[at..=at], Level::Warning, says);
        scene.survey = before;
    };
    with(|survey| survey.mode = 0o755, 2, "other users can read");
    with(|survey| survey.mode = 0o600, 2, "no full access");
    with(|survey| survey.mode = 0o770, 2, "new files in it are not");
    with(|survey| survey.owner = survey.user + 1, 2, "belongs to user");
    with(|survey| survey.free = 5 << 20, 3, "only 5 MB free");
}

#[test]
fn the_file_system_is_named_with_what_follows() {
    let mut scene = scene(Vec::new());
    for (kind, level) in [("tmpfs", Level::Note), ("overlay", Level::Note), ("xfs", Level::Ok)] {
        scene.survey.as_mut().unwrap().file_system = Some(kind.to_owned());
        one(&file_system::check(&scene), level, kind);
    }
    scene.survey.as_mut().unwrap().network = Some("NFS".to_owned());
    one(&file_system::check(&scene), Level::Failure, "NFS");
    scene.survey = None;
    assert_eq!(file_system::check(&scene), []);
}

#[test]
fn a_wall_clock_that_was_set_is_told() {
    for (clock, level, says) in [
        (NOW.millis - 4_000, Level::Ok, "agrees"),
        (NOW.millis - 60_000, Level::Note, "set ahead by 1 min"),
        (NOW.millis + 7_200_000, Level::Warning, "set back by 2 h"),
    ] {
        let mut pool = pool("my/api");
        pool.1.as_mut().unwrap().clock = Timestamp { millis: clock };
        one(&clocks::check(&scene(vec![pool])), level, says);
    }
    let mut scene = scene(vec![pool("my/api")]);
    scene.week = vec![event(0, EventData::Resume { by: None })];
    scene.week[0].at.millis += 90_000;
    one(&clocks::check(&scene), Level::Warning, "from 1 min 30 s in the future");
}

#[test]
fn what_was_left_behind_is_told() {
    let mut pool = TestPool::new(vec![Limit::new(Rule::Parallel { amount: 3 })]);
    pool.admit("blog", Some(Span::secs(600)));
    let mut overview = overview(&pool);
    let found = |overview: &PoolOverview| {
        stale::check(&scene(vec![("my/api".parse().unwrap(), Ok(overview.clone()))]))
    };
    one(&found(&overview), Level::Ok, "no abandoned");
    (overview.status.leases[0].age_ms, overview.status.leases[0].expires_ms) =
        (580_000, Some(20_000));
    one(&found(&overview), Level::Note, "expires in 20 s");
    overview.status.leases[0].age_ms = 3_600_001;
    one(&found(&overview), Level::Warning, "without a process for 1 h");
    overview.status.leases.clear();
    overview.dead = 2;
    one(&found(&overview), Level::Note, "2 sessions or owners");
    (overview.dead, overview.unused_ms) = (0, Some(23 * DAY_MS));
    one(&found(&overview), Level::Note, "for 23 d");
}

#[test]
fn more_than_one_refusal_a_week_is_a_limit_set_too_high() {
    let mut kept = Kept::new();
    one(&kept.found(refusals::check, &[]), Level::Ok, "no 429s in 7 days");
    let mut week = vec![refused(DAY_MS, None, "quota"), refused(9_000, None, "overload")];
    one(&kept.found(refusals::check, &week), Level::Ok, "more than one 429");
    week.push(refused(5_000, Some("blog"), "slow_down"));
    let found = kept.found(refusals::check, &week);
    one(&found, Level::Warning, "`my/api`: 2 calls got a 429 in 7 days, the last 5 s ago");
    assert!(found[0].what.contains("margin auto, now 20 % of requests 100/min"), "{found:?}");
    assert!(found[0].remedy.as_ref().unwrap().contains("above \"20%\""), "{found:?}");
    let week = [refused(9_000, None, "concurrency"), refused(5_000, None, "concurrency")];
    let found = kept.found(refusals::check, &week);
    assert!(found[0].remedy.as_ref().unwrap().contains("`parallel`"), "{found:?}");
}

#[test]
fn an_agent_that_retries_by_itself_is_named() {
    let mut kept = Kept::new();
    let blog = |ago| refused(ago, Some("blog"), "quota");
    let mut week = vec![blog(60_000), blog(30_000), blog(19_999), blog(19_998)];
    one(&kept.found(retries::check, &week), Level::Ok, "no retries outside");
    week.insert(2, blog(29_000));
    let found = kept.found(retries::check, &week);
    one(&found, Level::Warning, "blog got 3 429s within 10 s");
    assert!(found[0].remedy.as_ref().unwrap().contains("max_retries=0"));
}

#[test]
fn a_client_of_the_proxy_that_retries_is_named_with_its_switch() {
    let mut kept = Kept::new();
    for (client, switch) in [
        ("Anthropic/Python", "max_retries=0"),
        ("OpenAI/JS", "maxRetries: 0"),
        ("claude-cli", "CLAUDE_CODE_MAX_RETRIES=0"),
        ("codex_cli_rs", "request_max_retries = 0"),
        ("litellm", "num_retries=0"),
        ("curl", "own retries"),
    ] {
        let retry = |guessed| EventData::ClientRetry {
            agent: "blog".to_owned(),
            client: client.to_owned(),
            guessed,
        };
        let found = kept.found(retries::check, &[event(9_000, retry(true))]);
        one(&found, Level::Note, "it may retry on its own");
        let retry = retry(false);
        let week = [event(9_000, retry.clone()), event(5_000, retry)];
        let found = kept.found(retries::check, &week);
        one(&found, Level::Warning, &format!("blog ({client}) retries on its own"));
        assert!(found[0].remedy.as_ref().unwrap().contains(switch), "{found:?}");
    }
}

#[test]
fn a_call_that_is_refused_during_a_pause_came_past_the_tap() {
    let mut kept = Kept::new();
    let data = |ago| refused(ago, Some("data"), "quota");
    // The second pause lengthens the first; what was under way then is not held against anybody.
    let (first, second) = (paused(60_000, 10_000), paused(59_000, 30_000));
    let mut week = vec![data(60_001), first, data(59_001), second.clone()];
    one(&kept.found(retries::check, &week), Level::Ok, "no retries outside");
    week.push(data(40_000));
    one(&kept.found(retries::check, &week), Level::Warning, "while `my/api` was paused");
    let resumed = [second, event(50_000, EventData::Resume { by: None }), data(40_000)];
    one(&kept.found(retries::check, &resumed), Level::Ok, "no retries outside");
}

#[test]
fn a_crowd_is_told() {
    let mut crowd = pool("my/api");
    crowd.1.as_mut().unwrap().processes = 65;
    one(&processes::check(&scene(vec![crowd])), Level::Warning, "65 busy processes");
}

#[test]
fn lines_that_were_lost_are_told() {
    let mut kept = Kept::new();
    one(&kept.found(journal::check, &[]), Level::Ok, "no lines lost");
    let lost = [event(9, EventData::Lost { lines: 2 }), event(1, EventData::Lost { lines: 3 })];
    one(&kept.found(journal::check, &lost), Level::Warning, "5 lines");
}

#[test]
fn a_journal_that_cannot_be_written_is_told_with_what_to_do() {
    let path = std::env::temp_dir().join(format!("standpipe-doctor-{}", std::process::id()));
    std::fs::create_dir_all(path.join("usage.jsonl")).unwrap();
    std::fs::write(path.join("journal.jsonl"), "").unwrap();
    let unwritable = crate::journal::Journal::at(&path).unwritable_files();
    let left: Vec<_> = std::fs::read_dir(&path).unwrap().collect();
    std::fs::remove_dir_all(&path).unwrap();
    assert_eq!(left.len(), 2, "nothing is left behind: {left:?}");
    let mut kept = Kept::new();
    kept.scene.store.as_mut().unwrap().unwritable = unwritable;
    let found = kept.found(journal::check, &[]);
    one(&found, Level::Warning, "usage.jsonl: is a directory; `audit` and `events` miss");
    assert!(found[0].remedy.as_ref().unwrap().starts_with("move the directory"), "{found:?}");
    let file = &mut kept.scene.store.as_mut().unwrap().unwritable[0];
    (file.is_directory, file.why) = (false, "permission denied".to_owned());
    for (owner, says) in [(1_000, "chmod u+rwX "), (0, "it belongs to user 0: sudo chown")] {
        kept.scene.store.as_mut().unwrap().unwritable[0].owner = Some(owner);
        let found = kept.found(journal::check, &[]);
        one(&found, Level::Warning, "permission denied");
        assert!(found[0].remedy.as_ref().unwrap().starts_with(says), "{found:?}");
    }
}

#[test]
fn what_cannot_be_seen_is_not_said_to_be_well() {
    let mut scene = scene(Vec::new());
    assert_eq!(refusals::check(&scene), [], "there is no journal");
    assert_eq!(retries::check(&scene), []);
    scene.store = Err("the disk is gone; bring it back".to_owned());
    let diagnosis = Diagnosis::of(&scene);
    let of = |check: &str| {
        let found = diagnosis.findings.iter().filter(|f| f.check == check);
        found.cloned().collect::<Vec<_>>()
    };
    let notes: Vec<Finding> =
        of("store").into_iter().filter(|finding| finding.level == Level::Note).collect();
    one(&notes, Level::Note, "not checked while the store is unreachable: ");
    for check in ["stale state", "processes", "pools", "clocks", "429s", "journal"] {
        assert!(notes[0].what.contains(check) && of(check).is_empty(), "{check}: {notes:?}");
    }
    assert_eq!((of("file system").len(), of("server").len()), (1, 0));
    assert_eq!(diagnosis.count(Level::Failure), 1);
    scene.assumed = true;
    one(&store::check(&scene)[1..2], Level::Note, "the default store");
}

#[test]
fn who_bypasses_the_tap_is_told_of_with_what_to_do() {
    let mut kept = Kept::new();
    let seen = |ago_ms: u64, units| {
        let limit = "requests per 1min".to_owned();
        let what = EventData::Outside { limit, units, total: units };
        Event { at: Timestamp { millis: NOW.millis - ago_ms }, pool: "my/api".to_owned(), what }
    };
    let found = kept.found(bypass::check, &[seen(7_200_000, 40), seen(3_600_000, 2)]);
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.level, one.pool.as_deref()), (Level::Warning, Some("my/api")));
    assert!(
        one.what.contains("42 of requests per 1min") && one.what.contains("2 times"),
        "{one:?}"
    );
    assert!(one.what.contains("last 1 h ago"), "{one:?}");
    assert!(one.remedy.as_deref().is_some_and(|remedy| remedy.contains("through Standpipe")));
}

#[test]
fn use_by_others_that_the_provider_counts_is_told_before_it_is_in_the_journal() {
    let mut kept = Kept::new();
    let limits = |kept: &mut Kept, by_others| {
        let pool = pools_of(&mut kept.scene)[0].1.as_mut().unwrap();
        pool.status.limits[0].by_others = by_others;
    };
    limits(&mut kept, 9);
    one(&kept.found(bypass::check, &[]), Level::Ok, "no call");
    limits(&mut kept, 93);
    let says = "`my/api`: the provider counts 93 of 100 requests per 1min that Standpipe did not";
    let (limit, units, total) = ("requests per 1min".to_owned(), 40, 40);
    let seen = [event(5_000, EventData::Outside { limit, units, total })];
    for week in [&[][..], &seen] {
        let found = kept.found(bypass::check, week);
        one(&found, Level::Warning, says);
        assert!(found[0].remedy.as_ref().unwrap().contains("gone after one period (1 min)"));
    }
    kept.scene.store.as_mut().unwrap().journal = None;
    one(&kept.found(bypass::check, &[]), Level::Warning, says);
}

mod unusable;
