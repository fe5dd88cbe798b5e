//! The usual: `config`, `completions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

const CONFIG: &str = "\
Examples:
  standpipe config init           # write a file to begin with
  standpipe config check          # all that is wrong with it, at once
  standpipe config show --origin  # what is in force, and where it comes from
";

/// The configuration file: init, check, show, schema
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = CONFIG, disable_help_subcommand = true)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) act: ConfigAct,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAct {
    Init(Init),
    Check(Check),
    Show(Show),
    /// Print the JSON Schema of the file, for editors
    #[command(
        help_template = super::PAGE,
        before_help = "Examples:\n  standpipe config schema > standpipe.schema.json\n"
    )]
    Schema,
}

const INIT: &str = "\
Examples:
  standpipe config init
  standpipe config init ./standpipe.toml
";

/// Write a short, commented file to begin with
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = INIT)]
pub(crate) struct Init {
    /// Where [default: where it is looked for]
    pub(crate) file: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

const CHECK: &str = "\
Examples:
  standpipe config check
  standpipe config check ./standpipe.toml
";

/// Say all that is wrong with the file, and what to do
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = CHECK)]
pub(crate) struct Check {
    /// Which file [default: the one that would be used]
    pub(crate) file: Option<PathBuf>,
}

const SHOW: &str = "\
Examples:
  standpipe config show
  standpipe config show --origin
";

/// Show what is in force, defaults included
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = SHOW)]
pub(crate) struct Show {
    /// Say of each value where it comes from
    #[arg(long)]
    pub(crate) origin: bool,
}

const COMPLETIONS: &str = "\
Examples:
  standpipe completions bash > ~/.local/share/bash-completion/completions/standpipe
  standpipe completions zsh > ~/.zfunc/_standpipe
  standpipe completions fish > ~/.config/fish/completions/standpipe.fish
";

/// Print what a shell needs to complete commands and flags
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = COMPLETIONS)]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: Shell,
}
