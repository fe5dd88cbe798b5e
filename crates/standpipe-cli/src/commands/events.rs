//! `events`: what happened, from the journal.

use std::time::{Duration, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use standpipe::journal::{Event, Kind};

use super::Ended;
use crate::args::Events;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::{Settings, duration};
use crate::show::events::line;

/// How far back a look goes when nobody says.
const A_DAY: Duration = Duration::from_secs(86_400);

/// How often the journal is looked at for more.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

pub(super) fn run(args: &Events, settings: &Settings, printer: &Printer) -> Ended {
    let kind = args.kind.as_deref().map(kind).transpose()?;
    let back = args.since.map(duration);
    let since = |back: Duration| SystemTime::now().checked_sub(back);
    let tap = settings.open()?;
    if !args.follow {
        for event in tap.journal().events(since(back.unwrap_or(A_DAY)), kind) {
            show(&event, printer)?;
        }
        return Ok(Exit::Ok);
    }
    let mut follow = tap.journal().follow(back.and_then(since), kind);
    loop {
        for event in follow.more() {
            show(&event, printer)?;
        }
        if nobody_reads_within_a_moment() {
            return Ok(Exit::Ok);
        }
    }
}

fn kind(word: &str) -> Result<Kind, Failure> {
    word.parse().map_err(|_| {
        let words = Kind::ALL.map(Kind::as_str).join(", ");
        Failure::usage(
            &format!("there is no kind of event `{word}`"),
            &format!("use one of: {words}"),
        )
    })
}

fn show(event: &Event, printer: &Printer) -> Result<(), Failure> {
    match json!(event) {
        Value::Object(object) if printer.json => printer.object_line(object)?,
        _ => printer.line(&line(event))?,
    }
    Ok(())
}

/// Waits a moment, unless whoever read our output has gone.
fn nobody_reads_within_a_moment() -> bool {
    let out = std::io::stdout();
    let mut ears = [PollFd::new(&out, PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    poll(&mut ears, Some(&PAUSE)).is_ok() && ears[0].revents().intersects(gone)
}
