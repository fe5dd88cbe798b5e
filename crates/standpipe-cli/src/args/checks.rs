//! The flags of `audit` and `doctor`.

use clap::Args;
use standpipe::{PoolName, Span};

use super::parse;

const AUDIT: &str = "\
Examples:
  standpipe audit                       # calls per agent against the quota
  standpipe audit anthropic/sonnet --since 7d
  standpipe audit --compare             # the last run in shadow mode against the last enforced run
  standpipe audit --compare --since 2h  # only runs in the last two hours
  standpipe audit --json | jq '.pools[].findings'
";

/// Show what each agent used, the total against 80 % of the quota, and risks
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = AUDIT)]
pub(crate) struct Audit {
    /// Only this pool
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: Option<PoolName>,
    /// The age of the oldest record [default: a day; with --compare: all records]
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

/// Check the installation and print findings with remedies
///
/// Exits with 0 if there is nothing worse than a warning, with 78 when the configuration is
/// invalid, with 69 when the store is unusable or lost a ledger, with 77 when the provider stopped
/// a pool.
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = DOCTOR)]
pub(crate) struct Doctor {}
