//! The flags of `store`.

use clap::{Args, Subcommand};
use standpipe::{PoolName, StoreUrl};

use super::parse;

const STORE: &str = "\
Examples:
  standpipe store ping
  standpipe store dump my/slots
  standpipe store reset my/slots --yes
";

/// Operate the ledger's store: ping, dump, reset, upgrade, move
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = STORE, disable_help_subcommand = true)]
pub(crate) struct Store {
    #[command(subcommand)]
    pub(crate) act: StoreCommand,
}

/// An operation on the store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Check that the store responds, and count its pools
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
  standpipe store dump > ledger.json
";

/// Print the state of a pool, or of all, as JSON
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = DUMP)]
pub(crate) struct Dump {
    /// Only this pool
    #[arg(value_parser = parse::any_pool)]
    pub(crate) pool: Option<PoolName>,
}

const RESET: &str = "\
Examples:
  standpipe store reset my/slots --yes
";

/// Delete a pool: its recorded use, leases and tickets
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = RESET)]
pub(crate) struct Reset {
    /// The pool
    #[arg(value_parser = parse::any_pool)]
    pub(crate) pool: PoolName,
    /// Confirm the reset
    #[arg(long)]
    pub(crate) yes: bool,
}

const UPGRADE: &str = "\
Examples:
  standpipe store upgrade
";

/// Upgrade pools that an older version wrote
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = UPGRADE)]
pub(crate) struct Upgrade {
    /// Only this pool
    #[arg(value_parser = parse::any_pool)]
    pub(crate) pool: Option<PoolName>,
}

const MOVE: &str = "\
Examples:
  standpipe store move --to file:/var/lib/standpipe --yes
  standpipe store move my/slots --to file:/var/lib/standpipe --yes
";

/// Move unused pools to another store
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = MOVE)]
pub(crate) struct Move {
    /// Only this pool
    #[arg(value_parser = parse::any_pool)]
    pub(crate) pool: Option<PoolName>,
    /// The target store
    #[arg(long, value_name = "URL", value_parser = parse::store)]
    pub(crate) to: StoreUrl,
    /// Confirm the move
    #[arg(long)]
    pub(crate) yes: bool,
}
