//! The flags of `run` and `env`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use standpipe::{AgentName, Priority};

use super::parse;

const RUN: &str = "\
Examples:
  # Every SDK in it goes through the tap, with no change to the program
  standpipe run -- python my_agent.py

  # Named, so that status, top and the dashboard tell agents apart
  standpipe run --as blog --priority background -- claude -p 'write the post'
";

const RUN_AFTER: &str = "\
It starts a daemon if none runs and sets the variables that `standpipe env` prints: base URLs of
Anthropic, OpenAI, Gemini, Groq, Mistral, OpenRouter, GitHub and of the providers in the file. API
keys stay where they are; the proxy passes them on. Switch off the SDK's own retries where there is
no variable for it (max_retries=0): the proxy waits and retries. Signals are forwarded and the
command's exit code is passed through.";

/// The identity that calls carry.
#[derive(Debug, Args)]
pub(crate) struct Identity {
    /// The calling agent [default: $STANDPIPE_AGENT, else the name of the program that is run, or
    /// of its script; for `env` that of the calling program]
    #[arg(long = "as", value_name = "AGENT", value_parser = parse::agent)]
    pub(crate) agent: Option<AgentName>,
    /// The priority [default: $STANDPIPE_PRIORITY, else the agent's own, else standard]
    #[arg(long, value_parser = parse::priority())]
    pub(crate) priority: Option<Priority>,
}

/// Run a program whose API calls go through the proxy
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = RUN, after_help = RUN_AFTER)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) identity: Identity,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

const ENV: &str = "\
Examples:
  eval \"$(standpipe env --as blog)\"
  standpipe env --format dotenv > .env
  docker run --network host --env-file <(standpipe env --format dotenv) my-image
";

/// Print the variables that send a program's API calls through the proxy
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = ENV)]
pub(crate) struct Env {
    #[command(flatten)]
    pub(crate) identity: Identity,
    /// The form of the lines
    #[arg(long, value_name = "FORMAT", default_value = "shell")]
    pub(crate) format: EnvFormat,
}

/// The form of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnvFormat {
    /// `export NAME='value'`
    Shell,
    /// `NAME=value`, for .env files and docker
    Dotenv,
}
