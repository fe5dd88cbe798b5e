//! The flags of `config` and `completions`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::Shell;

const CONFIG: &str = "\
Examples:
  standpipe config init           # write a commented file
  standpipe config check          # all errors at once
  standpipe config show --origin  # the effective values and where they come from
";

/// Work with the configuration file: init, check, show, schema
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = CONFIG, disable_help_subcommand = true)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) act: ConfigCommand,
}

/// An operation on the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
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
  standpipe config init --for anthropic --for github
  standpipe config init ./standpipe.toml
";

/// Write a short, commented file with the pools and limits in use
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = INIT)]
pub(crate) struct Init {
    /// The file [default: the user's configuration file]
    pub(crate) file: Option<PathBuf>,
    /// Describe the pools of this provider, also in an existing file; may be given several times
    #[arg(long = "for", value_name = "PROVIDER")]
    pub(crate) providers: Vec<Provider>,
    /// Replace an existing file, which is kept as FILE.bak
    #[arg(long)]
    pub(crate) force: bool,
}

/// A provider with a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Provider {
    Anthropic,
    Openai,
    Github,
}

const CHECK: &str = "\
Examples:
  standpipe config check
  standpipe config check ./standpipe.toml
";

/// Report all errors of the file, with remedies
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = CHECK)]
pub(crate) struct Check {
    /// The file [default: the file in force]
    pub(crate) file: Option<PathBuf>,
}

const SHOW: &str = "\
Examples:
  standpipe config show
  standpipe config show --origin
";

/// Show the effective values, defaults included
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = SHOW)]
pub(crate) struct Show {
    /// Show where each value comes from
    #[arg(long)]
    pub(crate) origin: bool,
}

const COMPLETIONS: &str = "\
Examples:
  standpipe completions bash > ~/.local/share/bash-completion/completions/standpipe
  standpipe completions zsh > ~/.zfunc/_standpipe
  standpipe completions fish > ~/.config/fish/completions/standpipe.fish
";

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}
