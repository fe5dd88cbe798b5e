//! Each check on a scene that is made up.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use standpipe_store_file::Survey;

use super::*;
use crate::config::Problem;
use crate::journal::{Event, What};
use crate::shared::glance::Glance;
use crate::{Error, Limit, PoolName, Request, Rule, Settings, Span, Standpipe, StoreUrl, Unit};

const NOW: Moment = Moment { millis: 1_700_000_000_000 };

/// A pool of 100 requests a minute, which nobody has used.
fn pool(name: &str) -> (PoolName, Result<Glance, Error>) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let tap = tap();
    let pool = tap.pool(&format!("doctor/pool{number}")).unwrap();
    let rule = Rule::Window { unit: Unit::Requests, amount: 100, period: Span::secs(60) };
    pool.limit(vec![Limit::new(rule)]).unwrap();
    let mut glance = tap.guard().unwrap().shared().glance(pool.name()).unwrap();
    glance.clock = NOW;
    (name.parse().unwrap(), Ok(glance))
}

/// A scene on a real store, with a journal, gone at the end.
struct Kept {
    home: PathBuf,
    scene: Option<Scene>,
}

impl Kept {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-doctor-{}-{number}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let builder = Standpipe::builder().settings(Settings::default()).home(&home);
        let tap = builder.open();
        Self { home, scene: Some(Scene { tap, ..scene(vec![pool("my/api")]) }) }
    }

    /// What a group finds in a week of these.
    fn found(&mut self, group: Group, week: &[Event]) -> Vec<Finding> {
        let scene = self.scene.as_mut().unwrap();
        scene.week = week.to_vec();
        group(scene)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.scene = None;
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

fn tap() -> Standpipe {
    let builder = Standpipe::builder().settings(Settings::default()).store(StoreUrl::Memory);
    builder.open().unwrap()
}

/// A machine where all is well, and these pools.
fn scene(pools: scene::Pools) -> Scene {
    let mut survey = Survey::of(&std::env::temp_dir()).unwrap();
    (survey.exists, survey.mode, survey.network, survey.free) = (true, 0o700, None, u64::MAX);
    (survey.owner, survey.file_system) = (survey.user, Some("ext4".to_owned()));
    Scene {
        now: NOW,
        settings: Ok(Settings::default()),
        assumed: false,
        agent: None,
        survey: Some(survey),
        tap: Ok(tap()),
        pools: Ok(pools),
        week: Vec::new(),
    }
}

fn settings(text: &str) -> Settings {
    Settings::parse(text, Some("standpipe.toml".as_ref()), 1_000).unwrap()
}

fn event(ago_ms: u64, what: What) -> Event {
    Event { at: Moment { millis: NOW.millis - ago_ms }, pool: "my/api".to_owned(), what }
}

fn refused(ago_ms: u64, agent: Option<&str>, about: &str) -> Event {
    let (agent, about) = (agent.map(ToOwned::to_owned), about.to_owned());
    event(ago_ms, What::Throttle { agent, lease: None, about, retry_after_ms: None, said: None })
}

fn paused(ago_ms: u64, for_ms: u64) -> Event {
    let until = Moment { millis: NOW.millis - ago_ms + for_ms };
    event(ago_ms, What::Pause { until, for_ms })
}

/// Each finding says what to do, unless all is well or nothing can be done.
#[track_caller]
fn one(found: &[Finding], level: Level, says: &str) {
    let [finding] = found else { panic!("one of {found:#?}") };
    assert_eq!(finding.level, level, "{finding:?}");
    assert!(finding.what.contains(says), "{finding:?}");
    assert!(level == Level::Ok || finding.remedy.is_some(), "{finding:?}");
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
    one(&configuration::check(&scene)[1..], Level::Note, "`my/old` is in the ledger");
    let open = "open_pools = true\n[pool.\"my/api\"]\nrequests = \"60/min\"\n";
    scene.settings = Ok(settings(open));
    one(&configuration::check(&scene)[1..], Level::Note, "`my/old` has its limits from code");
}

#[test]
fn a_ledger_that_goes_by_another_file_is_told() {
    let mut scene = scene(vec![pool("my/api")]);
    let mut own = settings("[pool.\"my/api\"]\nrequests = \"60/min\"\n");
    scene.settings = Ok(own.clone());
    if let Ok(pools) = &mut scene.pools
        && let Ok(glance) = &mut pools[0].1
    {
        let origin = &mut glance.status.origin;
        (origin.source, origin.written) = ("file", Some(Moment { millis: 2_000 }));
    }
    one(&configuration::check(&scene)[1..], Level::Warning, "goes by another file");
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
        event(1, What::Config { result, source })
    };
    scene.week = vec![config("applied", "code"), config("kept", "file"), config("kept", "code")];
    one(&configuration::check(&scene)[1..], Level::Note, "flags 1 time in 7 days");
}

#[test]
fn a_store_that_cannot_be_opened_is_a_failure() {
    let mut scene = scene(Vec::new());
    scene.tap = Err(Error::invalid("the disk is gone", "bring it back"));
    let found = store::check(&scene);
    one(&found[..1], Level::Failure, "the disk is gone");
    assert_eq!(found[0].remedy.as_deref(), Some("bring it back"));
    assert_eq!(found.len(), 3, "the directory is looked at all the same: {found:?}");
    assert!(Diagnosis::of(&scene).store_is_unusable());
}

#[test]
fn a_pool_that_cannot_be_read_is_a_failure_of_its_own() {
    let broken = ("my/odd".parse().unwrap(), Err(Error::invalid("it is odd", "mend it")));
    let found = store::check(&scene(vec![pool("my/api"), broken]));
    one(&found[..1], Level::Failure, "`my/odd` cannot be read: it is odd");
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
    with(|survey| survey.mode = 0o755, 2, "strangers");
    with(|survey| survey.mode = 0o770, 2, "what is made in it is not");
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
    scene.survey.as_mut().unwrap().network = Some("NFS");
    one(&file_system::check(&scene), Level::Failure, "NFS");
    scene.survey = None;
    assert_eq!(file_system::check(&scene), []);
}

#[test]
fn a_wall_clock_that_was_set_is_told() {
    for (clock, level, says) in [
        (NOW.millis - 4_000, Level::Ok, "agrees"),
        (NOW.millis - 60_000, Level::Note, "set ahead by 1min"),
        (NOW.millis + 7_200_000, Level::Warning, "set back by 2h"),
    ] {
        let mut pool = pool("my/api");
        pool.1.as_mut().unwrap().clock = Moment { millis: clock };
        one(&clocks::check(&scene(vec![pool])), level, says);
    }
    let mut scene = scene(vec![pool("my/api")]);
    scene.week = vec![event(0, What::Resume)];
    scene.week[0].at.millis += 90_000;
    one(&clocks::check(&scene), Level::Warning, "from 1min 30s ahead");
}

#[test]
fn what_was_left_behind_is_told() {
    let tap = tap();
    let pool = tap.pool("doctor/leases").unwrap();
    pool.limit(vec![Limit::new(Rule::Parallel { amount: 3 })]).unwrap();
    let ttl = std::time::Duration::from_secs(600);
    let lease = pool.reserve(Request::by("blog").ttl(ttl)).blocking().unwrap();
    let mut glance = tap.guard().unwrap().shared().glance(pool.name()).unwrap();
    let found = |glance: &Glance| {
        stale::check(&scene(vec![("my/api".parse().unwrap(), Ok(glance.clone()))]))
    };
    one(&found(&glance), Level::Ok, "nothing");
    (glance.status.leases[0].age_ms, glance.status.leases[0].expires_ms) = (580_000, Some(20_000));
    one(&found(&glance), Level::Note, "ends by itself in 20s");
    glance.status.leases[0].age_ms = 3_600_001;
    one(&found(&glance), Level::Warning, "without a process for 1h");
    glance.status.leases.clear();
    glance.dead = 2;
    one(&found(&glance), Level::Note, "2 dead");
    (glance.dead, glance.unused_ms) = (0, Some(23 * DAY_MS));
    one(&found(&glance), Level::Note, "for 23d");
    drop(lease);
}

#[test]
fn more_than_one_refusal_a_week_is_a_limit_set_too_high() {
    let mut kept = Kept::new();
    one(&kept.found(refusals::check, &[]), Level::Ok, "no call was refused");
    let mut week = vec![refused(DAY_MS, None, "quota"), refused(9_000, None, "overload")];
    one(&kept.found(refusals::check, &week), Level::Ok, "more than once");
    week.push(refused(5_000, Some("blog"), "slow_down"));
    let found = kept.found(refusals::check, &week);
    one(&found, Level::Warning, "`my/api`: 2 calls were refused in 7 days, the last 5s ago");
    assert!(found[0].what.contains("margin auto, now 20 % of requests 100/min"), "{found:?}");
    assert!(found[0].remedy.as_ref().unwrap().contains("above \"20%\""), "{found:?}");
}

#[test]
fn an_agent_that_retries_by_itself_is_named() {
    let mut kept = Kept::new();
    let blog = |ago| refused(ago, Some("blog"), "quota");
    let mut week = vec![blog(60_000), blog(30_000), blog(19_999), blog(19_998)];
    one(&kept.found(retries::check, &week), Level::Ok, "nobody");
    week.insert(2, blog(29_000));
    let found = kept.found(retries::check, &week);
    one(&found, Level::Warning, "blog was refused 3 times within 10s");
    assert!(found[0].remedy.as_ref().unwrap().contains("max_retries=0"));
}

#[test]
fn a_call_that_is_refused_during_a_pause_came_past_the_tap() {
    let mut kept = Kept::new();
    let data = |ago| refused(ago, Some("data"), "quota");
    // The second pause lengthens the first; what was under way then is not held against anybody.
    let (first, second) = (paused(60_000, 10_000), paused(59_000, 30_000));
    let mut week = vec![data(60_001), first, data(59_001), second.clone()];
    one(&kept.found(retries::check, &week), Level::Ok, "nobody");
    week.push(data(40_000));
    one(&kept.found(retries::check, &week), Level::Warning, "while `my/api` was paused");
    let resumed = [second, event(50_000, What::Resume), data(40_000)];
    one(&kept.found(retries::check, &resumed), Level::Ok, "nobody");
}

#[test]
fn a_crowd_is_told() {
    let mut crowd = pool("my/api");
    crowd.1.as_mut().unwrap().processes = 65;
    one(&crowd::check(&scene(vec![crowd])), Level::Warning, "65 busy processes");
}

#[test]
fn lines_that_were_lost_are_told() {
    let mut kept = Kept::new();
    one(&kept.found(journal::check, &[]), Level::Ok, "nothing lost");
    let lost = [event(9, What::Lost { lines: 2 }), event(1, What::Lost { lines: 3 })];
    one(&kept.found(journal::check, &lost), Level::Warning, "5 lines");
}

#[test]
fn what_cannot_be_seen_is_not_said_to_be_well() {
    let mut scene = scene(Vec::new());
    assert_eq!(refusals::check(&scene), [], "there is no journal");
    assert_eq!(retries::check(&scene), []);
    scene.tap = Err(Error::invalid("the disk is gone", "bring it back"));
    let groups: Vec<_> = Diagnosis::of(&scene).findings.iter().map(|f| f.check).collect();
    assert!(!groups.contains(&"stale state") && groups.contains(&"file system"), "{groups:?}");
    scene.assumed = true;
    one(&store::check(&scene)[1..2], Level::Note, "the default one");
}

#[test]
fn who_bypasses_the_tap_is_told_of_with_what_to_do() {
    let mut kept = Kept::new();
    let found = kept.found(outside::check, &[]);
    assert_eq!((found.len(), found[0].level), (1, Level::Ok));
    let seen = |ago_ms: u64, units| {
        let limit = "requests per 1min".to_owned();
        let what = What::Outside { limit, units, total: units };
        Event { at: Moment { millis: NOW.millis - ago_ms }, pool: "my/api".to_owned(), what }
    };
    let found = kept.found(outside::check, &[seen(7_200_000, 40), seen(3_600_000, 2)]);
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.level, one.pool.as_deref()), (Level::Warning, Some("my/api")));
    assert!(
        one.what.contains("42 of requests per 1min") && one.what.contains("2 times"),
        "{one:?}"
    );
    assert!(one.what.contains("last 1h ago"), "{one:?}");
    assert!(one.remedy.as_deref().is_some_and(|remedy| remedy.contains("through the tap")));
}
