//! The flags of `hold`.

use std::ffi::OsString;

use clap::Args;

use super::call::{Admission, Call, CallLabels};
use crate::process::tee::LinePattern;

const EXAMPLES: &str = "\
Examples:
  # At most two at once; others wait in a queue
  standpipe hold my/slots --limit parallel=2 -- ./build.sh

  # Six a minute, shared by all processes of this machine
  standpipe hold web/example --limit requests=6/min -- curl -sO https://example.com/

  # Only if it is free now: 75 otherwise, here turned into 0
  standpipe hold my/backup --limit parallel=1 --timeout 0 --busy-exit 0 -- ./backup.sh

  # A simple task goes where the file's [route] sends it
  standpipe hold anthropic/sonnet --task classify --model claude-haiku -- ./classify.sh

  # A slot of the model and one of the shared search, all or none
  standpipe hold anthropic/sonnet --also shared/search -- ./research.sh

  # A program that handles its 429s itself: a matching line pauses the pool
  standpipe hold github/core --throttled-match '(?i)rate limit' -- gh api /user
  standpipe hold claude/max --limit parallel=2 --throttled-match auto -- ./with-claude.sh
";

const AFTER: &str = "\
The command's own exit code is passed through, or 128 + n when signal n killed it. Signals are
forwarded to the command. When `hold` itself is killed, its slot is free at once; on Linux the
command dies with it. 127: no such command, 126: it cannot be executed; nothing was reserved.

A throttled command settles its lease as refused, and the pool pauses for every caller; its exit
code is passed through all the same. With --throttled-match its standard error is a pipe. If
the line states when the limit resets (`resets 3pm (Europe/Paris)`, `try again in 5 minutes`), the
pause lasts until then. A message is ignored, and the pool does not pause, if the reset it states
has passed, or if the ledger has seen the limit reset since and it has room.";

/// Run a command while holding a lease on a pool
#[derive(Debug, Args)]
#[command(help_template = super::PAGE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Hold {
    #[command(flatten)]
    pub(crate) call: Call,
    #[command(flatten)]
    pub(crate) work: CallLabels,
    #[command(flatten)]
    pub(crate) admission: Admission,
    /// The exit code when it is not admitted in time, instead of 75
    #[arg(long, value_name = "CODE")]
    pub(crate) busy_exit: Option<u8>,
    /// The command was throttled if it ends with this code; may be given several times
    #[arg(long, value_name = "CODE")]
    pub(crate) throttled_exit: Vec<u8>,
    /// The command was throttled if a line of its standard error matches; a group named `wait` is
    /// how long to wait. `auto` matches the messages of claude, codex, copilot and gh
    #[arg(long, value_name = "REGEX", value_parser = super::parse::pattern)]
    pub(crate) throttled_match: Option<LinePattern>,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
