//! Running a program with its output kept and its time bounded.
//!
//! Output goes to files rather than pipes: a grandchild that outlives its parent can then keep
//! nobody waiting, and nothing has to be read while the program runs.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::context::Context;

/// A program that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    /// It ended by itself and said that all is well.
    pub(crate) ok: bool,
    /// It was ended because its time was up.
    pub(crate) timed_out: bool,
    /// What it wrote: both streams in order, or only the second if they were kept apart.
    pub(crate) output: String,
    /// What it wrote to the first stream, if they were kept apart.
    pub(crate) data: String,
}

/// How long a program may take that only builds or checks something. A bound at all, so that a
/// hanging build ends with a message; far above what the slowest machine needs.
pub(crate) const BUILD: Duration = Duration::from_secs(3_600);

impl Context {
    /// Runs a program to its end and keeps both streams together.
    pub(crate) fn run(&self, command: &mut Command, bound: Duration) -> Result<Finished, String> {
        let (both, path) = self.scratch()?;
        let first = both.try_clone().map_err(|error| format!("no second handle: {error}"))?;
        let (ok, timed_out) = wait(command.stdout(first).stderr(both), bound)?;
        Ok(Finished { ok, timed_out, output: take(&path), data: String::new() })
    }

    /// Runs a program to its end and keeps the first stream, its data, apart from the second.
    pub(crate) fn run_apart(
        &self,
        command: &mut Command,
        bound: Duration,
    ) -> Result<Finished, String> {
        let (first, data) = self.scratch()?;
        let (second, talk) = self.scratch()?;
        let (ok, timed_out) = wait(command.stdout(first).stderr(second), bound)?;
        Ok(Finished { ok, timed_out, output: take(&talk), data: take(&data) })
    }

    /// Runs a program whose output is for whoever sits in front of it.
    pub(crate) fn show(&self, command: &mut Command) -> Result<bool, String> {
        let status = command.status().map_err(|error| cannot_start(command, &error))?;
        Ok(status.success())
    }

    fn scratch(&self) -> Result<(File, PathBuf), String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = self.target.join("xtask-output");
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("{}-{number}.txt", std::process::id()));
        let made = std::fs::create_dir_all(&directory).and_then(|()| File::create(&path));
        let file = made.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok((file, path))
    }
}

fn wait(command: &mut Command, bound: Duration) -> Result<(bool, bool), String> {
    let mut child =
        command.stdin(Stdio::null()).spawn().map_err(|error| cannot_start(command, &error))?;
    let began = Instant::now();
    loop {
        let status = child.try_wait().map_err(|error| cannot_start(command, &error))?;
        if let Some(status) = status {
            return Ok((ExitStatus::success(&status), false));
        }
        if began.elapsed() > bound {
            end(&mut child);
            return Ok((false, true));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn end(child: &mut Child) {
    // Either may fail because it has just ended by itself, which is as good.
    let _ = child.kill();
    let _ = child.wait();
}

fn take(path: &PathBuf) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    format!("cannot run `{}`: {error}", command.get_program().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context {
        let target = std::env::temp_dir().join("standpipe-xtask-tests");
        Context::new(std::env::temp_dir(), target)
    }

    #[test]
    fn both_streams_and_the_code_come_back() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; exit 3"]);
        let together = context().run(&mut command, BUILD).unwrap();
        assert!(!together.ok && !together.timed_out);
        assert_eq!(together.output, "one\ntwo\n");
        let apart = context().run_apart(&mut command, BUILD).unwrap();
        assert_eq!((apart.data.as_str(), apart.output.as_str()), ("one\n", "two\n"));
    }

    #[test]
    fn one_that_hangs_is_ended() {
        let mut command = Command::new("sleep");
        let finished = context().run(command.arg("60"), Duration::from_millis(20)).unwrap();
        assert!(finished.timed_out && !finished.ok);
    }

    #[test]
    fn one_that_does_not_exist_is_named() {
        let mut command = Command::new("no-such-program-here");
        let error = context().run(&mut command, BUILD).unwrap_err();
        assert!(error.contains("no-such-program-here"), "{error}");
    }
}
