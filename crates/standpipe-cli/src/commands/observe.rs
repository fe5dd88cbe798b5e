//! `observe`: what the provider's headers say is recorded.

mod headers;

use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use standpipe::Observation;

use super::throttle::of_another;
use super::{Ended, leases};
use crate::args::Observe;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// More than any response's headers.
const MOST: u64 = 1 << 20;

pub(super) fn run(args: &Observe, settings: &Settings, printer: &Printer) -> Ended {
    let mut given = Vec::new();
    for header in &args.header {
        given.push(headers::split(header).ok_or_else(|| {
            let what = format!("`{header}` is not a header");
            Failure::usage(&what, "write it as 'name: value', in quotes")
        })?);
    }
    if args.stdin.is_some() {
        given.extend(read()?);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let heard = headers::read(&given, now);
    let mut observation = Observation::new();
    if let Some(text) = &args.lease {
        let lease = leases::id(text)?;
        if lease.pool() != &args.pool {
            return Err(of_another(lease.pool().as_str(), args.pool.as_str()));
        }
        observation = observation.lease(lease);
    }
    for (name, value) in heard.of_limits {
        observation = observation.header(name, value);
    }
    let count = heard.readings.len();
    for reading in heard.readings {
        observation = observation.reading(reading);
    }
    for line in heard.unreadable {
        printer.talk(&format!("`{line}` cannot be read and is left out"));
    }
    let tap = settings.open()?;
    settings.known(&tap, &args.pool)?.observe(&observation)?;
    let said = match count {
        0 => "none of these headers speaks of a limit; nothing else was changed".to_owned(),
        _ => format!("noted what is said of {count} limit(s)"),
    };
    printer.done(&said, json!({ "pool": args.pool.as_str(), "limits": count }))?;
    Ok(Exit::Ok)
}

fn read() -> Result<Vec<(String, String)>, Failure> {
    let mut text = Vec::new();
    std::io::stdin()
        .lock()
        .take(MOST)
        .read_to_end(&mut text)
        .map_err(|error| Failure::system("cannot read the headers from standard input", &error))?;
    // Status line and what else is no header are not our business.
    Ok(String::from_utf8_lossy(&text).lines().filter_map(headers::split).collect())
}
