//! What can only be seen when the whole file is read: names that refer to each other, floors that
//! add up, and whether the core would take each pool.

use standpipe_core::{AgentName, Limit, LimitId, LimitSelector, Portion, Share, Unit, bounds};
use standpipe_store::PoolName;

use super::Settings;
use super::agent::Shares;
use super::nearest::nearest;
use super::plain;
use super::reader::{Reader, join};

/// Everything of that kind that is wrong.
pub(super) fn check(reader: &mut Reader<'_>, settings: &Settings) {
    references(reader, settings);
    neither(reader, settings);
    fallbacks(reader, settings);
    units(reader, settings);
    if settings.agents.len() <= bounds::AGENT_RULES {
        floors(reader, settings);
        floors_above_caps(reader, settings);
    } else {
        let line = reader.lines.get("agent").copied().unwrap_or(1);
        let what = format!("{} agents are described", settings.agents.len());
        let remedy = format!("at most {} are kept; others need no table", bounds::AGENT_RULES);
        reader.wrong(line, what, remedy);
    }
    if reader.is_clean() {
        as_the_core_sees_it(reader, settings);
    }
}

/// A pool with neither limits nor a provider to learn them from.
fn neither(reader: &mut Reader<'_>, settings: &Settings) {
    for (name, pool) in &settings.pools {
        let path = pool_path(name);
        // A limit that could not be read is a problem of its own.
        let states = |key: &str| reader.lines.contains_key(&join(&path, key));
        let mut keys = super::text::KNOWN_UNITS.into_iter().chain(["parallel", "units"]);
        let line = line_of(reader, &path);
        let states_none = pool.limits.is_empty() && !keys.any(states);
        if states_none && !states("provider") && !reader.is_told(line) {
            let what = format!("[{path}] has no limit, and no provider to learn one from");
            reader.wrong(line, what, "add for example requests = \"60/min\" or parallel = 5");
        }
    }
}

/// Pools that are named but not described.
fn references(reader: &mut Reader<'_>, settings: &Settings) {
    if settings.open_pools {
        return;
    }
    for (pool, line) in std::mem::take(&mut reader.references) {
        if !settings.pools.contains_key(&pool) {
            let (what, remedy) = unknown_pool(settings, &pool);
            reader.wrong(line, what, remedy);
        }
    }
}

/// What to say about a pool that the settings do not describe.
pub(super) fn unknown_pool(settings: &Settings, pool: &PoolName) -> (String, String) {
    let known = settings.pools.keys().map(PoolName::as_str);
    let remedy = match nearest(pool.as_str(), known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("add [{}], or write open_pools = true", pool_path(pool)),
    };
    (format!("there is no pool `{pool}`"), remedy)
}

fn fallbacks(reader: &mut Reader<'_>, settings: &Settings) {
    for (name, pool) in &settings.pools {
        if pool.fallback.contains(name) {
            let line = line_of(reader, &join(&pool_path(name), "fallback"));
            let what = format!("`fallback`: `{name}` falls back on itself");
            reader.wrong(line, what, "leave it out of its own list");
        }
    }
}

/// Units of floors and caps that no pool in question counts.
fn units(reader: &mut Reader<'_>, settings: &Settings) {
    for (agent, rule) in &settings.agents {
        for (key, shares) in [("floor", &rule.floor), ("cap", &rule.cap)] {
            let path = join(&join("agent", agent.as_str()), key);
            let known = |unit: &Unit| settings.pools.values().any(|pool| pool.knows(unit));
            note_units(reader, &path, &shares.everywhere, known);
            for (pool, shares) in &shares.by_pool {
                let described = settings.pools.get(pool);
                let known = |unit: &Unit| described.is_none_or(|pool| pool.knows(unit));
                note_units(reader, &join(&path, pool.as_str()), shares, known);
            }
        }
    }
}

fn note_units(
    reader: &mut Reader<'_>,
    path: &str,
    shares: &[Share],
    known: impl Fn(&Unit) -> bool,
) {
    for share in shares {
        let LimitSelector::Unit(unit @ Unit::Other(_)) = &share.of else { continue };
        if known(unit) {
            continue;
        }
        let line = line_of(reader, &join(path, unit.name()));
        let remedy = match nearest(unit.name(), super::text::KNOWN_UNITS.into_iter()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "declare it in the `units` table of a pool".to_owned(),
        };
        reader.wrong(line, format!("no pool counts the unit `{unit}`"), remedy);
    }
}

/// Floors that add up to more than there is, told at the floor that is one too many.
fn floors(reader: &mut Reader<'_>, settings: &Settings) {
    let line = |agent: &AgentName| line_of(reader, &join(&join("agent", agent.as_str()), "floor"));
    let stated = settings.agents.iter().filter(|(_, rule)| rule.floor != Shares::default());
    let mut stated: Vec<_> = stated.map(|(agent, rule)| (line(agent), agent, rule)).collect();
    stated.sort_by_key(|(line, ..)| *line);
    let mut told: Vec<usize> = Vec::new();
    for (name, pool) in &settings.pools {
        for limit in &pool.limits {
            let mut all = 0_u64;
            let over = stated.iter().find(|(_, _, rule)| {
                all = all.saturating_add(kept(rule.floor.on(name), limit));
                all > limit.stated()
            });
            if let Some((line, agent, _)) = over.filter(|(line, ..)| !told.contains(line)) {
                told.push(*line);
                reader.wrong(*line, too_much(name, limit, agent), TOO_MUCH);
            }
        }
    }
}

/// An agent that keeps more than it may use: the floor would be withheld from others for nothing.
fn floors_above_caps(reader: &mut Reader<'_>, settings: &Settings) {
    for (agent, rule) in &settings.agents {
        let everywhere = [&rule.floor, &rule.cap].map(|shares| percentage(&shares.everywhere));
        let mut above = match everywhere {
            [Some(floor), Some(cap)] if floor > cap => Some(format!("the floor of `{agent}`")),
            _ => None,
        };
        for (name, pool) in &settings.pools {
            let (floor, cap) = (rule.floor.on(name), rule.cap.on(name));
            let over = pool.limits.iter().find(|limit| is_above(floor, cap, limit));
            let on = |limit: &Limit| {
                format!(
                    "the floor of `{agent}` on `{name}` ({})",
                    of_what(limit, kept(floor, limit))
                )
            };
            above = above.or_else(|| over.map(on));
        }
        if let Some(floor) = above {
            let line = line_of(reader, &join(&join("agent", agent.as_str()), "floor"));
            reader.wrong(line, format!("{floor} is above its cap"), ABOVE_CAP);
        }
    }
}

const ABOVE_CAP: &str = "lower the floor to what the cap allows, or raise the cap";

/// The share of every limit, where that is what the file says.
fn percentage(shares: &[Share]) -> Option<u16> {
    shares.iter().find_map(|share| match (&share.of, share.portion) {
        (LimitSelector::All, Portion::PerMille(share)) => Some(share),
        _ => None,
    })
}

fn is_above(floor: &[Share], cap: &[Share], limit: &Limit) -> bool {
    let most = cap.iter().filter_map(|cap| {
        let units = cap.of_limit(limit)?;
        // A cap of a share allows at least one unit; one of a rate has a period of its own.
        Some(if matches!(cap.portion, Portion::Rate { .. }) { units } else { units.max(1) })
    });
    most.min().is_some_and(|most| kept(floor, limit) > most)
}

/// What is kept of a limit for one agent.
fn kept(floor: &[Share], limit: &Limit) -> u64 {
    let own = floor.iter().filter_map(|share| share.of_limit(limit));
    own.fold(0, u64::saturating_add)
}

const TOO_MUCH: &str = "lower floors until they fit; a cap, not a floor, is what limits an agent";

fn too_much(pool: &PoolName, limit: &Limit, agent: &AgentName) -> String {
    let of = of_what(limit, limit.stated());
    format!("with `{agent}` the floors on `{pool}` add up to more than its {of}")
}

/// So much of a limit: `requests of 25/min`.
fn of_what(limit: &Limit, amount: u64) -> String {
    match limit.id() {
        LimitId::Parallel | LimitId::Unanswered => format!("{amount} calls in flight"),
        LimitId::Window(unit, period) | LimitId::Bucket(unit, period) => {
            format!("{unit} of {}", plain::rate(&unit, amount, period))
        }
    }
}

/// Whatever the checks above do not know of.
fn as_the_core_sees_it(reader: &mut Reader<'_>, settings: &Settings) {
    for name in settings.pools.keys() {
        let Some(Err(invalid)) = settings.pool_config(name).map(|config| config.check()) else {
            continue;
        };
        let path = pool_path(name);
        let line = line_of(reader, &path);
        let remedy = "state fewer limits, or fewer floors and caps that concern this pool";
        reader.wrong(line, format!("[{path}] cannot be used: {invalid}"), remedy);
    }
}

fn pool_path(pool: &PoolName) -> String {
    join("pool", pool.as_str())
}

fn line_of(reader: &Reader<'_>, path: &str) -> usize {
    reader.lines.get(path).copied().unwrap_or(1)
}
