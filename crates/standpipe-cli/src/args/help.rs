//! The flags of `help`.

use clap::Args;

const HELP: &str = "\
Examples:
  standpipe help hold
  standpipe help config init
  standpipe help errors
";

/// Explain a command, or `help errors`: every reason and exit code
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = HELP)]
pub(crate) struct Help {
    /// A command, or `errors`
    #[arg(value_name = "COMMAND")]
    pub(crate) topic: Vec<String>,
}
