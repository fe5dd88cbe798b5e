//! The command line as types: commands, flags, and the text of each `--help`.
//!
//! Parsing has no side effects; `commands` executes what is parsed here.

mod call;
mod calls;
mod checks;
mod config;
mod daemon;
mod help;
mod hold;
pub(crate) mod parse;
mod run;
mod store;
mod top;
mod views;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand};
use standpipe::{SEMANTICS, StoreUrl};

pub(crate) use call::{Admission, Call, CallLabels};
pub(crate) use calls::{
    Cancel, Commit, Heartbeat, Kind, Observe, Pause, Reserve, Resume, Throttle,
};
pub(crate) use checks::{Audit, Doctor};
pub(crate) use config::{Check, Completions, Config, ConfigCommand, Init, Provider, Show};
pub(crate) use daemon::{Down, LogFormat, LogLevel, Up};
pub(crate) use help::Help;
pub(crate) use hold::Hold;
pub(crate) use parse::{Since, total};
pub(crate) use run::{Env, EnvFormat, Run};
pub(crate) use store::{Dump, Move, Reset, Store, StoreCommand, Upgrade};
pub(crate) use top::Top;
pub(crate) use views::{Events, Explain, Status};

/// The layout of every help page: summary, examples, usage, arguments.
const PAGE: &str = "\
{about}

{before-help}{usage-heading} {usage}

{all-args}{after-help}";

/// The layout of the first page: as [`PAGE`], with the commands by task. A test keeps the list and
/// the commands the same.
const FIRST_PAGE: &str = "\
{about}

{before-help}{usage-heading} {usage}

Run programs:
  run          Run a program whose API calls go through the proxy
  env          Print the variables that send a program's API calls through the proxy
  hold         Run a command while holding a lease on a pool
  up           Run the daemon: HTTP API, proxy, dashboard, metrics
  down         Stop the daemon of this state directory

Inspect:
  status       Show limits, leases, and waiting calls with reason and time
  top          Watch pools live: limits, calls in flight, the queue, agents, events
  explain      Show step by step why a call waits, or whether it would be admitted
  events       Show events: waits, refusals by the provider, pauses, reclaimed leases
  audit        Show what each agent used, the total against 80 % of the quota, and risks
  doctor       Check the installation and print findings with remedies

Write scripts:
  reserve      Wait until a call is admitted and print a lease id
  commit       Settle a lease with what the call used [alias: release]
  cancel       Release a lease whose call was never sent
  heartbeat    Keep a lease alive
  throttle     Report that the provider refused a call (a 429)
  observe      Read a provider's response and apply its limits or its refusal

Operate:
  pause        Stop admission for a given time
  resume       End a pause, or a stop by the provider
  config       Work with the configuration file: init, check, show, schema
  store        Operate the ledger's store: ping, dump, reset, upgrade, move
  completions  Print the completion script of a shell
  man          Print the manual page
  help         Explain a command, or `help errors`: every reason and exit code

On every command:
{options}{after-help}";

const EXAMPLES: &str = "\
Examples:
  # Send every API call of this program through Standpipe
  standpipe run -- python my_agent.py

  # At most two of these run at once, however many shells start them
  standpipe hold my/slots --limit parallel=2 -- ./build.sh

  # At most 30 calls a minute, 24 with the usual margin of 20 %, shared with all other callers
  while read -r url; do
      standpipe hold web/example --limit requests=30/min -- curl -sO \"$url\"
  done < urls.txt

  # Show limits, calls in flight, and waiting calls
  standpipe status
";

const AFTER: &str = "\
Exit codes:
  0 ok   2 usage   65 can never fit   66 no such lease   69 store unavailable   70 internal
  74 output   75 not in time   77 stopped by the provider   78 configuration

Environment:
  STANDPIPE_AGENT   the agent, unless --as names one
  STANDPIPE_CONFIG  the configuration file, unless --config names one
  STANDPIPE_HOME    the state directory of this machine
  NO_COLOR          no colours";

/// The version, the commit it was built from if that is known, and how; and the semantics of the
/// ledger, which decide whether two versions share a pool.
static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{}, semantics {SEMANTICS}", env!("STANDPIPE_VERSION")));

/// A shared rate limiter for all processes that use one API key.
#[derive(Debug, Parser)]
#[command(
    name = "standpipe",
    version = VERSION.as_str(),
    help_template = FIRST_PAGE,
    before_help = EXAMPLES,
    after_help = AFTER,
    arg_required_else_help = true,
    subcommand_required = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command line with `hold` as its only command.
#[derive(Debug, Parser)]
#[command(name = "standpipe")]
struct HoldCli {
    #[command(flatten)]
    globals: GlobalArgs,
    #[command(subcommand)]
    command: HoldCommand,
}

#[derive(Debug, Subcommand)]
enum HoldCommand {
    Hold(Hold),
}

impl Cli {
    /// Parses the arguments of this process, the first of which is the program.
    ///
    /// `hold` is tried alone first: it is called in loops, and clap would build every other command
    /// too, which takes half of its own instructions. Whatever that parser rejects, help included,
    /// is left to the whole one, so that output and errors are the same.
    ///
    /// # Errors
    /// As [`Parser::try_parse`]; help and version are errors too.
    pub(crate) fn parse_arguments(arguments: &[OsString]) -> Result<Self, clap::Error> {
        if arguments.get(1).is_some_and(|command| command == "hold")
            && let Ok(HoldCli { globals, command: HoldCommand::Hold(hold) }) =
                HoldCli::try_parse_from(arguments)
        {
            return Ok(Self { globals, command: Command::Hold(hold) });
        }
        Self::try_parse_from(arguments)
    }
}

/// Flags that every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "On every command")]
pub(crate) struct GlobalArgs {
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The store of the ledger: file, file:/path, memory, redis://host
    #[arg(long, global = true, value_name = "URL", value_parser = parse::store)]
    pub(crate) store: Option<StoreUrl>,
    /// Print data, and refusals, as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only errors on stderr
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// A command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Up(Up),
    Down(Down),
    Run(Run),
    Env(Env),
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
    Help(Help),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn hold_alone_is_parsed_as_among_all_commands() {
        for line in [
            "hold my/slots --limit parallel=1 -- true",
            "hold --json my/api -q --as blog --cost requests=2 --timeout 5s -- curl --json x",
            "hold my/api --store memory --busy-exit 0 --throttled-exit 3 -- sh -c hold",
            "hold my/api",
            "hold --help",
            "hold my/api --fro -- true",
            "-q hold my/api -- true",
            "status",
        ] {
            let arguments: Vec<OsString> =
                std::iter::once("standpipe").chain(line.split(' ')).map(OsString::from).collect();
            let text = |parsed: Result<Cli, clap::Error>| match parsed {
                Ok(cli) => format!("{cli:?}"),
                Err(error) => error.render().to_string(),
            };
            let whole = text(Cli::try_parse_from(&arguments));
            assert_eq!(text(Cli::parse_arguments(&arguments)), whole, "{line}");
        }
    }

    #[test]
    fn the_first_page_lists_every_command_once() {
        for command in Cli::command().get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let line = format!("\n  {:11}  {about}", command.get_name());
            assert_eq!(FIRST_PAGE.matches(&line).count(), 1, "{line}");
        }
        let listed = FIRST_PAGE.lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(listed, Cli::command().get_subcommands().count());
    }

    /// Each page leads with examples.
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
