//! `help`: the page of a command, or of the reasons and exit codes.

use clap::CommandFactory;
use standpipe::config::nearest;

use super::CommandResult;
use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::reasons::MEANINGS;

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
        "Why a call waits or is refused (`reason` in JSON and HTTP responses):\n".to_owned();
    for (reason, what, remedy) in MEANINGS {
        page += &format!("  {:13} {what}\n", reason.as_str());
        page += &format!("  {:13} {remedy}\n", "");
    }
    page += &format!("  {:13} the store is unavailable\n", "store");
    page += &format!("  {:13} `standpipe doctor` shows why\n", "");
    page += "\nExit codes:\n";
    for (exit, what) in CODES {
        page += &format!("  {:<3} {what}\n", exit.number());
    }
    page += "  126, 127, 128+n  from `hold`: the command cannot be run, does not exist,\n";
    page += &format!("  {:16} or was killed by signal n\n", "");
    page + "\n`standpipe explain POOL` shows which rule applies to a call.\n"
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
        "stopped by the provider: a long-term quota is used up, or the account has a problem",
    ),
    (Exit::Config, "the configuration is invalid, or does not describe the pool"),
];

#[cfg(test)]
mod tests {
    use standpipe::Reason;

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
