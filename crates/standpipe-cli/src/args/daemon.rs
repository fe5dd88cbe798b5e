//! The daemon: `up` and `down`.

use std::net::SocketAddr;

use clap::Args;

const UP: &str = "\
Examples:
  standpipe up                          # here, until Ctrl-C
  standpipe up --detach                 # in the background; `standpipe down` stops it
  standpipe up --listen 127.0.0.1:9000
";

const UP_AFTER: &str = "\
It serves the HTTP API, the dashboard and metrics on 127.0.0.1:8377 and on a Unix socket in the
state directory. An address that others can reach needs a token: [server] token_file in the
configuration.
SIGHUP, or a change of standpipe.toml, reads the configuration again: all of it or nothing.";

/// Run the daemon: HTTP API, dashboard, metrics
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = UP, after_help = UP_AFTER)]
pub(crate) struct Up {
    /// The address to listen on [default: the file's, else 127.0.0.1:8377]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Go on in the background once it is ready
    #[arg(long)]
    pub(crate) detach: bool,
    /// The process that `--detach` starts
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub(crate) detached: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = "write an address and a port, for example 127.0.0.1:8377 or [::1]:8377";
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
