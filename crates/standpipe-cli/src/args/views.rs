//! The flags of `status`, `explain` and `events`.

use clap::Args;
use standpipe::PoolName;

use super::call::Call;
use super::parse::{self, Since};

const STATUS: &str = "\
Examples:
  standpipe status
  standpipe status anthropic/sonnet
  standpipe status my/slots --check && echo 'a call would be admitted now'
  standpipe status --json | jq '.pools[].limits'
";

/// Show limits, leases, and waiting calls with reason and time
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = STATUS)]
pub(crate) struct Status {
    /// Only this pool
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: Option<PoolName>,
    /// Exit with 75 if a call of one request would have to wait, 77 if it would be refused
    #[arg(long)]
    pub(crate) check: bool,
}

const EXPLAIN: &str = "\
Examples:
  # Why does the call of blog wait, and until when?
  standpipe explain anthropic/sonnet --as blog

  # Would a call of this cost be admitted now?
  standpipe explain anthropic/sonnet --as blog --cost input_tokens=1200
";

/// Show step by step why a call waits, or whether it would be admitted
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = EXPLAIN)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) call: Call,
    /// The lease of the call that this one retries: it counts against the retry budget
    #[arg(long, value_name = "LEASE")]
    pub(crate) retry_of: Option<String>,
}

const EVENTS: &str = "\
Examples:
  standpipe events --since 1h
  standpipe events --follow --kind throttle
  standpipe events --pool anthropic/sonnet --as blog
  standpipe events --json | jq 'select(.agent == \"blog\")'
";

/// Show events: waits, refusals by the provider, pauses, reclaimed leases
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = EVENTS)]
pub(crate) struct Events {
    /// Print new events until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// The age of the oldest event, or its instant as `2026-01-31T12:00:00Z` [default: a day; with
    /// --follow: from now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse::since)]
    pub(crate) since: Option<Since>,
    /// Only this kind; `usage` is shown only when it is named
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Only those of this pool
    #[arg(long, value_name = "POOL", value_parser = parse::pool)]
    pub(crate) pool: Option<PoolName>,
    /// Only those of this agent
    #[arg(long = "as", value_name = "AGENT")]
    pub(crate) agent: Option<String>,
}
