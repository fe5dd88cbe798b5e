//! What can go wrong in virtual time. The names are those of the real faults.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use standpipe_core::{
    Action, AgentName, AgentRule, Configure, Limit, LimitSelector, Margin, Order, Policy,
    PoolConfig, Portion, Resets, Share, Source, Span, Text, Unit,
};

use super::{Bug, World};
use crate::fault::file::{Act, Change, changed};
use crate::referee::Era;
use crate::setup::{
    CAP, CHILD, DAY_PERIOD, LONG, PACED, PARENT, Pool, Rule, Setup, pool_of, weight,
};

/// A fault of the file store.
pub type Fault = Act;

/// Those that can happen in virtual time, with their names.
#[must_use]
pub fn all() -> Vec<(String, Fault)> {
    let virtually = |act: Act| {
        matches!(
            act,
            Act::Kill
                | Act::Stop
                | Act::Reboot
                | Act::OtherBootId
                | Act::FlipBit
                | Act::ZeroPage
                | Act::Truncate
                | Act::OldPage
                | Act::Delete
                | Act::Restore
                | Act::Replace
                | Act::DeleteSessions
                | Act::WallClock(_)
                | Act::Change(_)
        )
    };
    let faults = crate::fault::all(crate::fault::Place::File).into_iter();
    let named = faults.filter_map(|fault| match fault.act {
        crate::fault::Act::File(act) if virtually(act) => Some((fault.name, act)),
        _ => None,
    });
    named.collect()
}

const PAGE: u64 = 4_096;
const DAY: u64 = 86_400_000_000;

pub(super) fn inject(fault: Fault, world: &mut World) -> Result<(), String> {
    match fault {
        Act::Kill => {
            let at = world.random.below(world.processes.len() as u64) as usize;
            world.kill(at);
            world.start(world.boot_id)
        }
        Act::Stop => {
            let at = world.random.below(world.processes.len() as u64) as usize;
            world.processes[at].stopped = true;
            world.permitted.hindered = true;
            Ok(())
        }
        Act::Reboot => {
            while !world.processes.is_empty() {
                world.kill(0);
            }
            let off = world.random.below(300_000);
            world.wall.fetch_add(off, Ordering::Relaxed);
            world.now += off;
            world.boot.store(5_000_000, Ordering::Relaxed);
            world.boot_id += 1;
            world.believe_the_wall_clock();
            (0..3).try_for_each(|_| world.start(world.boot_id))
        }
        Act::OtherBootId => {
            world.believe_the_wall_clock();
            world.start(world.boot_id + 1_000)
        }
        Act::FlipBit | Act::ZeroPage | Act::Truncate => damage(fault, world),
        Act::OldPage | Act::Restore => keep(world),
        Act::Delete => at_a_file(world, |path, _| fs::remove_file(path)),
        Act::Replace => at_a_file(world, |path, _| fs::write(path, "not a ledger")),
        Act::DeleteSessions => {
            // What the dead held may not have been taken from them yet.
            world.permitted.unseen.extend(world.dead.iter().cloned());
            let entries = fs::read_dir(world.base.join("sessions")).into_iter().flatten();
            entries.flatten().for_each(|entry| drop(fs::remove_file(entry.path())));
            Ok(())
        }
        Act::WallClock(days) => {
            match days {
                1.. => world.wall.fetch_add(DAY, Ordering::Relaxed),
                _ => world.wall.fetch_sub(DAY, Ordering::Relaxed),
            };
            world.wall_is_ahead |= days > 0;
            Ok(())
        }
        Act::Change(change) => reconfigure(change, world, true),
        _ => Ok(()),
    }
}

pub(super) fn end(fault: Fault, world: &mut World) -> Result<(), String> {
    match fault {
        Act::Stop => world.processes.iter_mut().for_each(|process| process.stopped = false),
        Act::OldPage | Act::Restore => return put_back(fault, world),
        Act::Change(change) => return reconfigure(change, world, false),
        _ => {}
    }
    Ok(())
}

fn files(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.base.join("pools")).into_iter().flatten().flatten();
    let is_pool = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "pool");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_pool).collect();
    files.sort();
    files
}

fn at_a_file(
    world: &mut World,
    act: impl FnOnce(&PathBuf, &mut World) -> std::io::Result<()>,
) -> Result<(), String> {
    let files = files(world);
    let at = world.random.below(files.len() as u64) as usize;
    let Some(path) = files.get(at) else { return Ok(()) };
    world.permitted.lost.push(world.now);
    world.permitted.harmed.extend(pool_of(path));
    act(path, world).map_err(|error| error.to_string())
}

fn damage(fault: Fault, world: &mut World) -> Result<(), String> {
    at_a_file(world, |path, world| {
        let file = fs::File::options().read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        let within = if world.random.below(3) == 0 { length } else { length.min(16 * PAGE) };
        let at = world.random.below(within);
        match fault {
            Act::FlipBit => {
                let mut byte = [0];
                // Another fault may have cut the file.
                if file.read_at(&mut byte, at)? == 0 {
                    return Ok(());
                }
                byte[0] ^= 1 << world.random.below(8);
                file.write_all_at(&byte, at)
            }
            Act::ZeroPage => file.write_all_at(&[0; PAGE as usize], at / PAGE * PAGE),
            _ => file.set_len(at),
        }
    })
}

/// Keeps a copy of a pool file for later.
fn keep(world: &mut World) -> Result<(), String> {
    at_a_file(world, |path, world| {
        let bytes = fs::read(path)?;
        world.kept.push((path.clone(), bytes));
        Ok(())
    })
}

/// An old copy, or one of its pages, takes the place of what was written since.
fn put_back(fault: Fault, world: &mut World) -> Result<(), String> {
    let Some((path, bytes)) = world.kept.pop() else { return Ok(()) };
    world.permitted.lost.push(world.now);
    match fault {
        Act::Restore => world.permitted.replaced(world.now),
        _ => world.permitted.rolled_back(world.now),
    }
    let done = if fault == Act::Restore {
        let draft = path.with_extension("draft");
        fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, &path))
    } else {
        let most = (bytes.len() as u64).min(16 * PAGE);
        let page = world.random.below(most) / PAGE * PAGE;
        let end = (page + PAGE).min(bytes.len() as u64);
        let file = fs::File::options().write(true).open(&path);
        file.and_then(|file| file.write_all_at(&bytes[page as usize..end as usize], page))
    };
    done.map_err(|error| error.to_string())
}

fn reconfigure(change: Change, world: &mut World, begin: bool) -> Result<(), String> {
    let mut setup = world.setup();
    setup.version += 1;
    changed(&mut setup, change, begin);
    // So that no call before the change has the instant of the change.
    world.pass(1);
    let now = world.now;
    world.eras.push(Era { begins: now, sure: now, setup: setup.clone() });
    let running = world.processes.iter_mut().find(|process| !process.stopped);
    let Some(process) = running else {
        // A process started for it brings the new limits.
        return world.start(world.boot_id);
    };
    for (member, pool) in process.members.iter_mut().zip(&setup.pools) {
        member
            .submit(vec![configure(&setup, pool, world.bug)])
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What a file of this setup says of a pool.
pub(super) fn configure(setup: &Setup, pool: &Pool, bug: Option<Bug>) -> Action {
    // A lease that a call on two pools left behind is missing when all is taken in the end.
    let slots = match (pool.name, pool.rule) {
        (CHILD | PARENT, Rule::Window(amount, _)) => amount,
        _ => 64,
    };
    let wide = Limit::new(standpipe_core::Rule::Parallel { amount: slots });
    let unit = Unit::Requests;
    let limits = match pool.rule {
        Rule::Parallel(amount) => vec![Limit::new(standpipe_core::Rule::Parallel { amount })],
        Rule::Window(amount, period) => {
            let period = Span(period);
            vec![wide, Limit::new(standpipe_core::Rule::Window { unit, amount, period })]
        }
        Rule::Bucket(amount, period, burst) => {
            let period = Span(period);
            vec![wide, Limit::new(standpipe_core::Rule::Bucket { unit, amount, period, burst })]
        }
        Rule::Day(amount, _) => {
            let period = Span(DAY_PERIOD);
            let window = standpipe_core::Rule::Window { unit, amount, period };
            let resets = Text::new("00:00 UTC").map_or(Resets::Rolling, Resets::Calendar);
            vec![wide, Limit { resets, ..Limit::new(window) }]
        }
        Rule::Absent => vec![wide],
    };
    let slack = if pool.lines.is_empty() { Span(50_000) } else { Span(300_000) };
    let paced = [LONG, PACED].contains(&pool.name) && bug != Some(Bug::Unpaced);
    let config = PoolConfig {
        margin: Margin::Fixed(0),
        slack,
        lease_ttl: Span::secs(2),
        enforce: pool.enforced,
        policy: Policy { spreads: paced, ..Policy::NONE },
        order: if setup.is_fair() { Order::Fair } else { Order::Arrival },
        agents: agents(setup, bug),
        ..PoolConfig::new(limits)
    };
    let source = Source::File { version: Some(setup.version), written: 0 };
    Action::Configure(Box::new(Configure { source, config }))
}

fn agents(setup: &Setup, bug: Option<Bug>) -> Vec<AgentRule> {
    let floor = || Share { of: LimitSelector::All, portion: Portion::PerMille(400) };
    let cap = || {
        let portion = Portion::Rate { amount: CAP.0, period: Span(CAP.1) };
        Share { of: LimitSelector::Unit(Unit::Requests), portion }
    };
    let rule = |number: usize| {
        let name = format!("p{number}");
        let floors = (setup.has_floors() && number <= 2).then(floor);
        let caps = (setup.has_cap() && number == 1).then(cap);
        Some(AgentRule {
            name: AgentName::new(&name)?,
            priority: None,
            floors: floors.into_iter().collect(),
            caps: caps.into_iter().collect(),
            weight: if bug == Some(Bug::Unweighted) { 1 } else { weight(&name) },
        })
    };
    (1..=MOST_PROCESSES).filter_map(rule).collect()
}

/// More processes than a pair starts.
const MOST_PROCESSES: usize = 12;
