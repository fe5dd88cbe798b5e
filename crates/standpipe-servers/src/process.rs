//! A process that ends with its value, and also when our own process dies without a word.
//!
//! A shell becomes the program, so its number is the program's. Before that it leaves a watcher
//! that reads from a pipe whose other end only we hold: when that closes, for whatever reason, the
//! watcher kills the program. If we closed it without a word, because we died, it also removes the
//! program's directory. It in turn holds a pipe to us, so that the program's number is given back
//! to the system only when the watcher is gone and can no longer kill a stranger.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

const WATCHED: &str = r#"
directory=$1 output=$2
shift 2
exec 3<&0
{
    if read -r line <&3; then kill -9 $$; else kill -9 $$; rm -rf "$directory"; fi
} &
exec "$@" </dev/null >>"$output" 2>&1 3<&-
"#;

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts `words`, a program and its arguments; what it says is added to the file.
    pub(crate) fn start(words: &[String], directory: &Path, output: &Path) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", WATCHED, "sh"]).args([directory, output]).args(words);
        match shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
            Ok(child) => Self { child },
            Err(error) => panic!("cannot start `sh`, which starts {words:?}: {error}"),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended. An ended one keeps its number until it is killed here.
    pub(crate) fn runs(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Err(error) = kill_process(Pid::from_child(&self.child), signal) {
            panic!("cannot send {signal:?} to process {}: {error}", self.id());
        }
    }

    /// Ends it at once, whatever it is doing, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        if let Some(mut word) = self.child.stdin.take() {
            let _ = word.write_all(b"killed\n");
        }
        if let Some(mut watcher) = self.child.stdout.take() {
            let _ = watcher.read_to_end(&mut Vec::new());
        }
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
