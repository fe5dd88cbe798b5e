//! Checking up: `audit`, `doctor`.

use clap::Args;
use standpipe::{PoolName, Span};

use super::parse;

const AUDIT: &str = "\
Examples:
  standpipe audit                       # who calls how often, and is it too much?
  standpipe audit anthropic/sonnet --since 7d
  standpipe audit --compare             # the last run in shadow mode against the last enforced run
  standpipe audit --compare --since 2h  # only runs in the last two hours
  standpipe audit --json | jq '.pools[].findings'
";

/// Who calls how often, together against 80 % of the quota, and who is at risk
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = AUDIT)]
pub(crate) struct Audit {
    /// Only this pool
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: Option<PoolName>,
    /// How far back [default: a day; with --compare: all that is kept]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse::length)]
    pub(crate) since: Option<Span>,
    /// Compare the last run with `enforce = false` with the last run without it
    #[arg(long)]
    pub(crate) compare: bool,
}

const DOCTOR: &str = "\
Examples:
  standpipe doctor
  standpipe doctor --json | jq '.findings[] | select(.level != \"ok\")'
";

/// Look for what is wrong, or soon will be, and say what to do
///
/// Ends with 0 if there is nothing worse than a warning, with 78 when the configuration cannot be
/// used, with 69 when the store cannot.
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = DOCTOR)]
pub(crate) struct Doctor {}
