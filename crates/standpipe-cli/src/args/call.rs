//! The flags of a call that `hold`, `reserve` and `explain` share.

use clap::Args;
use standpipe::{AgentName, Limit, PoolName, Priority, Span};

use super::parse::{self, Cost};

/// A call: pool, agent, priority and cost.
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The shared quota, named `provider/scope`
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: PoolName,
    /// Another pool that the call draws on, on all pools or on none; may be given several times
    #[arg(long, value_name = "POOL", value_parser = parse::pool)]
    pub(crate) also: Vec<PoolName>,
    /// The calling agent [default: $STANDPIPE_AGENT, else the calling program or script; for `hold`
    /// from a terminal or a scheduler the name of COMMAND]
    #[arg(long = "as", value_name = "AGENT", value_parser = parse::agent)]
    pub(crate) agent: Option<AgentName>,
    /// The priority [default: $STANDPIPE_PRIORITY, else the agent's own, else standard]
    #[arg(long, value_parser = parse::priority())]
    pub(crate) priority: Option<Priority>,
    /// The cost of the call, as `unit=n,…`; one request is implied
    #[arg(long, value_name = "COST", value_parser = parse::cost)]
    pub(crate) cost: Vec<Cost>,
    /// The size of the prompt in bytes, to estimate its tokens if --cost does not give them
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse::count)]
    pub(crate) bytes: Option<u64>,
    /// The requested maximum of output tokens (max_tokens); the provider decides how much of it
    /// counts
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse::count)]
    pub(crate) max_output: Option<u64>,
}

/// Labels of a call, for routing and records.
#[derive(Debug, Args)]
pub(crate) struct CallLabels {
    /// The kind of task, for records and for the file's [route]
    #[arg(long, value_name = "TASK", value_parser = parse::word)]
    pub(crate) task: Option<String>,
    /// The model, for records
    #[arg(long, value_name = "MODEL", value_parser = parse::word)]
    pub(crate) model: Option<String>,
}

/// The limits of a call's pool, and its timeout.
#[derive(Debug, Args)]
pub(crate) struct Admission {
    /// A limit of the pool, unless the configuration file sets it: `parallel=2`, `requests=60/min`;
    /// with options after commas: `input_tokens=2M/min,burst=400k`. At first 20 % of a rate is left
    /// unused; `margin = 0` in the file uses all of it
    #[arg(long, value_name = "UNIT=RATE", value_parser = parse::limit)]
    pub(crate) limit: Vec<Limit>,
    /// The longest wait: `500ms`, `30s`, `5min`; 0 never waits
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5min",
        allow_hyphen_values = true,
        value_parser = parse::length
    )]
    pub(crate) timeout: Span,
}
