//! `store`: operations on the ledger's store.

use std::time::Instant;

use serde_json::{Map, Value, json};
use standpipe::{Pool, PoolName, PoolStatus, StoreUrl};

use super::CommandResult;
use crate::args::{Dump, Move, Reset, StoreCommand, Upgrade};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::amount::counted;

pub(super) fn run(act: StoreCommand, context: &Context, printer: &Printer) -> CommandResult {
    match act {
        StoreCommand::Ping => ping(context, printer),
        StoreCommand::Dump(args) => dump(&args, context, printer),
        StoreCommand::Reset(args) => reset(&args, context, printer),
        StoreCommand::Upgrade(args) => upgrade(&args, context, printer),
        StoreCommand::Move(args) => move_to(&args, context, printer),
    }
}

fn ping(context: &Context, printer: &Printer) -> CommandResult {
    let began = Instant::now();
    let tap = context.open()?;
    let pools = tap.pools().blocking()?;
    for pool in &pools {
        tap.existing_pool(pool).status().blocking()?;
    }
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let place = tap.store_location();
    if printer.json {
        let names: Vec<&str> = pools.iter().map(PoolName::as_str).collect();
        let mut object = Map::new();
        object.insert("store".to_owned(), json!(place));
        object.insert("pools".to_owned(), json!(names));
        object.insert("took_us".to_owned(), json!(micros));
        printer.object(object)?;
    } else {
        let (count, took) = (pools.len(), micros.div_ceil(1_000));
        printer.line(&format!(
            "{place} answers: {}, all read within {took} ms",
            counted(count, "pool")
        ))?;
    }
    Ok(Exit::Ok)
}

fn dump(args: &Dump, context: &Context, printer: &Printer) -> CommandResult {
    let tap = context.open()?;
    let pools = context.pools(&tap, args.pool.as_ref())?;
    let all: Vec<PoolStatus> =
        pools.iter().map(|pool| pool.status().blocking()).collect::<Result<_, _>>()?;
    let mut object = Map::new();
    object.insert("store".to_owned(), json!(tap.store_location()));
    object.insert("pools".to_owned(), json!(all));
    printer.object(object)?;
    Ok(Exit::Ok)
}

fn upgrade(args: &Upgrade, context: &Context, printer: &Printer) -> CommandResult {
    let tap = context.open()?;
    let pools = context.pools(&tap, args.pool.as_ref())?;
    for pool in &pools {
        // A pool of an older version is brought to this one by opening it.
        pool.status().blocking()?;
    }
    if printer.json {
        let names: Vec<Value> = pools.iter().map(|pool| json!(pool.name().as_str())).collect();
        let mut object = Map::new();
        object.insert("pools".to_owned(), json!(names));
        printer.object(object)?;
    } else {
        printer.line(&format!("{}, all of this version", counted(pools.len(), "pool")))?;
    }
    Ok(Exit::Ok)
}

fn reset(args: &Reset, context: &Context, printer: &Printer) -> CommandResult {
    let tap = context.open()?;
    let name = &args.pool;
    let pool = context.existing_pool(&tap, name)?;
    if !args.yes {
        let what = format!("this deletes `{name}`: its recorded use, leases and tickets");
        return Err(needs_confirmation(&what, &pool));
    }
    pool.reset().blocking()?;
    let note = format!("`{name}` was deleted; running processes restore the leases they hold");
    printer.done(&note, json!({ "pool": name.as_str(), "reset": true }))?;
    Ok(Exit::Ok)
}

fn move_to(args: &Move, context: &Context, printer: &Printer) -> CommandResult {
    let tap = context.open()?;
    let pools = context.pools(&tap, args.pool.as_ref())?;
    if tap.is_at(&args.to) {
        let what = match &args.pool {
            Some(pool) => format!("`{pool}` is already in {}", args.to),
            None => format!("the pools are already in {}", args.to),
        };
        return Err(Failure::usage(&what, "there is nothing to move: --to names another store"));
    }
    if !args.yes {
        return Err(unconfirmed_move(args, &pools));
    }
    for pool in &pools {
        let name = pool.name();
        let status = pool.status().blocking()?;
        if !status.leases.is_empty() || !status.tickets.is_empty() {
            return Err(in_use(name, &args.to));
        }
    }
    for pool in &pools {
        pool.move_to(&args.to).blocking()?;
        if !printer.json {
            printer.note(&format!("`{}` is at {} now", pool.name(), args.to));
        }
    }
    if printer.json {
        let names: Vec<&str> = pools.iter().map(|pool| pool.name().as_str()).collect();
        printer.done("", json!({ "pools": names, "to": args.to.to_string() }))?;
    }
    Ok(Exit::Ok)
}

/// The failure of a move without `--yes`: which pools it concerns.
fn unconfirmed_move(args: &Move, pools: &[Pool]) -> Failure {
    let to = &args.to;
    let names: Vec<String> = pools.iter().map(|pool| format!("`{}`", pool.name())).collect();
    match (pools, args.pool.is_some()) {
        ([], _) => Failure::usage("there is no pool to move", "`standpipe status` lists the pools"),
        ([pool], true) => {
            needs_confirmation(&format!("this moves `{}` to {to}", pool.name()), pool)
        }
        (_, _) => {
            let what = format!("this moves every pool to {to}: {}", names.join(", "));
            let hint = "add --yes to do it, or name one pool: standpipe store move POOL --to …; \
                        nothing was changed";
            Failure::usage(&what, hint)
        }
    }
}

/// The failure without `--yes`, with the calls that are affected.
fn needs_confirmation(what: &str, pool: &Pool) -> Failure {
    let calls = match pool.status().blocking() {
        Ok(status) => {
            let (held, waiting) = (status.leases.len(), status.tickets.len());
            let calls = format!(" ({} in flight and {waiting} waiting)", counted(held, "call"));
            if held + waiting > 0 { calls } else { String::new() }
        }
        Err(_) => " (the pool cannot be read)".to_owned(),
    };
    Failure::usage(&format!("{what}{calls}"), "add --yes to do it; nothing was changed")
}

fn in_use(pool: &PoolName, to: &StoreUrl) -> Failure {
    let what = format!("`{pool}` is in use and cannot move to {to}");
    let remedy = format!("end what `standpipe status {pool}` shows, then try again");
    Failure::new(Exit::NotInTime, "in_use", &what, &remedy)
}
