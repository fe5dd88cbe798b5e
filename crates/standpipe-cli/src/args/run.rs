//! The flags of `run` and `env`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use standpipe::{AgentName, Priority};

use super::parse;

const RUN: &str = "\
Examples:
  # Send every API call of a program through Standpipe, without a code change
  standpipe run -- python my_agent.py

  # With a name that status, top and the dashboard show
  standpipe run --as blog --priority background -- claude -p 'write the post'
";

const RUN_AFTER: &str = "\
`run` starts a daemon if none runs, and sets the variables that `standpipe env` prints: base URLs of
Anthropic, OpenAI, Gemini, Groq, Mistral, OpenRouter, GitHub and of the providers in the file. API
keys need no change; the proxy forwards them. Switch off the SDK's own retries (max_retries=0) if no
variable does so: the proxy retries. `run` forwards signals and returns the command's exit code.";

/// The identity that calls carry.
#[derive(Debug, Args)]
pub(crate) struct Identity {
    /// The calling agent [default: $STANDPIPE_AGENT, else the name of COMMAND or of its script]
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

const ENV_AGENT: &str =
    "The calling agent [default: $STANDPIPE_AGENT, else the calling program or script]";

/// Print the variables that send a program's API calls through the proxy
#[derive(Debug, Args)]
#[command(
    help_template = super::PAGE,
    before_help = ENV,
    mut_arg("agent", |agent| agent.help(ENV_AGENT))
)]
pub(crate) struct Env {
    #[command(flatten)]
    pub(crate) identity: Identity,
    /// The format of the lines
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
