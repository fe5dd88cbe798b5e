//! One server: started, asked, killed, and started again where it was.

use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::client::Client;
use crate::options::{ADMINISTRATOR, Options, SOCKET, USERS};
use crate::port::Port;
use crate::process::Process;
use crate::scratch::Scratch;
use crate::until::{PATIENCE, until};
use crate::{clock, namespace, programs, tls};

/// A server process of a test's own. It ends with this value.
///
/// Its test talks to it beside the network, through a socket in its directory, so that
/// [`Server::run`] works whatever the port demands and whatever became of the network.
#[derive(Debug)]
pub struct Server {
    process: Option<Process>,
    words: Vec<String>,
    options: Options,
    host: String,
    port: Port,
    ca_file: PathBuf,
    // Last: everything else lives in it.
    scratch: Scratch,
}

/// What makes a server more than one server alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Role {
    /// It is a sentinel.
    pub(crate) sentinel: bool,
    /// More lines of its configuration.
    pub(crate) lines: Vec<String>,
}

impl Server {
    /// A Redis that keeps nothing, ready when this returns.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(Options::default())
    }

    /// A server as told, ready when this returns.
    #[must_use]
    pub fn start_with(options: Options) -> Self {
        Self::start_as(options, &Role::default())
    }

    pub(crate) fn start_as(options: Options, role: &Role) -> Self {
        // A port is taken only by a program that ignores that we hold it; a second one will do.
        let tries = 5;
        for _ in 1..tries {
            match Self::try_start(options.clone(), role) {
                Err(log) if log.contains("Address already in use") => {}
                Ok(server) => return server,
                Err(log) => panic!("{log}"),
            }
        }
        match Self::try_start(options, role) {
            Ok(server) => server,
            Err(log) => panic!("{tries} ports were taken at last:\n{log}"),
        }
    }

    fn try_start(options: Options, role: &Role) -> Result<Self, String> {
        let (scratch, port) = (Scratch::new(), Port::new());
        let program = programs::server(options.flavour, &scratch);
        let inside = options.namespace.as_deref().map(namespace::address_in);
        let host = inside.unwrap_or_else(|| "127.0.0.1".into());
        let mut lines = match role.sentinel {
            true => options.sentinel_lines(scratch.path()),
            false => options.lines(scratch.path()),
        };
        lines.push(format!("bind {host}"));
        if options.tls {
            lines.extend(["port 0".into(), format!("tls-port {}", port.number())]);
            lines.extend(tls::make(&scratch, &host));
        } else {
            lines.push(format!("port {}", port.number()));
        }
        lines.extend_from_slice(&role.lines);
        if let Some(users) = options.users() {
            scratch.write(USERS, &users);
        }
        let configuration = scratch.write("server.conf", &(lines.join("\n") + "\n"));
        let mut words = Vec::new();
        if let Some(namespace) = &options.namespace {
            let ip = programs::needed("ip").display().to_string();
            words.extend([ip, "netns".into(), "exec".into(), namespace.clone()]);
        }
        if options.movable_clock {
            words.extend(clock::words(options.flavour, &scratch));
        }
        words.extend([program, configuration].map(|path| path.display().to_string()));
        words.extend(role.sentinel.then(|| "--sentinel".to_owned()));
        words.extend_from_slice(&options.args);
        let ca_file = tls::ca_file(&scratch);
        let mut server = Self { process: None, words, options, host, port, ca_file, scratch };
        server.launch()?;
        Ok(server)
    }

    /// Starts the process and waits until it answers.
    fn launch(&mut self) -> Result<(), String> {
        // Of the one before; its mere presence says nothing about the new one.
        let _ = std::fs::remove_file(self.scratch.join(SOCKET));
        let process = Process::start(&self.words, self.scratch.path(), &self.log_file());
        let answered = until(PATIENCE, || match self.try_run(&["PING"]) {
            Ok(_) => Some(true),
            // It is there, and busy with its data.
            Err(_) if process.runs() => None,
            Err(_) => Some(false),
        });
        self.process = Some(process);
        match answered {
            Some(true) => Ok(()),
            Some(false) => Err(format!("{:?} ended:\n{}", self.words, self.log())),
            None => Err(format!("{:?} answers no PING:\n{}", self.words, self.log())),
        }
    }

    /// The port on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Where it listens, as `127.0.0.1:6379`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port())
    }

    /// How a client names it: `redis://127.0.0.1:6379`, with TLS `rediss://localhost:6379`.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(&self.host, self.port())
    }

    /// The same with another way to it.
    pub(crate) fn url_at(&self, host: &str, port: u16) -> String {
        match (self.options.tls, host) {
            (false, _) => format!("redis://{host}:{port}"),
            (true, "127.0.0.1") => format!("rediss://localhost:{port}"),
            (true, _) => format!("rediss://{host}:{port}"),
        }
    }

    /// The certificate with which the server's own is checked.
    #[must_use]
    pub fn ca_file(&self) -> &Path {
        assert!(self.options.tls, "only a server with TLS has certificates");
        &self.ca_file
    }

    /// Where its files are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// The number of its process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.running().id()
    }

    /// Runs a command with all rights, and answers the reply as text; see [`Client::run`]. An
    /// error reply is a panic.
    pub fn run(&self, words: &[&str]) -> String {
        match self.try_run(words) {
            Ok(reply) => reply,
            Err(error) => panic!("{words:?}: {error}\n{}", self.log()),
        }
    }

    /// The same when the reply may be an error.
    ///
    /// # Errors
    /// What the server refused with; or that it does not answer.
    pub fn try_run(&self, words: &[&str]) -> Result<String, String> {
        let mut client = Client::connect_to_socket(&self.scratch.join(SOCKET))?;
        client.run(&["AUTH", ADMINISTRATOR, "none"])?;
        client.run(words)
    }

    /// One line of `INFO`, as `role` or `redis_version`.
    #[must_use]
    pub fn info(&self, field: &str) -> Option<String> {
        let info = self.try_run(&["INFO"]).ok()?;
        let mut lines = info.lines().filter_map(|line| line.trim_end().split_once(':'));
        lines.find_map(|(name, value)| (name == field).then(|| value.to_owned()))
    }

    /// Ends it as a power cut would, without a word to it, and waits until it is gone.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Ends it as an administrator would. What is persistent is kept.
    pub fn stop(&mut self) {
        let how = if self.options.persistent { "SAVE" } else { "NOSAVE" };
        // No answer is the good one.
        if let Err(error) = self.try_run(&["SHUTDOWN", how])
            && !error.starts_with("no answer")
        {
            panic!("SHUTDOWN {how}: {error}\n{}", self.log());
        }
        if until(PATIENCE, || (!self.running().runs()).then_some(())).is_none() {
            panic!("it does not end after SHUTDOWN {how}:\n{}", self.log());
        }
        self.kill();
    }

    /// Starts it where it was: same port, same directory.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "it runs; kill it or stop it before");
        if let Err(log) = self.launch() {
            panic!("{log}");
        }
    }

    /// Freezes it: connections stay, nothing is answered.
    pub fn pause(&self) {
        self.running().signal(Signal::STOP);
    }

    /// Lets it go on after [`Server::pause`].
    pub fn resume(&self) {
        self.running().signal(Signal::CONT);
    }

    /// Moves its clock, and leaves ours alone: `+30d`, `-2h`, `+0.5`, from now on.
    pub fn set_clock(&self, offset: &str) {
        assert!(self.options.movable_clock, "start it with `movable_clock`");
        clock::set(&self.scratch, offset);
    }

    /// What it wrote about itself, since its first start.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn log_file(&self) -> PathBuf {
        self.scratch.join("log")
    }

    fn running(&self) -> &Process {
        match &self.process {
            Some(process) => process,
            None => panic!("it does not run; start it again before"),
        }
    }
}
