//! `store`: operating the ledger.

use std::time::Instant;

use serde_json::{Map, Value, json};
use standpipe::{Pool, PoolName, PoolStatus, StoreUrl};

use super::Ended;
use crate::args::{Dump, Move, Reset, StoreAct, Upgrade};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

pub(super) fn run(act: StoreAct, settings: &Settings, printer: &Printer) -> Ended {
    match act {
        StoreAct::Ping => ping(settings, printer),
        StoreAct::Dump(args) => dump(&args, settings, printer),
        StoreAct::Reset(args) => reset(&args, settings, printer),
        StoreAct::Upgrade(args) => upgrade(&args, settings, printer),
        StoreAct::Move(args) => move_to(&args, settings, printer),
    }
}

fn ping(settings: &Settings, printer: &Printer) -> Ended {
    let began = Instant::now();
    let tap = settings.open()?;
    let pools = tap.pools()?;
    for pool in &pools {
        tap.pool_as_it_is(pool).status()?;
    }
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let place = tap.store_place();
    if printer.json {
        let names: Vec<&str> = pools.iter().map(PoolName::as_str).collect();
        let mut object = Map::new();
        object.insert("store".to_owned(), json!(place));
        object.insert("pools".to_owned(), json!(names));
        object.insert("took_us".to_owned(), json!(micros));
        printer.object(object)?;
    } else {
        let (count, took) = (pools.len(), micros.div_ceil(1_000));
        printer.line(&format!("{place} answers: {count} pool(s), all read within {took}ms"))?;
    }
    Ok(Exit::Ok)
}

fn dump(args: &Dump, settings: &Settings, printer: &Printer) -> Ended {
    let tap = settings.open()?;
    let pools = settings.pools(&tap, args.pool.as_ref())?;
    if printer.json {
        let all: Vec<PoolStatus> =
            pools.iter().map(|pool| pool.status()).collect::<Result<_, _>>()?;
        let mut object = Map::new();
        object.insert("store".to_owned(), json!(tap.store_place()));
        object.insert("pools".to_owned(), json!(all));
        printer.object(object)?;
        return Ok(Exit::Ok);
    }
    for pool in &pools {
        // The dump of a ledger goes over many lines; Rust's own form of it is escaped.
        printer.data(&format!("{}: {}\n", pool.name(), pool.dump()?))?;
    }
    Ok(Exit::Ok)
}

fn upgrade(args: &Upgrade, settings: &Settings, printer: &Printer) -> Ended {
    let tap = settings.open()?;
    let pools = settings.pools(&tap, args.pool.as_ref())?;
    for pool in &pools {
        // A pool of an older version is brought to this one by opening it.
        pool.status()?;
    }
    if printer.json {
        let names: Vec<Value> = pools.iter().map(|pool| json!(pool.name().as_str())).collect();
        let mut object = Map::new();
        object.insert("pools".to_owned(), json!(names));
        printer.object(object)?;
    } else {
        printer.line(&format!("{} pool(s), all of this version", pools.len()))?;
    }
    Ok(Exit::Ok)
}

fn reset(args: &Reset, settings: &Settings, printer: &Printer) -> Ended {
    let tap = settings.open()?;
    let name = &args.pool;
    let pool = settings.known(&tap, name)?;
    if !args.yes {
        return Err(sure(&format!("forgetting `{name}`"), &pool));
    }
    pool.reset()?;
    let said = format!("`{name}` is forgotten; who uses it now puts back what it holds");
    printer.done(&said, json!({ "pool": name.as_str(), "reset": true }))?;
    Ok(Exit::Ok)
}

fn move_to(args: &Move, settings: &Settings, printer: &Printer) -> Ended {
    let tap = settings.open()?;
    let pools = settings.pools(&tap, args.pool.as_ref())?;
    for pool in &pools {
        let name = pool.name();
        if !args.yes {
            return Err(sure(&format!("moving `{name}` to {}", args.to), pool));
        }
        let status = pool.status()?;
        if !status.leases.is_empty() || !status.tickets.is_empty() {
            return Err(in_use(name, &args.to));
        }
    }
    for pool in &pools {
        pool.move_to(&args.to)?;
        if !printer.json {
            printer.talk(&format!("`{}` is at {} now", pool.name(), args.to));
        }
    }
    if printer.json {
        let names: Vec<&str> = pools.iter().map(|pool| pool.name().as_str()).collect();
        printer.done("", json!({ "pools": names, "to": args.to.to_string() }))?;
    }
    Ok(Exit::Ok)
}

/// Nothing is forgotten or moved by a slip of the hand.
fn sure(what: &str, pool: &Pool) -> Failure {
    let calls = match pool.status() {
        Ok(status) => {
            let (held, waiting) = (status.leases.len(), status.tickets.len());
            format!("{held} call(s) in flight and {waiting} waiting")
        }
        Err(_) => "a pool that cannot be read".to_owned(),
    };
    let remedy = "say --yes if you mean it; nothing was changed";
    Failure::usage(&format!("{what} concerns {calls}"), remedy)
}

fn in_use(pool: &PoolName, to: &StoreUrl) -> Failure {
    let what = format!("`{pool}` is in use and cannot move to {to}");
    let remedy = format!("end what `standpipe status {pool}` shows, then try again");
    Failure::new(Exit::NotInTime, "in_use", &what, &remedy)
}
