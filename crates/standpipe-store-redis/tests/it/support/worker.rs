//! This test binary once more, as another process that plays a part.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A process that plays a part.
pub(crate) struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// `part` is the name of a test that does nothing unless it is told to play.
    pub(crate) fn start(part: &str, url: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", part, "--nocapture", "--test-threads=1"]);
        command.env(URL, url).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let input = child.stdin.take();
        Self { child, input, output }
    }

    /// The next line that says something to us.
    pub(crate) fn says(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some((_, said)) = line.trim_end().split_once("> ") {
                return Some(said.to_owned());
            }
        }
    }

    pub(crate) fn tell(&mut self, what: &str) {
        writeln!(self.input.as_mut().unwrap(), "{what}").unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until it has ended well.
    pub(crate) fn ends(mut self) {
        self.input = None;
        while self.says().is_some() {}
        assert!(self.child.wait().unwrap().success(), "a worker failed");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Only one whose test failed is still there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server that a worker is to use, if this process is one.
pub(crate) fn told_to_play() -> Option<String> {
    std::env::var(URL).ok()
}

/// What a worker was told beside.
pub(crate) fn told(variable: &str) -> u64 {
    std::env::var(variable).unwrap().parse().unwrap()
}

/// Says something to the test that started this process.
pub(crate) fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "\n> {what}");
    let _ = out.flush();
}

/// The next thing the test says; none when it is through with us.
pub(crate) fn hear() -> Option<String> {
    let mut line = String::new();
    let length = std::io::stdin().lock().read_line(&mut line).unwrap();
    (length > 0).then(|| line.trim_end().to_owned())
}

const URL: &str = "STANDPIPE_TEST_WORKER";
