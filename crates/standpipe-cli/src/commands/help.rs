//! `help`: the page of a command, or of the reasons and exit codes.

use clap::CommandFactory;
use standpipe::Reason;
use standpipe::config::nearest;

use super::CommandResult;
use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;

pub(super) fn run(topic: &[String], printer: &Printer) -> CommandResult {
    if topic == ["errors"] {
        printer.data(&errors())?;
        return Ok(Exit::Ok);
    }
    let mut command = Cli::command();
    command.build();
    let mut found = command;
    for word in topic {
        let below = found.find_subcommand(word).cloned();
        found = below.ok_or_else(|| unknown(word, &found))?;
    }
    printer.data(&format!("{}\n", found.render_help().to_string().trim_end()))?;
    Ok(Exit::Ok)
}

fn unknown(word: &str, known: &clap::Command) -> Failure {
    let names = known.get_subcommands().map(clap::Command::get_name).chain(["errors"]);
    let hint = match nearest(word, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`standpipe --help` lists the commands".to_owned(),
    };
    Failure::usage(&format!("there is no help on `{word}`"), &hint)
}

/// Every reason why a call is not admitted, and every exit code, with what to do.
fn errors() -> String {
    let mut page =
        "Why a call waits or is refused (`reason` in JSON and HTTP answers):\n".to_owned();
    for (reason, what, remedy) in MEANINGS {
        page += &format!("  {:13} {what}\n", reason.as_str());
        page += &format!("  {:13} {remedy}\n", "");
    }
    page += &format!("  {:13} the store is unavailable\n", "store");
    page += &format!("  {:13} `standpipe doctor` says why\n", "");
    page += "\nExit codes:\n";
    for (exit, what) in CODES {
        page += &format!("  {:<3} {what}\n", exit.number());
    }
    page + "\n`standpipe explain POOL` walks through the rules for a call of yours.\n"
}

const CODES: [(Exit, &str); 10] = [
    (Exit::Ok, "done"),
    (Exit::Usage, "the command line is invalid"),
    (Exit::NeverFits, "the call can never fit: it is larger than a limit"),
    (Exit::NoLease, "the lease does not exist or has ended"),
    (Exit::Store, "the store is unavailable"),
    (Exit::Internal, "an internal error"),
    (Exit::Output, "the output cannot be written"),
    (Exit::NotInTime, "not admitted in time; try later"),
    (
        Exit::Stopped,
        "the provider said stop: its quota is used up for long, or the account has a problem",
    ),
    (Exit::Config, "the configuration is invalid"),
];

/// What each reason means, and what to do about it.
const MEANINGS: [(Reason, &str, &str); 20] = [
    (
        Reason::Terminal,
        "the provider said stop: billing, a spent monthly quota, a blocked key",
        "fix the account, then `standpipe resume POOL`",
    ),
    (Reason::Never, "larger than a limit of the pool", "send a smaller call, or raise the limit"),
    (
        Reason::Pause,
        "the pool is paused, after a 429 or by hand",
        "`standpipe status POOL` shows until when; `resume` ends it",
    ),
    (
        Reason::ReturnWindow,
        "after a pause calls return staggered by priority",
        "nothing; it takes seconds",
    ),
    (
        Reason::Zone,
        "little is left of a limit, and calls of this priority are spaced out",
        "give what must not wait `--priority critical`, or a floor",
    ),
    (
        Reason::Hold,
        "an agent before it in its workflow was throttled, or it waits before a retry",
        "nothing; it ends with that pause",
    ),
    (
        Reason::Yield,
        "little is left of a limit, and background leaves it to others",
        "raise its priority if it must run now",
    ),
    (
        Reason::Spread,
        "background is paced so that a long limit lasts",
        "raise its priority, or set `spread = false` in the pool",
    ),
    (Reason::Cap, "the agent's own cap is reached", "raise `cap` of the agent"),
    (
        Reason::Order,
        "other calls are first in line",
        "wait; `order = \"fair\"` shares among agents instead",
    ),
    (
        Reason::Limit,
        "a limit has no room",
        "wait for `until`; request less; or raise the limit if the provider allows more",
    ),
    (
        Reason::Floor,
        "the rest of the limit is kept for agents with a floor",
        "wait, or give this agent a floor too",
    ),
    (
        Reason::Ramp,
        "after a pause only a part of a limit is usable at first",
        "nothing; it doubles step by step",
    ),
    (Reason::Pace, "too soon after the last call (`pace`)", "wait for `until`"),
    (
        Reason::Probe,
        "after a pause one call probes, and the others wait for its answer",
        "nothing; a lost probe is replaced",
    ),
    (
        Reason::Sequential,
        "several agents were throttled, so calls run one at a time",
        "nothing; it ends after some successful calls",
    ),
    (
        Reason::Learning,
        "the store lost calls in flight, or the provider's limits are not known yet",
        "wait, or state the limits in standpipe.toml",
    ),
    (
        Reason::RetryBudget,
        "too many of the last minute's calls were retries",
        "switch off the retries of the SDK (`max_retries=0`)",
    ),
    (
        Reason::QueueFull,
        "too many calls wait or are in flight on the pool",
        "send fewer at once; `standpipe status POOL` shows whose they are",
    ),
    (Reason::Deadline, "its timeout has passed", "give it a longer `--timeout`"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_errors_is_narrow_and_names_every_reason() {
        let page = errors();
        let long: Vec<&str> = page.lines().filter(|line| line.chars().count() > 100).collect();
        assert_eq!(long, [] as [&str; 0]);
        for reason in Reason::ALL {
            assert!(page.contains(&format!("\n  {:13} ", reason.as_str())), "{reason:?}");
        }
    }
}
