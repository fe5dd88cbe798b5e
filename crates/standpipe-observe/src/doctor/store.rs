//! The store: whether it is reachable, keeps what is written, is private, and has room.

use super::{OpenStore, RoundTrip, Scene, Survey, from_error, losses, not_checked};
use crate::finding::{Finding, counted};

pub(super) const NAME: &str = "store";

/// Less room than this is a warning: the journal takes up to 64 MB, a pool 6 MB.
const LITTLE: u64 = 128 << 20;

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let mut found = reachable(scene);
    found.extend(assumed(scene));
    if let Ok(store) = &scene.store {
        found.push(round_trip(store));
        found.extend(messages(scene, store));
    }
    if let Some(survey) = &scene.survey {
        found.extend(permissions(survey));
        found.push(room(survey));
    }
    found
}

/// It can be opened, and each of its pools can be read.
fn reachable(scene: &Scene) -> Vec<Finding> {
    let opened = scene.store.as_ref().and_then(|store| Ok((store, store.pools.as_ref()?)));
    let (store, pools) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let failure = with_remedy(from_error(Finding::failure, NAME, error));
            return vec![own_mode(scene, failure)];
        }
    };
    let unreadable = pools.iter().filter_map(|(name, seen)| Some((name, seen.as_ref().err()?)));
    let unreadable: Vec<Finding> = unreadable
        .map(|(name, error)| {
            let text = format!("`{name}` cannot be read: {error}");
            let failure = with_remedy(from_error(Finding::failure, NAME, &text));
            own_mode(scene, failure).on(name.as_str())
        })
        .collect();
    if !unreadable.is_empty() {
        return unreadable;
    }
    let pools = counted(pools.len() as u64, "pool");
    let what = format!("{} is reachable, {pools}", store.place);
    vec![Finding::ok(NAME, what)]
}

/// Every failure has a remedy, also where the error of the store has none.
fn with_remedy(failure: Finding) -> Finding {
    if failure.remedy.is_some() {
        return failure;
    }
    failure.remedy("check that the store's server runs, and its log, then run doctor again")
}

/// A directory of the user's own that denies access needs its mode, not another directory.
fn own_mode(scene: &Scene, failure: Finding) -> Finding {
    let survey = scene.survey.as_ref().filter(|survey| survey.exists);
    let denies = |survey: &&Survey| survey.owner == survey.user && survey.mode & 0o700 != 0o700;
    match survey.filter(denies) {
        Some(survey) => failure.remedy(format!("chmod 700 {}", survey.path.display())),
        None => failure,
    }
}

/// The broken file might name another store.
fn assumed(scene: &Scene) -> Option<Finding> {
    scene.assumed.then(|| {
        let what = "this is the default store; the file may name another once it is valid";
        Finding::note(NAME, what).remedy("fix the file, then run doctor again")
    })
}

/// What is written is there for others to read.
fn round_trip(store: &OpenStore) -> Finding {
    if store.pools.is_err() {
        return not_checked(NAME);
    }
    match &store.round_trip {
        Ok(RoundTrip::Marker) => Finding::ok(NAME, "a test file was written and read back"),
        Ok(RoundTrip::NoPool) => Finding::ok(NAME, "there is no pool yet to write to"),
        Ok(RoundTrip::Event(pool)) => {
            Finding::ok(NAME, format!("an event of `{pool}` was written and read back"))
        }
        Err(error) => from_error(Finding::failure, NAME, &format!("writing failed: {error}")),
    }
}

/// What happened to the store while it was looked at. After a loss the sentence ends with what
/// follows, which is no remedy.
fn messages(scene: &Scene, store: &OpenStore) -> Vec<Finding> {
    let finding = |text: &String| match losses::is_loss(text) {
        true => Finding::warning(NAME, text).remedy(losses::keep(scene)),
        false => from_error(Finding::warning, NAME, text),
    };
    store.messages.iter().map(finding).collect()
}

/// Every user that can write to the directory can use its quota.
fn permissions(survey: &Survey) -> Option<Finding> {
    let Survey { path, mode, owner, user, .. } = survey;
    let shown = path.display();
    let shared = mode & 0o020 != 0;
    // A directory that every user can write to cannot be opened, and that failure has the remedy.
    if !survey.exists || mode & 0o002 != 0 {
        return None;
    }
    let chmod = if shared { "chmod 2770" } else { "chmod 700" };
    let (what, remedy) = if mode & 0o007 != 0 {
        let what = format!("other users can read {shown} (mode {mode:o})");
        (what, format!("{chmod} {shown}"))
    } else if owner == user && mode & 0o700 != 0o700 {
        let what = format!("you have no full access to {shown} (mode {mode:o})");
        (what, format!("{chmod} {shown}"))
    } else if shared && mode & 0o2000 == 0 {
        let what = format!(
            "{shown} is shared with its group, but new files in it are not (mode {mode:o})"
        );
        (what, format!("chmod 2770 {shown}"))
    } else if !shared && owner != user {
        let what = format!("{shown} belongs to user {owner}, and you are user {user}");
        let remedy = "run as that user, who cannot open files that you create there, or share \
                      it with a group (mode 2770)";
        (what, remedy.to_owned())
    } else {
        let whose = if shared { "shared with its group" } else { "private" };
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
    Finding::warning(NAME, what).remedy("free some space, or set STANDPIPE_HOME to another disk")
}

fn bytes(count: u64) -> String {
    match count >> 20 {
        megabytes @ 0..10_240 => format!("{megabytes} MB"),
        megabytes => format!("{} GB", megabytes >> 10),
    }
}
