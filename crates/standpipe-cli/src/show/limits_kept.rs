//! The notes for a caller whose limits are ignored, or now apply to all: which limits apply, and
//! how to change them.

use std::path::Path;

use standpipe::config::plain;
use standpipe::observe::Origin;
use standpipe::policy::Resets;
use standpipe::{Limit, PoolConfig, PoolName, Rule, Unit};

use crate::show::local_time::day_and_clock;

/// The limits of the command line are ignored. `described` is whether the file that is read here
/// has the pool. Returns nothing when the same ones apply.
pub(crate) fn over_flags(
    pool: &PoolName,
    described: bool,
    origin: &Origin,
    in_force: &[Limit],
    given: &[Limit],
) -> Option<String> {
    let ignored: Vec<&Limit> = given.iter().filter(|limit| !in_force.contains(limit)).collect();
    if ignored.is_empty() {
        return None;
    }
    let same = |limit: &&Limit| ignored.iter().any(|ignored| unit(ignored) == unit(limit));
    let counts = list(in_force.iter().filter(same));
    let why = match origin.source.as_str() {
        "file" if described => {
            "; a file comes before flags: change it there, or leave --limit out".to_owned()
        }
        "file" => format!(
            "; no file that is read here describes it: `standpipe store reset {pool} --yes` \
             deletes those limits and the recorded use"
        ),
        _ if origin.changes > 0 => "; change the pool again, or leave --limit out".to_owned(),
        _ => format!("; code and flags can only tighten a limit: {}", to_loosen(pool)),
    };
    let (ignored, from) = (list(ignored.into_iter()), from(origin));
    Some(format!("`{pool}` keeps the limits it has: {counts}{from}, not --limit {ignored}{why}"))
}

/// The limits of the command line changed a pool that others use. `before` are those it had, if
/// they are known. Returns nothing when none of the limits is new.
pub(crate) fn changed_by_flags(
    pool: &PoolName,
    before: Option<&[Limit]>,
    in_force: &[Limit],
    given: &[Limit],
) -> Option<String> {
    let had = |limit: &Limit| before.is_some_and(|before| before.contains(limit));
    let is_new = |limit: &&Limit| !had(limit) && in_force.contains(limit);
    let new: Vec<&Limit> = given.iter().filter(is_new).collect();
    if new.is_empty() {
        return None;
    }
    // A limit of another unit, kind or period applies beside those that the pool has.
    let replaces = |limit: &&Limit| {
        before.is_none_or(|before| before.iter().any(|other| other.id() == limit.id()))
    };
    let (replaced, more): (Vec<&Limit>, Vec<&Limit>) = new.into_iter().partition(replaces);
    // A looser limit is ignored, although others of the same call apply.
    let ignored: Vec<&Limit> = given.iter().filter(|limit| !in_force.contains(limit)).collect();
    let same = |limit: &&Limit| ignored.iter().any(|ignored| unit(ignored) == unit(limit));
    let kept = (!ignored.is_empty()).then(|| {
        let (stays, ignored) = (list(in_force.iter().filter(same)), list(ignored.iter().copied()));
        format!("; {stays} stays, because --limit {ignored} is looser")
    });
    let mut parts = Vec::new();
    if !replaced.is_empty() {
        let is_old = |limit: &&Limit| replaced.iter().any(|new| new.id() == limit.id());
        let before = before.map(|before| list(before.iter().filter(is_old)));
        let before = before.map(|before| format!(" (before: {before})")).unwrap_or_default();
        let new = list(replaced.iter().copied());
        parts.push(format!("--limit {new} now applies to every caller of `{pool}`{before}"));
    }
    if let [one] = more.as_slice() {
        let also = list(in_force.iter().filter(|other| other.id() != one.id()));
        let one = text(one);
        parts.push(format!("`{pool}` has one more limit for every caller: {one} (also: {also})"));
    } else if !more.is_empty() {
        let is_more = |limit: &&Limit| more.iter().any(|new| new.id() == limit.id());
        let also = list(in_force.iter().filter(|other| !is_more(other)));
        let (count, more) = (more.len(), list(more.iter().copied()));
        parts.push(format!(
            "`{pool}` has {count} more limits for every caller: {more} (also: {also})"
        ));
    }
    let kept = kept.unwrap_or_default();
    Some(format!("{}{kept}; {}", parts.join("; "), to_loosen(pool)))
}

fn to_loosen(pool: &PoolName) -> String {
    format!(
        "to loosen it, write it to a file (`standpipe config init`), or start over (`standpipe \
         store reset {pool} --yes`)"
    )
}

/// The configuration file is ignored, and `stated` is what it says of the pool. Returns nothing if
/// that is in force: the same file on several machines has several times.
pub(crate) fn over_file(
    pool: &PoolName,
    origin: &Origin,
    in_force: Option<&PoolConfig>,
    stated: Option<&PoolConfig>,
    file: &Path,
) -> Option<String> {
    if in_force == stated {
        return None;
    }
    fn limits(config: Option<&PoolConfig>) -> &[Limit] {
        config.map_or(&[], |config| &config.limits)
    }
    let (from, file) = (from(origin), file.display());
    let kept = match limits(in_force) == limits(stated) {
        true => "keeps its other settings".to_owned(),
        false => format!("keeps the limits it has: {}", list(limits(in_force).iter())),
    };
    let remedy = match (origin.version, origin.changes) {
        (Some(version), _) => format!("give it a `version` above {version}"),
        (None, 0) => "save it again, or give it a `version`".to_owned(),
        (None, _) => "save it again".to_owned(),
    };
    Some(format!("`{pool}` {kept}{from}, not what {file} says; to have that count, {remedy}"))
}

/// Where the limits come from, and since when, as far as it is recorded.
fn from(origin: &Origin) -> String {
    let version = origin.version.map(|version| format!(" of version {version}"));
    let written = origin.written.map(|written| format!(" written {}", day_and_clock(written)));
    let file = || format!("a file{}{}", version.unwrap_or_default(), written.unwrap_or_default());
    match (origin.source.as_str(), origin.changes) {
        ("file", 0) => format!(" from {}", file()),
        ("file", _) => format!(" from {}, changed since", file()),
        (_, 0) => " from earlier code or flags".to_owned(),
        (_, _) => " from a change at run time".to_owned(),
    }
}

fn list<'a>(limits: impl Iterator<Item = &'a Limit>) -> String {
    let each: Vec<String> = limits.map(text).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

/// Returns a note if a call used more of a unit than a limit of its pool ever allows: it may be a
/// typing error, after which calls wait for long.
pub(crate) fn excess(used: &[(Unit, u64)], limits: &[Limit], pool: &str) -> Option<String> {
    let stated = |limit: &&Limit| match &limit.rule {
        Rule::Window { unit, amount, .. } => exceeds(used, unit, *amount),
        Rule::Bucket { unit, amount, burst, .. } => exceeds(used, unit, *amount.max(burst)),
        Rule::Parallel { .. } => false,
    };
    let limit = limits.iter().find(stated)?;
    Some(format!(
        "the call used more than {} allows, so calls wait until that has recovered; if the figure \
         is a mistake, `standpipe store reset {pool} --yes` deletes the recorded use",
        text(limit)
    ))
}

fn exceeds(used: &[(Unit, u64)], unit: &Unit, amount: u64) -> bool {
    used.iter().any(|(own, figure)| own == unit && *figure > amount)
}

/// Formats a limit with its options as `--limit` takes it.
fn text(limit: &Limit) -> String {
    let mut text = match &limit.rule {
        Rule::Window { unit, amount, period } => {
            format!("{unit}={}", plain::rate(unit, *amount, *period))
        }
        Rule::Bucket { unit, amount, period, burst } => {
            let (rate, burst) = (plain::rate(unit, *amount, *period), plain::amount(unit, *burst));
            format!("{unit}={rate},burst={burst}")
        }
        Rule::Parallel { amount } => format!("parallel={amount}"),
    };
    if let Some(pace) = limit.pace {
        text += &format!(",pace={}", plain::span(pace));
    }
    match &limit.resets {
        Resets::Rolling => {}
        Resets::Provider => text += ",resets=provider",
        Resets::Calendar(zone) => text += &format!(",resets={}", zone.as_str()),
    }
    text
}

const fn unit(limit: &Limit) -> Option<&Unit> {
    match &limit.rule {
        Rule::Window { unit, .. } | Rule::Bucket { unit, .. } => Some(unit),
        Rule::Parallel { .. } => None,
    }
}
