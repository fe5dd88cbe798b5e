//! What `hold`, `reserve` and `explain` say of a call in the same words.

use clap::Args;
use standpipe::{AgentName, Limit, PoolName, Span};

use super::calls::Priority;
use super::parse::{self, Cost};

/// A call: on which pool, by whom, how large.
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The shared quota, named `provider/scope`
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: PoolName,
    /// Who asks [default: $STANDPIPE_AGENT, else the calling program's name]
    #[arg(long = "as", value_name = "AGENT", value_parser = parse::agent)]
    pub(crate) agent: Option<AgentName>,
    /// Who goes first [default: the agent's own, else standard]
    #[arg(long)]
    pub(crate) priority: Option<Priority>,
    /// What the call takes, as `unit=n,…`; one request is implied
    #[arg(long, value_name = "COST", value_parser = parse::cost)]
    pub(crate) cost: Vec<Cost>,
    /// How many bytes are sent: the prompt's tokens are estimated by it if --cost does not say
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse::count)]
    pub(crate) bytes: Option<u64>,
    /// The most output asked for (max_tokens); what is reserved of it depends on the provider
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse::count)]
    pub(crate) max_output: Option<u64>,
}

/// What a call is for.
#[derive(Debug, Args)]
pub(crate) struct Work {
    /// The kind of task: for the record, and for the file's [route]
    #[arg(long, value_name = "TASK", value_parser = parse::word)]
    pub(crate) task: Option<String>,
    /// The model, for the record
    #[arg(long, value_name = "MODEL", value_parser = parse::word)]
    pub(crate) model: Option<String>,
}

/// How a call is admitted: under which limits, and how long it waits.
#[derive(Debug, Args)]
pub(crate) struct Admission {
    /// A limit of the pool, if no file gives it any: `parallel=2`, `requests=60/min`; with options
    /// after commas: `input_tokens=2M/min,burst=400k`
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
}
