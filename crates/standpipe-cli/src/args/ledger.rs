//! `store`: operating the ledger.

use clap::{Args, Subcommand};
use standpipe::{PoolName, StoreUrl};

use super::parse;

const STORE: &str = "\
Examples:
  standpipe store ping
  standpipe store dump my/slots
  standpipe store reset my/slots --yes
";

/// Operate the ledger: ping, dump, reset, upgrade, move
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = STORE, disable_help_subcommand = true)]
pub(crate) struct Store {
    #[command(subcommand)]
    pub(crate) act: StoreAct,
}

/// What to do with the ledger.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreAct {
    /// Whether the store answers, where it is, and which pools it has
    #[command(help_template = super::PAGE, before_help = "Examples:\n  standpipe store ping\n")]
    Ping,
    Dump(Dump),
    Reset(Reset),
    Upgrade(Upgrade),
    Move(Move),
}

const DUMP: &str = "\
Examples:
  standpipe store dump my/slots
  standpipe store dump --json > ledger.json
";

/// Print all that the ledger knows of a pool, or of all
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = DUMP)]
pub(crate) struct Dump {
    /// Only this pool
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: Option<PoolName>,
}

const RESET: &str = "\
Examples:
  standpipe store reset my/slots --yes
";

/// Forget a pool: what was used, who holds, who waits
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = RESET)]
pub(crate) struct Reset {
    /// Which pool
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: PoolName,
    /// Yes, forget it
    #[arg(long)]
    pub(crate) yes: bool,
}

const UPGRADE: &str = "\
Examples:
  standpipe store upgrade
";

/// Bring pools written by an older version to this one
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = UPGRADE)]
pub(crate) struct Upgrade {
    /// Only this pool
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: Option<PoolName>,
}

const MOVE: &str = "\
Examples:
  standpipe store move --to file:/var/lib/standpipe --yes
  standpipe store move my/slots --to file:/var/lib/standpipe --yes
";

/// Move pools that nobody uses to another store
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = MOVE)]
pub(crate) struct Move {
    /// Only this pool
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: Option<PoolName>,
    /// Where to
    #[arg(long, value_name = "URL", value_parser = parse::store)]
    pub(crate) to: StoreUrl,
    /// Yes, move them
    #[arg(long)]
    pub(crate) yes: bool,
}
