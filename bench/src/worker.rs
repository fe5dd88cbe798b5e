//! Other processes that run pairs, and the lines they exchange with this one.
//!
//! A worker sends `ready`. For each line with a number of milliseconds it runs pairs for that time
//! and sends `pairs elapsed-ns p50-ns p99-ns failed`. It ends when its input is closed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A process that runs pairs on request.
pub(crate) struct Worker {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

/// What came of one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) pairs: u64,
    pub(crate) nanos: u64,
    /// The pair in the middle.
    pub(crate) p50: f64,
    /// One in a hundred takes longer.
    pub(crate) p99: f64,
    /// How many were tried and came to nothing.
    pub(crate) failed: u64,
}

impl Round {
    pub(crate) fn mean(&self) -> f64 {
        self.nanos as f64 / self.pairs.max(1) as f64
    }
}

impl Worker {
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let cannot = |error| format!("cannot start {:?}: {error}", command.get_program());
        let mut child = spawned.map_err(cannot)?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let from = BufReader::new(from.ok_or("a worker without an output")?);
        Ok(Self { child, to, from })
    }

    /// Waits until it has made itself ready.
    pub(crate) fn wait_ready(&mut self) -> Result<(), String> {
        match self.receive()?.as_str() {
            "ready" => Ok(()),
            other => Err(format!("a worker sent `{other}`")),
        }
    }

    pub(crate) fn send(&mut self, what: impl std::fmt::Display) -> Result<(), String> {
        let sent = self.to.as_mut().map(|to| writeln!(to, "{what}"));
        sent.ok_or("a worker without an input")?.map_err(|error| format!("a worker: {error}"))
    }

    pub(crate) fn receive(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(0) => Err("a worker ended early".to_owned()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(format!("a worker: {error}")),
        }
    }

    /// Starts a round; [`Worker::round`] receives its result.
    pub(crate) fn go(&mut self, time: Duration) -> Result<(), String> {
        self.send(time.as_millis())
    }

    pub(crate) fn round(&mut self) -> Result<Round, String> {
        let line = self.receive()?;
        let figures: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        match figures[..] {
            [pairs, nanos, p50, p99, failed] => {
                Ok(Round { pairs, nanos, p50: p50 as f64, p99: p99 as f64, failed })
            }
            _ => Err(format!("a worker sent `{line}`")),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.to = None;
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begun.elapsed() > Duration::from_secs(5) {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// This program once more, as a worker.
pub(crate) fn ourselves(kind: &str, place: &str) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("no program: {error}"))?;
    let mut command = Command::new(program);
    command.args(["worker", kind, place]);
    Ok(command)
}

/// The same command, kept on the first processor.
pub(crate) fn pinned(command: &Command) -> Command {
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", "0"]).arg(command.get_program()).args(command.get_args());
    pinned
}

/// The worker's side. `several` is how many pairs are timed together.
pub(crate) fn serve(mut pair: impl FnMut(), several: u32) -> Result<(), String> {
    for _ in 0..3 {
        pair();
    }
    send_line("ready")?;
    while let Some(millis) = next_line() {
        let time = Duration::from_millis(millis.parse().unwrap_or(0));
        let begun = Instant::now();
        let (mut took, mut last) = (Vec::with_capacity(1 << 16), Duration::ZERO);
        while last < time {
            for _ in 0..several {
                pair();
            }
            let now = begun.elapsed();
            took.push((now - last).as_nanos() / u128::from(several));
            last = now;
        }
        send_round(took.len() as u64 * u64::from(several), last, took)?;
    }
    Ok(())
}

/// The same for a step of which only a part counts: it answers how long that took.
pub(crate) fn serve_part(mut step: impl FnMut() -> Duration) -> Result<(), String> {
    for _ in 0..3 {
        step();
    }
    send_line("ready")?;
    while let Some(millis) = next_line() {
        let time = Duration::from_millis(millis.parse().unwrap_or(0));
        let begun = Instant::now();
        let (mut took, mut sum) = (Vec::with_capacity(1 << 16), Duration::ZERO);
        while begun.elapsed() < time {
            let part = step();
            took.push(part.as_nanos());
            sum += part;
        }
        send_round(took.len() as u64, sum, took)?;
    }
    Ok(())
}

/// What came of a round.
pub(crate) fn send_round(pairs: u64, time: Duration, mut took: Vec<u128>) -> Result<(), String> {
    took.sort_unstable();
    let at = |part: usize| took.get(took.len() * part / 100).copied().unwrap_or_default();
    send_line(&format!("{pairs} {} {} {} 0", time.as_nanos(), at(50), at(99)))
}

/// The next line of a worker's input.
pub(crate) fn next_line() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    (read.is_ok_and(|read| read > 0)).then(|| line.trim_end().to_owned())
}

/// Writes a line of a worker's output.
pub(crate) fn send_line(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(|error| format!("the output is closed: {error}"))
}

/// A path as an argument.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
