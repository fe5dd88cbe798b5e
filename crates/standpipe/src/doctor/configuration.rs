//! The configuration: whether it can be read, and whether the ledger goes by it.

use std::collections::BTreeMap;

use standpipe_store::PoolName;

use super::{Scene, told};
use crate::config::{ConfigError, Settings};
use crate::finding::{Finding, counted};
use crate::journal::What;
use crate::request::agent_name;
use crate::shared::glance::Glance;

pub(super) const NAME: &str = "configuration";

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let mut found = match &scene.settings {
        Err(error) => broken(error),
        Ok(settings) => vec![fine(settings)],
    };
    found.extend(agent(scene.agent.as_deref()));
    if let Ok(settings) = &scene.settings
        && settings.origin.is_some()
    {
        found.extend(from_the_future(scene, settings));
        for (name, pool) in scene.readable() {
            found.extend(undescribed(settings, name, pool));
            found.extend(other_file(settings, name, pool));
        }
        found.extend(flags(scene, settings));
    }
    found
}

fn fine(settings: &Settings) -> Finding {
    let what = match &settings.origin {
        Some(file) => {
            let pools = counted(settings.pools.len() as u64, "pool");
            format!("{}: fine, {pools}", file.display())
        }
        None => {
            "no file, and none is needed: limits come from code, flags and providers".to_owned()
        }
    };
    Finding::ok(NAME, what)
}

/// The file cannot be used: each problem is told, at its line.
fn broken(error: &ConfigError) -> Vec<Finding> {
    let each = error.problems.iter();
    each.map(|problem| told(Finding::failure, NAME, &problem.to_string())).collect()
}

/// Everybody who does not say who it is would fail.
fn agent(said: Option<&str>) -> Option<Finding> {
    let wrong = agent_name(said.filter(|said| !said.is_empty())?).err()?;
    Some(told(Finding::failure, NAME, &format!("$STANDPIPE_AGENT: {wrong}")))
}

/// Of two files the later counts.
fn from_the_future(scene: &Scene, settings: &Settings) -> Option<Finding> {
    const SLACK_MS: u64 = 5_000;
    let file = settings.origin.as_ref().filter(|_| settings.version.is_none())?;
    if settings.written <= scene.now.millis.saturating_add(SLACK_MS) {
        return None;
    }
    let what = format!(
        "{} was written in the future; until then it beats files saved later",
        file.display()
    );
    Some(Finding::warning(NAME, what).remedy("set the clock right and save the file again"))
}

/// A pool that the file does not describe, or no longer.
fn undescribed(settings: &Settings, name: &PoolName, pool: &Glance) -> Option<Finding> {
    if settings.pools.contains_key(name) {
        return None;
    }
    if settings.open_pools {
        let what = format!("`{name}` has its limits from code or flags, beside the file");
        let remedy = "write them to the file, so that everybody has the same";
        let from_code = pool.status.origin.source == "code" && !pool.status.limits.is_empty();
        return from_code.then(|| Finding::note(NAME, what).remedy(remedy).on(name.as_str()));
    }
    let what = format!("`{name}` is in the ledger, but not in the file: nobody may draw on it");
    let remedy = format!("describe it there, or forget it: standpipe store reset {name} --yes");
    let in_use = !pool.status.leases.is_empty() || !pool.status.tickets.is_empty();
    let finding = if in_use { Finding::warning(NAME, what) } else { Finding::note(NAME, what) };
    Some(finding.remedy(remedy).on(name.as_str()))
}

/// The ledger goes by another file than this one.
fn other_file(settings: &Settings, name: &PoolName, pool: &Glance) -> Option<Finding> {
    let file = settings.origin.as_ref().filter(|_| settings.pools.contains_key(name))?;
    let origin = &pool.status.origin;
    let written = origin.written.filter(|_| origin.source == "file")?;
    if (origin.version, written.millis) <= (settings.version, settings.written) {
        return None;
    }
    let version = origin.version.map(|version| format!(" of version {version}"));
    let version = version.unwrap_or_default();
    let file = file.display();
    let what = format!("`{name}` goes by another file{version}, written {written}, not by {file}");
    let remedy = match origin.version {
        Some(version) => format!("to have this one count, give it a `version` above {version}"),
        None => "to have this one count, save it again or give it a `version`".to_owned(),
    };
    Some(Finding::warning(NAME, what).remedy(remedy).on(name.as_str()))
}

/// Somebody brings limits of its own for a pool that the file describes.
fn flags(scene: &Scene, settings: &Settings) -> Vec<Finding> {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for event in &scene.week {
        if let What::Config { result, source } = &event.what
            && (result.as_str(), source.as_str()) == ("kept", "code")
        {
            *times.entry(event.pool.as_str()).or_default() += 1;
        }
    }
    let described = |pool: &&str| settings.pools.keys().any(|name| name.as_str() == *pool);
    let each = times.into_iter().filter(|(pool, _)| described(pool));
    let tell = |(pool, times): (&str, u64)| {
        let times = counted(times, "time");
        let what = format!(
            "`{pool}` was given limits by code or flags {times} in 7 days; the file's count"
        );
        Finding::note(NAME, what).remedy("leave --limit out, or change the file").on(pool)
    };
    each.map(tell).collect()
}
