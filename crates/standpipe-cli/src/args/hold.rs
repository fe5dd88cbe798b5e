//! `hold`.

use std::ffi::OsString;

use clap::Args;
use standpipe::{AgentName, Limit, PoolName, Span};

use super::calls::Priority;
use super::parse::{self, Cost};

const EXAMPLES: &str = "\
Examples:
  # At most two at once; others wait their turn
  standpipe hold my/slots --limit parallel=2 -- ./build.sh

  # Six a minute, shared by everybody on this machine
  standpipe hold web/example --limit requests=6/min -- curl -sO https://example.com/

  # Only if it is free now: 75 otherwise, here turned into 0
  standpipe hold my/backup --limit parallel=1 --timeout 0 --busy-exit 0 -- ./backup.sh
";

const AFTER: &str = "\
The command's own exit code is passed through, or 128 + n when signal n killed it. Signals go on to
the command. When `hold` itself is killed, its place comes back at once; on Linux the command dies
with it. 127: no such command, 126: it cannot be executed; nothing was taken.";

/// Run a command while holding a place in a pool
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Hold {
    /// The shared quota, named `provider/scope`
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: PoolName,
    /// Who asks [default: $STANDPIPE_AGENT, else the calling program's name]
    #[arg(long = "as", value_name = "AGENT", value_parser = parse::agent)]
    pub(crate) agent: Option<AgentName>,
    /// Who goes first [default: the agent's own, else standard]
    #[arg(long)]
    pub(crate) priority: Option<Priority>,
    /// What the command takes, as `unit=n,…`; one request is implied
    #[arg(long, value_name = "COST", value_parser = parse::cost)]
    pub(crate) cost: Vec<Cost>,
    /// A limit of the pool, if no file gives it any: `parallel=2`, `requests=60/min`
    #[arg(long, value_name = "UNIT=RATE", value_parser = parse::limit)]
    pub(crate) limit: Vec<Limit>,
    /// How long to wait at most: `500ms`, `30s`, `5min`; 0 never waits
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5min",
        allow_hyphen_values = true,
        value_parser = parse::length
    )]
    pub(crate) timeout: Span,
    /// Exit with this instead of 75 when it is not admitted in time
    #[arg(long, value_name = "CODE")]
    pub(crate) busy_exit: Option<u8>,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
