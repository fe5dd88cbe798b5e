//! A daemon that runs in a process of its own, for the tests of the server and those of the command
//! line. How it is started is in `running`.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Answer, Client, Sse, until};

/// A daemon that is ready. Dropped, it is killed.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) socket: PathBuf,
    /// What it said when it was ready.
    pub(crate) said: Value,
    log: Arc<Mutex<String>>,
}

impl Daemon {
    /// Runs a command that prints a line of JSON when the daemon is ready.
    #[track_caller]
    pub(crate) fn ready(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, kept) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&log));
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut log = kept.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        // If the daemon is a test program, lines of the test harness come before.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said = lines.find_map(|line| serde_json::from_str::<Value>(&line).ok());
        let said = said.unwrap_or_else(|| panic!("never ready: {}", log.lock().unwrap()));
        // The harness writes its result at the end, which must not fail.
        std::thread::spawn(move || lines.for_each(drop));
        let url = said["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let socket = PathBuf::from(said["socket"].as_str().unwrap());
        Self { child, address: url.parse().unwrap(), socket, said, log }
    }

    pub(crate) fn tcp(&self) -> Client {
        Client::tcp(self.address)
    }

    pub(crate) fn unix(&self) -> Client {
        Client::unix(&self.socket)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.tcp().get(path)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.tcp().post(path, body)
    }

    /// A request with headers of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
        let mut client = self.tcp();
        client.start(method, path, headers, body);
        client.answer()
    }

    /// A call that asks, and is answered.
    pub(crate) fn reserve(&self, body: &Value) -> Answer {
        self.post("/v1/leases", body)
    }

    /// A call that asks and waits: its connection.
    pub(crate) fn begin(&self, body: &Value) -> Client {
        let mut client = self.tcp();
        client.start_json("/v1/leases", body);
        client
    }

    pub(crate) fn settle(&self, lease: &str, how: &str) -> Answer {
        self.tcp().post(&format!("/v1/leases/{lease}/{how}"), &serde_json::json!({}))
    }

    /// A pool, as the daemon shows it.
    #[track_caller]
    pub(crate) fn pool(&self, name: &str) -> Value {
        self.get(&format!("/v1/pools?pool={name}")).ok(200)["pools"][0].clone()
    }

    pub(crate) fn stream(&self, path: &str, headers: &[&str]) -> Sse {
        Sse::open(self.tcp(), path, headers)
    }

    /// The first event of a kind, once it is written down.
    #[track_caller]
    pub(crate) fn until_event(&self, kind: &str) -> Value {
        until(&format!("an event `{kind}` is written"), || {
            let page = self.get(&format!("/v1/events?kind={kind}")).ok(200);
            page["events"].as_array().unwrap().first().cloned()
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops the process and waits until each of its threads is stopped: until then a thread may
    /// still answer.
    pub(crate) fn suspend(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.pid());
        let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
            stat.rsplit(") ").next().unwrap().starts_with('T')
        };
        until("all threads of the daemon are stopped", || {
            std::fs::read_dir(&tasks).unwrap().all(is_stopped).then_some(())
        });
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until it has said this.
    #[track_caller]
    pub(crate) fn until_said(&self, words: &str) {
        until(&format!("the daemon says `{words}`"), || self.log().contains(words).then_some(()));
    }

    /// Tells it to stop, and waits for that.
    pub(crate) fn stop(self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ended()
    }

    pub(crate) fn ended(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// How many bytes of memory it has, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let _shown = std::io::Write::write_all(&mut std::io::stderr(), log.as_bytes());
        }
    }
}
