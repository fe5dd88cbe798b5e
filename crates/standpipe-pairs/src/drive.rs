//! One pair: start, fault A, fault B, their ends, the end of all calls, the verdict.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use standpipe_sim::Random;

use crate::fault::redis::Servers;
use crate::fault::{self, Fault, Place};
use crate::record::{self, Line};
use crate::referee::{self, Call};
use crate::scene::{How, Scene};

/// A pair to run.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The first fault.
    pub a: Fault,
    /// The second.
    pub b: Fault,
    /// Where.
    pub place: Place,
    /// Where chance begins.
    pub seed: u64,
    /// What a pool does while its store is unavailable.
    pub on_failure: &'static str,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Guarantees that were broken.
    pub broken: Vec<String>,
    /// A fault could not be made to happen.
    pub trouble: Option<String>,
    /// How many calls were granted.
    pub granted: usize,
    /// How many asks there were.
    pub asked: usize,
    /// How many calls the provider saw.
    pub seen: usize,
    /// How many of them it counted over a limit, for whatever reason.
    pub over: usize,
    /// Waits that were longer than they may be. Only runs by hand report them.
    pub late: Vec<String>,
}

impl Verdict {
    /// What the referee finds in the records and in the provider's log.
    fn of(scene: &Scene) -> Self {
        // In this order: a call that the provider has seen has its grant in a record by then.
        let seen = scene.seen();
        let records = records(scene);
        let calls: Vec<Call> =
            records.iter().flat_map(|(name, lines)| referee::calls(name, lines)).collect();
        let (eras, permitted) = (&scene.eras, &scene.permitted);
        let mut broken = referee::judge(&calls, eras, permitted);
        broken.extend(referee::cap::judge(&calls, eras, permitted));
        broken.extend(referee::provider::judge(&seen, &calls, eras, permitted));
        let reported = records.iter().flat_map(|(name, lines)| {
            let own = lines.iter().filter(|line| line.kind == "broken");
            own.map(move |line| format!("{name}: {}", line.rest))
        });
        broken.extend(reported);
        Self {
            broken,
            trouble: None,
            granted: calls.iter().filter(|call| call.granted).count(),
            asked: calls.len(),
            seen: seen.len(),
            late: referee::late(&calls, permitted),
            over: seen.iter().filter(|call| call.over).count(),
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = match self.place {
            Place::File => "file".to_owned(),
            Place::Daemon => "daemon".to_owned(),
            Place::Redis => format!("redis --on-failure {}", self.on_failure),
        };
        write!(
            f,
            "cargo run -p standpipe-pairs --release -- --store {store} --seed {} --only {}+{}",
            self.seed, self.a.name, self.b.name
        )
    }
}

/// All pairs of a place, in order; each fault also beside itself.
#[must_use]
pub fn pairs(place: Place, on_failure: &'static str, seed: u64) -> Vec<Pair> {
    let faults = fault::all(place);
    let every = faults.iter().flat_map(|a| faults.iter().map(move |b| (a.clone(), b.clone())));
    every.map(|(a, b)| Pair { a, b, place, seed, on_failure }).collect()
}

/// So many of them, drawn by a seed; each has a seed of its own.
#[must_use]
pub fn draw(place: Place, on_failure: &'static str, seed: u64, count: usize) -> Vec<Pair> {
    let mut random = Random::new(seed);
    let mut left = pairs(place, on_failure, seed);
    let mut drawn = Vec::new();
    while drawn.len() < count {
        if left.is_empty() {
            left = pairs(place, on_failure, seed);
        }
        let at = usize::try_from(random.below(left.len() as u64)).unwrap_or_default();
        drawn.push(Pair { seed: random.draw() >> 32, ..left.swap_remove(at) });
    }
    drawn
}

/// Runs a pair.
#[must_use]
pub fn run(pair: &Pair, program: &Path) -> Verdict {
    let mut verdict = Verdict::default();
    if let Err(trouble) = attempt(pair, program, &mut verdict) {
        verdict.trouble = Some(trouble);
    }
    verdict
}

fn attempt(pair: &Pair, program: &Path, verdict: &mut Verdict) -> Result<(), String> {
    let servers = match pair.place {
        Place::File | Place::Daemon => None,
        Place::Redis => Some(Servers::start(pair.on_failure)),
    };
    let mut scene = Scene::new(program, pair.seed, servers)?;
    pair.a.prepare(&mut scene)?;
    pair.b.prepare(&mut scene)?;
    match pair.place {
        Place::Daemon => fault::daemon::begin(&mut scene)?,
        Place::File | Place::Redis => {
            (0..3).try_for_each(|_| scene.start(&How::default()).map(drop))?;
        }
    }
    pause(&mut scene, 150, 300);
    // One fault can make the other impossible: there is no room for a copy on a full disk.
    let injected = pair.a.inject(&mut scene);
    pause(&mut scene, 0, 250);
    verdict.trouble = injected.and(pair.b.inject(&mut scene)).err();
    pause(&mut scene, 100, 400);
    let a_first = scene.random.below(2) == 0;
    let (first, second) = if a_first { (&pair.a, &pair.b) } else { (&pair.b, &pair.a) };
    let changed = first.end(&mut scene);
    pause(&mut scene, 0, 100);
    let changed = second.end(&mut scene).and(changed);
    // Processes that stopped themselves only now.
    scene.workers.iter().for_each(|worker| worker.signal(rustix::process::Signal::CONT));
    let changed = scene.configured().and(changed);
    if let Err(unusable) = changed {
        verdict.broken.push(format!("after the faults: {unusable}"));
    }
    pause(&mut scene, 200, 400);
    // Processes that stopped themselves only now.
    scene.workers.iter().for_each(|worker| worker.signal(rustix::process::Signal::CONT));
    let stuck = scene.stop();
    verdict.broken.extend(stuck.iter().map(|name| format!("{name} did not end within 60 s")));
    if let Err(unusable) = scene.probe() {
        verdict.broken.push(unusable);
    }
    if let Some(Err(stuck)) = scene.daemon.take().map(fault::daemon::Place::end) {
        verdict.broken.push(stuck);
    }
    let found = Verdict::of(&scene);
    let (broken, trouble) = (std::mem::take(&mut verdict.broken), verdict.trouble.take());
    *verdict = Verdict { broken: [broken, found.broken].concat(), trouble, ..found };
    Ok(())
}

/// Runs processes without faults, each started with these words, for a second or until the referee
/// finds something with this text; at most half a minute.
///
/// # Errors
/// When a process cannot be started.
pub fn without_faults(
    program: &Path,
    seed: u64,
    words: &[&str],
    until: Option<&str>,
) -> Result<Verdict, String> {
    let mut scene = Scene::new(program, seed, None)?;
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    for _ in 0..3 {
        scene.start(&How { words: words.clone(), ..How::default() })?;
    }
    for _ in 0..30 {
        pause(&mut scene, 1_000, 1);
        let found = |text: &str| Verdict::of(&scene).broken.iter().any(|it| it.contains(text));
        if until.is_none_or(found) {
            break;
        }
    }
    let stuck = scene.stop();
    let mut verdict = Verdict::of(&scene);
    verdict.broken.extend(stuck.iter().map(|name| format!("{name} did not end within 60 s")));
    Ok(verdict)
}

fn pause(scene: &mut Scene, least: u64, more: u64) {
    std::thread::sleep(Duration::from_millis(least + scene.random.below(more)));
}

/// The records of all processes, with their names.
fn records(scene: &Scene) -> Vec<(String, Vec<Line>)> {
    let entries = std::fs::read_dir(scene.base.join("logs")).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_none());
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, record::read(&path))
    };
    paths.map(read).collect()
}
