//! The flags of `hold`.

use std::ffi::OsString;

use clap::Args;

use super::call::{Admission, Call, CallLabels};
use crate::process::tee::LinePattern;

const EXAMPLES: &str = "\
Examples:
  # At most two run at once; others wait in a queue
  standpipe hold my/slots --limit parallel=2 -- ./build.sh

  # A limit of six calls a minute, shared by all processes of this machine; it admits four, which
  # leaves a margin of at least 20 % in whole calls
  standpipe hold web/example --limit requests=6/min -- curl -sO https://example.com/

  # Run only if a slot is free now; if not, exit with 0 instead of 75
  standpipe hold my/backup --limit parallel=1 --timeout 0 --busy-exit 0 -- ./backup.sh

  # Use the pool that [route] in the file names for this task
  standpipe hold anthropic/sonnet --task classify --model claude-haiku -- ./classify.sh

  # Draw on two pools; the call is admitted on both or on none
  standpipe hold anthropic/sonnet --also shared/search -- ./research.sh

  # For a program that handles its 429s itself: a matching line pauses the pool
  standpipe hold github/core --throttled-match '(?i)rate limit' -- gh api /user
  standpipe hold claude/max --limit parallel=2 --throttled-match auto -- ./with-claude.sh
";

const AFTER: &str = "\
`hold` returns the command's exit code, or 128 + n if signal n killed it. It forwards signals to the
command. If `hold` is killed, its slot is free at once; on Linux the command is killed too. If the
command does not exist (127) or cannot be executed (126), nothing is reserved.

If the command was throttled, its lease is settled as refused and the pool pauses for every caller;
`hold` still returns the command's exit code. With --throttled-match the command's standard error is
a pipe. If the line states when the limit resets (`resets 3pm (Europe/Paris)`, `try again in 5
minutes`), the pause lasts until then. `hold` ignores a message if the reset that it states has
passed, or if the limit has reset since then and has room.";

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
    #[arg(long, value_name = "CODE", value_parser = super::parse::exit_code)]
    pub(crate) busy_exit: Option<u8>,
    /// The command was throttled if it ends with this code; may be given several times
    #[arg(long, value_name = "CODE", value_parser = super::parse::exit_code)]
    pub(crate) throttled_exit: Vec<u8>,
    /// The command was throttled if a line of its standard error matches; a group named `wait` is
    /// how long to wait. `auto` matches the messages of claude, codex, copilot and gh
    #[arg(long, value_name = "REGEX", value_parser = super::parse::pattern)]
    pub(crate) throttled_match: Option<LinePattern>,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
