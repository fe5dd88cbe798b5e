//! The configuration: whether it is valid, and whether the ledger uses it.

use std::collections::BTreeMap;

use standpipe_config::text::quoted;
use standpipe_config::{ConfigError, Settings};
use standpipe_core::AgentName;
use standpipe_store::PoolName;

use super::{Scene, from_error, length};
use crate::finding::{Finding, counted};
use crate::journal::EventData;
use crate::status::{ConfigSource, LimitStatus, PoolOverview};

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
        found.extend(no_pools(settings));
        found.extend(from_the_future(scene, settings));
        for (name, pool) in scene.readable() {
            found.extend(undescribed(settings, name, pool));
            found.extend(other_file(scene, settings, name, pool));
        }
        found.extend(flags(scene, settings));
    }
    found
}

fn fine(settings: &Settings) -> Finding {
    let what = match &settings.origin {
        Some(file) => {
            let pools = counted(settings.pools.len() as u64, "pool");
            format!("{}: valid, {pools}", file.display())
        }
        None => "no file; limits come from code, flags and providers".to_owned(),
    };
    Finding::ok(NAME, what)
}

/// A file that describes no pool, with which calls on most pools are refused.
fn no_pools(settings: &Settings) -> Option<Finding> {
    let (what, remedy) = settings.without_pools()?;
    Some(Finding::warning(NAME, what).remedy(remedy))
}

/// Lists the problems of a file that cannot be used, each with its line.
fn broken(error: &ConfigError) -> Vec<Finding> {
    let each = error.problems.iter();
    each.map(|problem| from_error(Finding::failure, NAME, &problem.to_string())).collect()
}

/// An invalid `$STANDPIPE_AGENT`, with which every call without an agent fails.
fn agent(said: Option<&str>) -> Option<Finding> {
    let said = said.filter(|said| !said.is_empty() && AgentName::new(said).is_none())?;
    let what = format!("$STANDPIPE_AGENT: {} cannot be the name of an agent", quoted(said));
    Some(Finding::failure(NAME, what).remedy("use 1 to 64 of A-Z a-z 0-9 . _ @ -"))
}

/// A file from the future overrides every file that is saved before then.
fn from_the_future(scene: &Scene, settings: &Settings) -> Option<Finding> {
    const SLACK_MS: u64 = 5_000;
    let file = settings.origin.as_ref().filter(|_| settings.version.is_none())?;
    if settings.written <= scene.now.millis.saturating_add(SLACK_MS) {
        return None;
    }
    let what = format!(
        "{} was written in the future; until then it overrides files saved later",
        file.display()
    );
    Some(Finding::warning(NAME, what).remedy("correct the clock and save the file again"))
}

/// A pool that the file does not describe, or no longer.
fn undescribed(settings: &Settings, name: &PoolName, pool: &PoolOverview) -> Option<Finding> {
    if settings.pools.contains_key(name) {
        return None;
    }
    if settings.unknown_pool(name).is_none() {
        let what = format!("`{name}` has its limits from code or flags, not from the file");
        let remedy = "move them to the file, so that all processes have the same";
        let is_stated = |limit: &LimitStatus| limit.learned != Some(limit.amount);
        let from_code = pool.status.origin.source == ConfigSource::Code
            && pool.status.limits.iter().any(is_stated);
        return from_code.then(|| Finding::note(NAME, what).remedy(remedy).on(name.as_str()));
    }
    let what = format!("`{name}` is in the store but not in the file, so no call may use it");
    let remedy = format!("add it to the file, or delete it: standpipe store reset {name} --yes");
    let in_use = !pool.status.leases.is_empty() || !pool.status.tickets.is_empty();
    let finding = if in_use { Finding::warning(NAME, what) } else { Finding::note(NAME, what) };
    Some(finding.remedy(remedy).on(name.as_str()))
}

/// The ledger goes by another file than this one, which describes the pool differently.
fn other_file(
    scene: &Scene,
    settings: &Settings,
    name: &PoolName,
    pool: &PoolOverview,
) -> Option<Finding> {
    let file = settings.origin.as_ref().filter(|_| settings.pools.contains_key(name))?;
    let origin = &pool.status.origin;
    let written = origin.written.filter(|_| origin.source == ConfigSource::File)?;
    let is_older = (origin.version, written.millis) <= (settings.version, settings.written);
    // The same file on several machines has several times.
    if is_older || settings.pool_config(name) == pool.config {
        return None;
    }
    let version = origin.version.map(|version| format!(" of version {version}"));
    let version = version.unwrap_or_default();
    let (file, ago) = (file.display(), length(scene.now.millis.saturating_sub(written.millis)));
    let what = format!(
        "`{name}` is configured by another file{version}, written {ago} ago, not by {file}"
    );
    let remedy = match origin.version {
        Some(version) => format!("to use this one, give it a `version` above {version}"),
        None => "to use this one, save it again or give it a `version`".to_owned(),
    };
    Some(Finding::warning(NAME, what).remedy(remedy).on(name.as_str()))
}

/// Code or flags that state limits for a pool of the file.
fn flags(scene: &Scene, settings: &Settings) -> Vec<Finding> {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for event in &scene.week {
        if let EventData::Config { result, source } = &event.what
            && (result.as_str(), source.as_str()) == ("kept", "code")
        {
            *times.entry(event.pool.as_str()).or_default() += 1;
        }
    }
    let described = |pool: &&str| settings.pools.keys().any(|name| name.as_str() == *pool);
    let each = times.into_iter().filter(|(pool, _)| described(pool));
    let finding = |(pool, times): (&str, u64)| {
        let times = counted(times, "time");
        let what =
            format!("code or flags stated limits for `{pool}` {times} in 7 days; the file wins");
        Finding::note(NAME, what).remedy("remove --limit, or change the file").on(pool)
    };
    each.map(finding).collect()
}
