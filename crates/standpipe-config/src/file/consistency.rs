//! Checks that need the whole file: references, sums of floors, floors above caps, and whether the
//! core accepts each pool.

use standpipe_core::{AgentName, Limit, LimitId, LimitSelector, Portion, Share, Unit, bounds};
use standpipe_dialect::Dialect;
use standpipe_store::PoolName;

use super::reader::Reader;
use crate::format;
use crate::nearest::nearest;
use crate::parse::KNOWN_UNITS;
use crate::path::join;
use crate::settings::{MAX_ANCESTORS, Settings, Shares};

/// Reports all inconsistencies.
pub(super) fn check(reader: &mut Reader<'_>, settings: &Settings) {
    references(reader, settings);
    empty_pools(reader, settings);
    providers(reader, settings);
    fallbacks(reader, settings);
    parents(reader, settings);
    units(reader, settings);
    costs(reader, settings);
    if settings.agents.len() <= bounds::AGENT_RULES {
        floors(reader, settings);
        floors_above_caps(reader, settings);
        empty_floors(reader, settings);
    } else {
        let line = reader.lines.get("agent").copied().unwrap_or(1);
        let what = format!("{} agents are described", settings.agents.len());
        let remedy = format!("at most {} are supported; others need no table", bounds::AGENT_RULES);
        reader.problem(line, what, remedy);
    }
    if reader.has_no_problems() {
        check_by_core(reader, settings);
    }
}

/// Reports pools with neither limits nor a provider to learn them from.
fn empty_pools(reader: &mut Reader<'_>, settings: &Settings) {
    for (name, pool) in &settings.pools {
        let path = pool_path(name);
        // A limit that could not be read has a problem of its own.
        let states = |key: &str| reader.lines.contains_key(&join(&path, key));
        let mut keys = KNOWN_UNITS.into_iter().chain(["parallel", "units"]);
        let line = line_of(reader, &path);
        let states_none = pool.limits.is_empty() && !keys.any(states);
        // A misspelled limit has a problem of its own, and is the only mistake.
        let below = format!("{path}.");
        let within = reader.lines.iter().filter(|(key, _)| key.starts_with(&below));
        let has_problem =
            within.map(|(_, line)| *line).chain([line]).any(|line| reader.has_problem_on(line));
        if states_none && !states("provider") && !has_problem {
            let what = format!("[{path}] has no limit, and no provider to learn one from");
            reader.problem(line, what, "add for example requests = \"60/min\" or parallel = 5");
        }
    }
}

/// Reports a pool's provider that is neither built in nor described: the proxy would never lead a
/// call to the pool, and nothing would be learned from answers.
fn providers(reader: &mut Reader<'_>, settings: &Settings) {
    for (name, pool) in &settings.pools {
        let Some(provider) = pool.provider.as_deref() else { continue };
        if Dialect::named(provider).is_some() || settings.providers.contains_key(provider) {
            continue;
        }
        let described = settings.providers.keys().map(String::as_str);
        let known = described.chain(Dialect::ALL.into_iter().map(|built_in| built_in.name()));
        let remedy = match nearest(provider, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => {
                format!("add [{}] with its upstream, or leave it out", join("provider", provider))
            }
        };
        let line = line_of(reader, &join(&pool_path(name), "provider"));
        reader.problem(line, format!("`provider`: there is no provider `{provider}`"), remedy);
    }
}

/// Reports pools that are referenced but not described.
fn references(reader: &mut Reader<'_>, settings: &Settings) {
    if settings.open_pools == Some(true) {
        return;
    }
    for (pool, line) in std::mem::take(&mut reader.references) {
        if !settings.pools.contains_key(&pool) {
            let (what, remedy) = settings.missing_pool(&pool);
            reader.problem(line, what, remedy);
        }
    }
}

/// Reports pools that are their own fallback.
fn fallbacks(reader: &mut Reader<'_>, settings: &Settings) {
    for (name, pool) in &settings.pools {
        if pool.fallback.contains(name) {
            let line = line_of(reader, &join(&pool_path(name), "fallback"));
            let what = format!("`fallback`: `{name}` falls back on itself");
            reader.problem(line, what, "leave it out of its own list");
        }
    }
}

/// Reports pools that lie within themselves, or within too many others.
fn parents(reader: &mut Reader<'_>, settings: &Settings) {
    for (name, pool) in &settings.pools {
        let Some(parent) = &pool.within else { continue };
        let chain = settings.ancestors(name);
        let (what, remedy) = if parent == name {
            let what = format!("`within`: `{name}` lies within itself");
            (what, "name another pool, or leave `within` out".to_owned())
        } else if chain.contains(name) {
            let circle = chain.iter().take_while(|above| *above != name);
            let circle: Vec<String> = circle.map(|above| format!("`{above}`")).collect();
            let what = format!("`within`: `{name}` lies within itself by {}", circle.join(", "));
            (what, "the pools refer to each other in a circle: remove one `within`".to_owned())
        } else if chain.len() == MAX_ANCESTORS
            && settings.pools.get(&chain[MAX_ANCESTORS - 1]).is_some_and(|top| top.within.is_some())
        {
            let what = format!("`within`: `{name}` lies within more than {MAX_ANCESTORS} pools");
            (what, "remove a pool in between".to_owned())
        } else {
            continue;
        };
        let line = line_of(reader, &join(&pool_path(name), "within"));
        reader.problem(line, what, remedy);
    }
}

/// Reports units of floors and caps that no pool counts.
fn units(reader: &mut Reader<'_>, settings: &Settings) {
    for (agent, rule) in &settings.agents {
        for (key, shares) in [("floor", &rule.floor), ("cap", &rule.cap)] {
            let path = join(&join("agent", agent.as_str()), key);
            let known = |unit: &Unit| settings.pools.values().any(|pool| pool.knows(unit));
            report_units(reader, &path, &shares.everywhere, known);
            for (pool, shares) in &shares.by_pool {
                let described = settings.pools.get(pool);
                let known = |unit: &Unit| described.is_none_or(|pool| pool.knows(unit));
                report_units(reader, &join(&path, pool.as_str()), shares, known);
            }
        }
    }
}

/// Reports units in the cost of calls that their pool does not count.
fn costs(reader: &mut Reader<'_>, settings: &Settings) {
    for (name, provider) in &settings.providers {
        let path = join(&join(&join("provider", name), "calls"), "cost");
        for calls in &provider.calls {
            let described = calls.pool.as_ref().and_then(|pool| settings.pools.get(pool));
            let known = |unit: &Unit| match described {
                Some(pool) => pool.knows(unit),
                None => settings.pools.values().any(|pool| pool.knows(unit)),
            };
            for unit in calls.cost.keys().filter(|unit| matches!(unit, Unit::Other(_))) {
                report_unit(reader, &path, unit, known);
            }
        }
    }
}

fn report_units(
    reader: &mut Reader<'_>,
    path: &str,
    shares: &[Share],
    known: impl Fn(&Unit) -> bool,
) {
    for share in shares {
        if let LimitSelector::Unit(unit @ Unit::Other(_)) = &share.of {
            report_unit(reader, path, unit, &known);
        }
    }
}

fn report_unit(reader: &mut Reader<'_>, path: &str, unit: &Unit, known: impl Fn(&Unit) -> bool) {
    if known(unit) {
        return;
    }
    let line = line_of(reader, &join(path, unit.name()));
    let remedy = match nearest(unit.name(), KNOWN_UNITS.into_iter()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "declare it in the `units` table of a pool".to_owned(),
    };
    reader.problem(line, format!("no pool counts the unit `{unit}`"), remedy);
}

/// Reports floors that add up to more than a limit, at the floor that exceeds it.
fn floors(reader: &mut Reader<'_>, settings: &Settings) {
    let line = |agent: &AgentName| line_of(reader, &join(&join("agent", agent.as_str()), "floor"));
    let stated = settings.agents.iter().filter(|(_, rule)| rule.floor != Shares::default());
    let mut stated: Vec<_> = stated.map(|(agent, rule)| (line(agent), agent, rule)).collect();
    stated.sort_by_key(|(line, ..)| *line);
    let mut reported: Vec<usize> = Vec::new();
    for (name, pool) in &settings.pools {
        for limit in &pool.limits {
            let mut all = 0_u64;
            let over = stated.iter().find(|(_, _, rule)| {
                all = all.saturating_add(kept(rule.floor.on(name), limit));
                all > limit.stated()
            });
            if let Some((line, agent, _)) = over.filter(|(line, ..)| !reported.contains(line)) {
                reported.push(*line);
                reader.problem(*line, too_much(name, limit, agent), TOO_MUCH);
            }
        }
    }
}

/// Reports floors above the cap of the same agent, which would be withheld from others in vain.
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
            reader.problem(line, format!("{floor} is above its cap"), ABOVE_CAP);
        }
    }
}

/// Reports floors that are a rate of less than one unit in the period of every limit that they
/// concern: a floor is kept in whole units of each limit.
fn empty_floors(reader: &mut Reader<'_>, settings: &Settings) {
    for (agent, rule) in &settings.agents {
        let path = join(&join("agent", agent.as_str()), "floor");
        let all: Vec<&Limit> = settings.pools.values().flat_map(|pool| &pool.limits).collect();
        for share in &rule.floor.everywhere {
            report_empty_floor(reader, &path, agent, share, &all);
        }
        for (name, shares) in &rule.floor.by_pool {
            let limits = settings.pools.get(name).map_or(&[][..], |pool| &pool.limits);
            let limits: Vec<&Limit> = limits.iter().collect();
            for share in shares {
                report_empty_floor(reader, &join(&path, name.as_str()), agent, share, &limits);
            }
        }
    }
}

fn report_empty_floor(
    reader: &mut Reader<'_>,
    path: &str,
    agent: &AgentName,
    share: &Share,
    limits: &[&Limit],
) {
    let (LimitSelector::Unit(unit), Portion::Rate { amount, period }) = (&share.of, share.portion)
    else {
        return;
    };
    let concerned = limits.iter().filter_map(|limit| Some((limit, share.of_limit(limit)?)));
    let concerned: Vec<_> = concerned.collect();
    let longest = concerned.iter().filter_map(|(limit, _)| limit.id().period()).max();
    let Some(longest) = longest.filter(|_| concerned.iter().all(|(_, kept)| *kept == 0)) else {
        return;
    };
    let line = line_of(reader, &join(path, unit.name()));
    let (rate, least) = (format::rate(unit, amount, period), format::rate(unit, 1, longest));
    let what = format!("the floor of `{agent}` keeps nothing: {rate} is less than {least}");
    let remedy = format!(
        "limits of {unit} are per {}: write at least {unit} = \"{least}\", or add a limit with a \
         longer period",
        format::span(longest)
    );
    reader.problem(line, what, remedy);
}

const ABOVE_CAP: &str = "lower the floor to what the cap allows, or raise the cap";

/// Returns the share of all limits, if that is what the file states.
fn percentage(shares: &[Share]) -> Option<u16> {
    shares.iter().find_map(|share| match (&share.of, share.portion) {
        (LimitSelector::All, Portion::PerMille(share)) => Some(share),
        _ => None,
    })
}

fn is_above(floor: &[Share], cap: &[Share], limit: &Limit) -> bool {
    let most = cap.iter().filter_map(|cap| {
        let units = cap.of_limit(limit)?;
        // A cap that is a share allows at least one unit. A cap that is a rate has its own period.
        Some(if matches!(cap.portion, Portion::Rate { .. }) { units } else { units.max(1) })
    });
    most.min().is_some_and(|most| kept(floor, limit) > most)
}

/// Returns the amount of a limit that is kept for one agent.
fn kept(floor: &[Share], limit: &Limit) -> u64 {
    let own = floor.iter().filter_map(|share| share.of_limit(limit));
    own.fold(0, u64::saturating_add)
}

const TOO_MUCH: &str = "lower floors until they fit; to limit an agent, use a cap";

fn too_much(pool: &PoolName, limit: &Limit, agent: &AgentName) -> String {
    let of = of_what(limit, limit.stated());
    format!("with `{agent}` the floors on `{pool}` add up to more than its {of}")
}

/// Formats an amount of a limit: `requests of 25/min`.
fn of_what(limit: &Limit, amount: u64) -> String {
    match limit.id() {
        LimitId::Parallel | LimitId::Unanswered => format!("{amount} calls in flight"),
        LimitId::Window(unit, period) | LimitId::Bucket(unit, period) => {
            format!("{unit} of {}", format::rate(&unit, amount, period))
        }
    }
}

/// Reports pools that the core rejects for any other reason.
fn check_by_core(reader: &mut Reader<'_>, settings: &Settings) {
    for name in settings.pools.keys() {
        let Some(Err(invalid)) = settings.pool_config(name).map(|config| config.check()) else {
            continue;
        };
        let path = pool_path(name);
        let line = line_of(reader, &path);
        let remedy = "state fewer limits, or fewer floors and caps that concern this pool";
        reader.problem(line, format!("[{path}] cannot be used: {invalid}"), remedy);
    }
}

fn pool_path(pool: &PoolName) -> String {
    join("pool", pool.as_str())
}

fn line_of(reader: &Reader<'_>, path: &str) -> usize {
    reader.lines.get(path).copied().unwrap_or(1)
}
