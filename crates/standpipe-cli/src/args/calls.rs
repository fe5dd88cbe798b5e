//! Commands about calls and their pools: `reserve`, `commit`, `cancel`, `heartbeat`, `throttle`,
//! `observe`, `pause`, `resume`.

use clap::{Args, ValueEnum};
use standpipe::{AgentName, PoolName, Span};

use super::call::{Admission, Call, CallLabels};
use super::parse::{self, Cost};

const RESERVE: &str = "\
Examples:
  # Reserve before the call, commit after it
  lease=$(standpipe reserve anthropic/sonnet --cost input_tokens=1200,output_tokens=800 --owner $$)
  ./call-the-api
  standpipe commit \"$lease\" --used input_tokens=1180,output_tokens=412

  # Use the pool that [route] in the file names for this task; the output names it
  standpipe reserve anthropic/sonnet --task classify --json

  # One lease on two pools
  standpipe reserve anthropic/sonnet --also shared/search

  # Check whether the call would be admitted now, without reserving
  standpipe reserve anthropic/sonnet --cost input_tokens=1200 --dry-run
";

const RESERVE_AFTER: &str = "\
The lease expires --ttl after its id is printed; `heartbeat` extends it. If `reserve` is killed
before it prints the id, nothing stays reserved.";

/// Wait until a call is admitted and print a lease id
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = RESERVE, after_help = RESERVE_AFTER)]
pub(crate) struct Reserve {
    #[command(flatten)]
    pub(crate) call: Call,
    #[command(flatten)]
    pub(crate) work: CallLabels,
    #[command(flatten)]
    pub(crate) admission: Admission,
    /// The lifetime of the lease without a heartbeat [default: the pool's, 10min]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse::length)]
    pub(crate) ttl: Option<Span>,
    /// End the lease when this process ends; `$$` is the shell
    #[arg(long, value_name = "PID", value_parser = parse::pid)]
    pub(crate) owner: Option<u32>,
    /// Idempotency key: the same key of the same agent gets the same lease
    #[arg(long, value_name = "KEY", value_parser = parse::word)]
    pub(crate) id: Option<String>,
    /// The lease of the call that this one retries
    #[arg(long, value_name = "LEASE")]
    pub(crate) retry_of: Option<String>,
    /// Only print whether it would be admitted now
    #[arg(long)]
    pub(crate) dry_run: bool,
}

const COMMIT: &str = "\
Examples:
  standpipe commit \"$lease\"                                        # at the estimate
  standpipe commit \"$lease\" --used input_tokens=1180,output_tokens=412
  standpipe commit \"$lease\" --used output_tokens=200 --progress     # so far; the call continues

  # Keep the response, settle by it, and settle at the estimate if there is none
  : > head > body
  curl -sS -D head -o body https://api.example.com/
  cat head body | standpipe commit \"$lease\" --headers - || standpipe commit \"$lease\"
";

/// Settle a lease with what the call used
#[derive(Debug, Args)]
#[command(visible_alias = "release", help_template = super::PAGE, before_help = COMMIT)]
pub(crate) struct Commit {
    /// The id that `reserve` printed
    pub(crate) lease: String,
    /// Totals of the call so far; what is not named settles at the estimate
    #[arg(long, value_name = "COST", value_parser = parse::cost)]
    pub(crate) used: Vec<Cost>,
    /// The call continues, and the lease stays in flight
    #[arg(long, conflicts_with_all = ["headers", "status"])]
    pub(crate) progress: bool,
    /// Read the provider's response (status line, headers, body) from standard input
    #[arg(long, value_name = "-", value_parser = ["-"])]
    pub(crate) headers: Option<String>,
    /// The HTTP status of the response, if it has no status line
    #[arg(long, value_name = "CODE", value_parser = parse::status)]
    pub(crate) status: Option<u16>,
}

const CANCEL: &str = "\
Examples:
  standpipe cancel \"$lease\"
";

/// Release a lease whose call was never sent
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = CANCEL)]
pub(crate) struct Cancel {
    /// The id that `reserve` printed
    pub(crate) lease: String,
}

const HEARTBEAT: &str = "\
Examples:
  standpipe heartbeat \"$lease\"                 # extends this lease
  standpipe heartbeat --as blog my/slots       # extends all leases of blog on this pool
";

/// Keep a lease alive
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = HEARTBEAT)]
pub(crate) struct Heartbeat {
    /// The id that `reserve` printed; with --as, a pool
    #[arg(value_name = "LEASE|POOL")]
    pub(crate) what: String,
    /// All leases of this agent
    #[arg(long = "as", value_name = "AGENT", value_parser = parse::agent)]
    pub(crate) agent: Option<AgentName>,
}

/// The kind of a provider's refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Kind {
    #[default]
    Quota,
    Concurrency,
    SlowDown,
    Overload,
    Terminal,
}

const THROTTLE: &str = "\
Examples:
  standpipe throttle anthropic/sonnet --retry-after 30s
  standpipe throttle github/core --lease \"$lease\" --kind slow_down
";

/// Report that the provider refused a call (a 429)
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = THROTTLE)]
pub(crate) struct Throttle {
    /// The shared quota
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: PoolName,
    /// The agent of the call [default: $STANDPIPE_AGENT, else the calling program or script]
    #[arg(long = "as", value_name = "AGENT", value_parser = parse::agent)]
    pub(crate) agent: Option<AgentName>,
    /// The call's lease, which is settled
    #[arg(long, value_name = "LEASE")]
    pub(crate) lease: Option<String>,
    /// The wait that the provider states
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse::length)]
    pub(crate) retry_after: Option<Span>,
    /// The kind of refusal
    #[arg(long, default_value = "quota")]
    pub(crate) kind: Kind,
}

const OBSERVE: &str = "\
Examples:
  standpipe observe github/core --header 'x-ratelimit-limit: 5000'
  curl -si https://api.github.com/rate_limit | standpipe observe github/core -
  standpipe observe github/core --status 429
";

const OBSERVE_AFTER: &str = "\
The format is that of the pool's provider: the one named in standpipe.toml, else the first part of
the pool's name, else the common headers (x-ratelimit-*, ratelimit, retry-after). A lower limit
applies at once; a refusal (429, 529 …) pauses the pool for every caller.";

/// Read a provider's response and apply its limits or its refusal
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = OBSERVE, after_help = OBSERVE_AFTER)]
pub(crate) struct Observe {
    /// The shared quota
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: PoolName,
    /// A header of the response; may be given several times
    #[arg(long, value_name = "NAME: VALUE", required_unless_present_any = ["stdin", "status"])]
    pub(crate) header: Vec<String>,
    /// The lease of the call
    #[arg(long, value_name = "LEASE")]
    pub(crate) lease: Option<String>,
    /// The HTTP status of the response, if it has no status line
    #[arg(long, value_name = "CODE", value_parser = parse::status)]
    pub(crate) status: Option<u16>,
    /// Read the response (status line, headers, body) from standard input
    #[arg(value_name = "-", value_parser = ["-"])]
    pub(crate) stdin: Option<String>,
}

const PAUSE: &str = "\
Examples:
  standpipe pause anthropic/sonnet --for 5min --as ops
";

/// Stop admission for a given time
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = PAUSE)]
pub(crate) struct Pause {
    /// The shared quota
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: PoolName,
    /// The length of the pause
    #[arg(
        long = "for",
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = parse::length
    )]
    pub(crate) length: Span,
    /// Who orders the pause [default: $STANDPIPE_AGENT, else the calling program or script]
    #[arg(long = "as", value_name = "AGENT", value_parser = parse::agent)]
    pub(crate) agent: Option<AgentName>,
}

const RESUME: &str = "\
Examples:
  standpipe resume anthropic/sonnet --as ops
";

/// End a pause, or a stop by the provider
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = RESUME)]
pub(crate) struct Resume {
    /// The shared quota
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: PoolName,
    /// Who resumes it [default: $STANDPIPE_AGENT, else the calling program or script]
    #[arg(long = "as", value_name = "AGENT", value_parser = parse::agent)]
    pub(crate) agent: Option<AgentName>,
}
