//! A home directory for one test, and runs of the program in it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A directory with a state directory and an empty configuration directory, removed at the end.
pub(crate) struct Home {
    pub(crate) path: PathBuf,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A running program, with its output to read and its input to close.
pub(crate) struct Running {
    pub(crate) child: Child,
    out: BufReader<ChildStdout>,
}

impl Home {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-cli-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(path.join("config")).unwrap();
        Self { path }
    }

    /// Returns the program as a command, isolated from this machine's configuration.
    pub(crate) fn command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_standpipe"));
        for variable in [
            "STANDPIPE_CONFIG",
            "STANDPIPE_AGENT",
            "STANDPIPE_PRIORITY",
            "NO_COLOR",
            "COLUMNS",
            "LC_ALL",
        ] {
            command.env_remove(variable);
        }
        command
            .args(args)
            .env("HOME", &self.path)
            .env("XDG_CONFIG_HOME", self.path.join("config"))
            .env("STANDPIPE_HOME", self.path.join("state"))
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .current_dir(&self.path)
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Ran {
        Ran::of(&self.command(args).output().unwrap())
    }

    /// Runs it by another program, such as `timeout 60` or a shell.
    pub(crate) fn run_by<'a>(
        &self,
        wrapper: &[&str],
        args: impl IntoIterator<Item = &'a str>,
    ) -> Ran {
        let ours = self.command(args);
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(ours.get_program()).args(ours.get_args());
        for (name, value) in ours.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Ran::of(&command.output().unwrap())
    }

    /// Starts it; its input stays open until it is closed.
    pub(crate) fn start<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Running {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { child, out }
    }

    /// Holds a slot of `my/slots`, of which there is one, until its input is closed.
    pub(crate) fn hold_the_slot(&self) -> Running {
        let script = "echo held; read -r line; exit 0";
        let limit = "parallel=1";
        let mut holder = self.start([
            "hold", "my/slots", "--as", "holder", "--limit", limit, "--", "sh", "-c", script,
        ]);
        assert_eq!(holder.line(), "held");
        holder
    }

    /// A pool as `status --json` shows it.
    pub(crate) fn status(&self, pool: &str) -> Value {
        let ran = self.run(["status", pool, "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.json()["pools"][0].clone()
    }

    /// Writes the configuration file.
    pub(crate) fn configure(&self, text: &str) -> PathBuf {
        let directory = self.path.join("config").join("standpipe");
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("standpipe.toml");
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Returns every file of the state directory with its bytes.
    pub(crate) fn state(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        collect(&self.path.join("state"), &mut found);
        found.sort();
        found
    }
}

fn collect(directory: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A test that failed half-way may still have children writing here.
        let _left = std::fs::remove_dir_all(&self.path);
    }
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// Returns the one object that was printed.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.out).unwrap_or_else(|error| {
            panic!("{error} in {self:?}");
        });
        assert_eq!(value["schema"], 1, "{self:?}");
        value
    }

    /// Asserts success and returns the output.
    #[track_caller]
    pub(crate) fn printed(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out.trim_end()
    }

    /// Asserts the exit code, and one error with at most one hint on stderr that contain every
    /// text.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32, says: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        let lines: Vec<&str> = self.err.lines().collect();
        assert!(matches!(lines.len(), 1 | 2), "an error and a hint: {self:?}");
        assert!(lines[0].starts_with("error: "), "{self:?}");
        assert!(lines[1..].iter().all(|line| line.starts_with("hint: ")), "{self:?}");
        for words in says {
            assert!(self.err.contains(words), "`{words}` is missing in {self:?}");
        }
    }
}

impl Running {
    /// The next line of its output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut said = String::new();
            self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("it ended without a line: {said}");
        }
        line.trim_end().to_owned()
    }

    /// Returns the rest of its output, when every process that could write it has ended.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        rest
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Stops the process, and returns when each of its threads is stopped.
    pub(crate) fn suspend(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
            stat.rsplit(") ").next().unwrap().starts_with('T')
        };
        while !std::fs::read_dir(&tasks).unwrap().all(is_stopped) {
            std::thread::yield_now();
        }
    }

    /// Closes its input and waits for it.
    pub(crate) fn end(mut self) -> Ran {
        drop(self.child.stdin.take());
        let out = self.rest();
        let mut ran = Ran::of(&self.child.wait_with_output().unwrap());
        ran.out = out;
        ran
    }
}
