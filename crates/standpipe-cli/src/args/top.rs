//! The flags of `top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use standpipe::PoolName;

use super::parse;
use crate::daemon::Address;

const TOP: &str = "\
Examples:
  standpipe top
  standpipe top anthropic/sonnet --interval 500ms
  standpipe top --daemon http://127.0.0.1:8377
  standpipe top --daemon unix:/run/standpipe/standpipe.sock --token-file /etc/standpipe/token
";

const AFTER: &str = "\
Keys:
  up, down, j, k  select a row       s      change the sort order
  Tab, 1 to 6     another pane       /      filter; Esc shows all
  p               pause a pool       r      resume it
  x               settle a lease     space  freeze the view
  ?               all keys           q      quit";

/// The shortest and the longest interval.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));

/// Watch pools live: limits, calls in flight, the queue, agents, events
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = TOP, after_help = AFTER)]
pub(crate) struct Top {
    /// Only this pool
    #[arg(value_parser = parse::pool)]
    pub(crate) pool: Option<PoolName>,
    /// The refresh interval, 200ms to 1min
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Duration,
    /// Read from this daemon instead of the ledger: http://127.0.0.1:8377,
    /// unix:/path/standpipe.sock
    #[arg(long, value_name = "URL")]
    pub(crate) daemon: Option<Address>,
    /// The file with the daemon's token [default: the configuration's `token_file`]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

fn interval(text: &str) -> Result<Duration, String> {
    let length = parse::length(text).map_err(|error| error.to_string())?;
    let length = Duration::from_micros(length.0);
    match (INTERVALS.0..=INTERVALS.1).contains(&length) {
        true => Ok(length),
        false => Err("out of range; use 200ms to 1min".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_bounds() {
        assert_eq!(interval("200ms"), Ok(INTERVALS.0));
        assert_eq!(interval("1min"), Ok(INTERVALS.1));
        for text in ["0", "199ms", "61s", "-1s", "soon"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}
