//! The flags of `up` and `down`.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};

const UP: &str = "\
Examples:
  standpipe up                          # in the foreground, until Ctrl-C
  standpipe up --detach                 # in the background; `standpipe down` stops it
  standpipe up --listen 127.0.0.1:9000
  standpipe up --log-format json --log-level debug
";

const UP_AFTER: &str = "\
It serves the HTTP API, the dashboard and metrics on 127.0.0.1:8377 and on a Unix socket in the
state directory. An address that other machines can reach needs a token: [server] token_file in the
configuration.
SIGHUP, or a change of standpipe.toml, reloads the configuration; an invalid file changes nothing.";

/// Run the daemon: HTTP API, proxy, dashboard, metrics
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = UP, after_help = UP_AFTER)]
pub(crate) struct Up {
    /// The address to listen on [default: the file's, else 127.0.0.1:8377]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// The format of the log on stderr [default: human, with --json json]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// The minimum level of messages that are logged
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: LogLevel,
    /// Run in the background; returns when the daemon is ready
    #[arg(long)]
    pub(crate) detach: bool,
    /// The process that `--detach` starts
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub(crate) detached: bool,
}

/// The format of the daemon's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Human,
    Json,
}

/// The levels of the daemon's log, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = "not an address with a port; write for example 127.0.0.1:8377 or [::1]:8377";
    text.parse().map_err(|_| wrong.to_owned())
}

const DOWN: &str = "\
Examples:
  standpipe down
";

/// Stop the daemon of this state directory
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = DOWN)]
pub(crate) struct Down {}
