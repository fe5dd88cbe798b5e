//! The store: whether it answers, keeps what is written, is nobody else's, and has room.

use standpipe_core::Action;
use standpipe_store::{PoolName, Replica};
use standpipe_store_file::{FileStore, Survey};

use super::{Scene, told};
use crate::error::Error;
use crate::finding::{Finding, counted};
use crate::shared::glance::Glance;
use crate::tap::Standpipe;

const NAME: &str = "store";

/// Less room than this is worth a word: the journal takes up to 64 MB, a pool 6 MB.
const LITTLE: u64 = 128 << 20;

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let mut found = reachable(scene);
    found.extend(assumed(scene));
    if let Ok(tap) = &scene.tap {
        found.push(round_trip(scene, tap));
        found.extend(news(tap));
    }
    if let Some(survey) = &scene.survey {
        found.extend(permissions(survey));
        found.push(room(survey));
    }
    found
}

/// It can be opened, and each of its pools can be read.
fn reachable(scene: &Scene) -> Vec<Finding> {
    let failed = |error: &Error| vec![told(Finding::failure, NAME, &error.to_string())];
    let (tap, pools) = match (&scene.tap, &scene.pools) {
        (Ok(tap), Ok(pools)) => (tap, pools),
        (Err(error), _) | (_, Err(error)) => return failed(error),
    };
    let unreadable = pools.iter().filter_map(|(name, seen)| Some((name, seen.as_ref().err()?)));
    let unreadable: Vec<Finding> = unreadable
        .map(|(name, error)| {
            let text = format!("`{name}` cannot be read: {error}");
            told(Finding::failure, NAME, &text).on(name.as_str())
        })
        .collect();
    if !unreadable.is_empty() {
        return unreadable;
    }
    let pools = counted(pools.len() as u64, "pool");
    let what = format!("{} answers, {pools}", tap.store_place());
    vec![Finding::ok(NAME, what)]
}

/// The file would have said which store is meant.
fn assumed(scene: &Scene) -> Option<Finding> {
    scene.assumed.then(|| {
        let what = "this is the default one; the file, once it can be read, may name another";
        Finding::note(NAME, what).remedy("mend the file, then look again")
    })
}

/// What is written is there for others to read.
fn round_trip(scene: &Scene, tap: &Standpipe) -> Finding {
    // The one that is used anyway: a word to it changes nothing for anybody.
    let idle = |pool: &Glance| pool.unused_ms.unwrap_or(u64::MAX);
    let liveliest = scene.readable().min_by_key(|(_, pool)| idle(pool)).map(|(name, _)| name);
    match try_round_trip(liveliest, tap) {
        Ok(what) => Finding::ok(NAME, what),
        Err(error) => told(Finding::failure, NAME, &format!("nothing can be written: {error}")),
    }
}

fn try_round_trip(pool: Option<&PoolName>, tap: &Standpipe) -> Result<String, Error> {
    let guard = tap.guard()?;
    let shared = guard.shared();
    let file = shared.engine().file();
    file.map_or(Ok(()), FileStore::check_writable)?;
    let Some(pool) = pool else {
        return Ok(match file {
            Some(_) => "a mark was written and read again".to_owned(),
            None => "there is no pool yet to write to".to_owned(),
        });
    };
    let desk = shared.desk(pool)?;
    shared.settle(&desk, vec![Action::Heartbeat { lease: None, ttl: None }])?;
    let written = desk.counter().member.replica().position();
    let mut reader = Replica::new();
    reader.catch_up(&mut shared.store().log(pool)?, |_, _, _| ())?;
    if reader.position().number >= written.number {
        return Ok(format!("a word to `{pool}` was written and read again"));
    }
    Err(Error::invalid(
        format!("a word to `{pool}` was written and is not there"),
        "look at the disk",
    ))
}

/// What happened to the store while it was looked at.
fn news(tap: &Standpipe) -> Vec<Finding> {
    let news = tap.news().unwrap_or_default();
    news.iter().map(|text| told(Finding::warning, NAME, text)).collect()
}

/// Whoever can write to the directory can take quota. One that is not there is nobody's.
fn permissions(survey: &Survey) -> Option<Finding> {
    let Survey { path, mode, owner, user, .. } = survey;
    let shown = path.display();
    let shared = mode & 0o020 != 0;
    if !survey.exists {
        return None;
    }
    let (what, remedy) = if mode & 0o007 != 0 {
        let what = format!("strangers may look into {shown} (mode {mode:o})");
        (what, "chmod 700 it, or 2770 for a group")
    } else if shared && mode & 0o2000 == 0 {
        let what = format!("{shown} is its group's, but what is made in it is not (mode {mode:o})");
        (what, "chmod 2770 it")
    } else if !shared && owner != user {
        let what = format!("{shown} belongs to user {owner}, and you are {user}");
        let remedy = "work as that user, who cannot open what you make there; or share it by group \
                      (mode 2770)";
        (what, remedy)
    } else {
        let whose = if shared { "its group's" } else { "yours alone" };
        return Some(Finding::ok(NAME, format!("the directory is {whose} (mode {mode:o})")));
    };
    Some(Finding::warning(NAME, what).remedy(remedy))
}

/// A pool that exists has its room; a new one and the journal need some.
fn room(survey: &Survey) -> Finding {
    let free = bytes(survey.free);
    if survey.free >= LITTLE {
        return Finding::ok(NAME, format!("{free} free on its disk"));
    }
    let what = format!("only {free} free on its disk; a new pool takes 6 MB, the journal up to 64");
    Finding::warning(NAME, what).remedy("make room, or point STANDPIPE_HOME to another disk")
}

fn bytes(count: u64) -> String {
    match count >> 20 {
        megabytes @ 0..10_240 => format!("{megabytes} MB"),
        megabytes => format!("{} GB", megabytes >> 10),
    }
}
