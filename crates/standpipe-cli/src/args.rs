//! The command line as types: what can be said, and what each `--help` shows. Nothing is done here.

mod call;
mod calls;
mod checking;
mod daemon;
mod hold;
mod ledger;
mod operate;
pub(crate) mod parse;
mod seeing;
mod top;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use standpipe::StoreUrl;

pub(crate) use call::{Admission, Call, Work};
pub(crate) use calls::{
    Cancel, Commit, Heartbeat, Kind, Observe, Pause, Priority, Reserve, Resume, Throttle,
};
pub(crate) use checking::{Audit, Doctor};
pub(crate) use daemon::{Down, Up};
pub(crate) use hold::Hold;
pub(crate) use ledger::{Dump, Move, Reset, Store, StoreAct, Upgrade};
pub(crate) use operate::{Check, Completions, Config, ConfigAct, Init, Show};
pub(crate) use parse::total;
pub(crate) use seeing::{Events, Explain, Status};
pub(crate) use top::Top;

/// Every page of help: what it is, examples, then how it is called.
const PAGE: &str = "\
{about}

{before-help}{usage-heading} {usage}

{all-args}{after-help}";

const EXAMPLES: &str = "\
Examples:
  # At most two of these run at once, however many shells start them
  standpipe hold my/slots --limit parallel=2 -- ./build.sh

  # A loop that keeps to 30 calls a minute, together with all others on this pool
  while read -r url; do
      standpipe hold web/example --limit requests=30/min -- curl -sO \"$url\"
  done < urls.txt

  # Who holds what, who waits for what, and until when
  standpipe status
";

const AFTER: &str = "\
Exit codes:
  0 ok   2 usage   65 can never fit   66 no such lease   69 store unreachable
  70 internal   75 not in time   77 the provider said stop   78 configuration

Environment:
  STANDPIPE_AGENT   who asks, when --as does not say
  STANDPIPE_CONFIG  the configuration file, when --config does not say
  STANDPIPE_HOME    where the ledgers of this machine are kept
  NO_COLOR          no colours";

/// One tap for everything that shares an API quota.
#[derive(Debug, Parser)]
#[command(
    name = "standpipe",
    version,
    help_template = PAGE,
    before_help = EXAMPLES,
    after_help = AFTER,
    arg_required_else_help = true,
    subcommand_required = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "On every command")]
pub(crate) struct Globals {
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where the ledger is kept: file, file:/path, memory, redis://host
    #[arg(long, global = true, value_name = "URL", value_parser = parse::store)]
    pub(crate) store: Option<StoreUrl>,
    /// Print data, and refusals, as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing on stderr but failures
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Up(Up),
    Down(Down),
    Hold(Hold),
    Reserve(Reserve),
    Commit(Commit),
    Cancel(Cancel),
    Heartbeat(Heartbeat),
    Throttle(Throttle),
    Observe(Observe),
    Pause(Pause),
    Resume(Resume),
    Status(Status),
    Top(Top),
    Explain(Explain),
    Events(Events),
    Audit(Audit),
    Doctor(Doctor),
    Store(Store),
    Config(Config),
    Completions(Completions),
    /// Print the manual page
    #[command(help_template = PAGE, before_help = "Examples:\n  standpipe man | man -l -\n")]
    Man,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_makes_sense() {
        Cli::command().debug_assert();
    }

    /// Each page leads with examples, and each example can be read by the command it is about.
    #[test]
    fn every_command_leads_with_examples() {
        let mut pages = vec![Cli::command()];
        while let Some(command) = pages.pop() {
            let name = command.get_name().to_owned();
            let examples = command.get_before_help().map(ToString::to_string).unwrap_or_default();
            assert!(examples.starts_with("Example"), "{name} has no examples");
            assert!(examples.ends_with('\n'), "{name}: an empty line follows the examples");
            pages.extend(command.get_subcommands().cloned());
        }
    }
}
