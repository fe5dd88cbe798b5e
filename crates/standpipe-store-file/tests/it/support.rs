//! Helpers: temporary directories, participants, and other processes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use standpipe_core::{
    Action, AgentName, Amounts, Answer, Commit, Configure, Decision, Key, Limit, PoolConfig,
    Reserve, Rule, Source, Span,
};
use standpipe_store::layout::encode_state;
use standpipe_store::{Liveness, Participant, PoolName, Replica, Store};
use standpipe_store_file::{FileLog, FileStore, Options};

/// A temporary directory, removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-file-{}-{count}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// The same on a file system in memory, where there is one, for tests with thousands of files.
    pub(crate) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        let Self(path) = &Self::new();
        match path.file_name().filter(|_| memory.is_dir()) {
            Some(name) => Self(memory.join(name)),
            None => Self(path.clone()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn store(&self) -> FileStore {
        FileStore::open(&self.0).unwrap()
    }

    /// A store with a short lock timeout.
    pub(crate) fn hasty_store(&self) -> FileStore {
        let options = Options { lock_timeout: Duration::from_millis(50), ..Options::default() };
        FileStore::open_with(&self.0, options).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes bytes to the file that was first at a path and links that file there again: a file with
/// another inode would count as a copy.
pub(crate) fn write_to_the_first(path: &Path, bytes: &[u8]) {
    let first = path.with_extension("first");
    if !first.exists() {
        std::fs::hard_link(path, &first).unwrap();
    }
    let _missing = std::fs::remove_file(path);
    std::fs::write(&first, bytes).unwrap();
    std::fs::hard_link(&first, path).unwrap();
}

pub(crate) fn pool() -> PoolName {
    "test/pool".parse().unwrap()
}

pub(crate) fn member(store: &FileStore) -> Participant<FileLog> {
    let sessions = store.clone();
    Participant::new(store.pool_log(&pool()), move || sessions.begin_session().unwrap())
}

pub(crate) fn configure(limits: Vec<Limit>) -> Action {
    let config = PoolConfig::new(limits);
    Action::Configure(Box::new(Configure { source: Source::Code, config }))
}

pub(crate) fn parallel(amount: u64) -> Limit {
    Limit::new(Rule::Parallel { amount })
}

pub(crate) fn reserve() -> Reserve {
    Reserve::new(AgentName::new("test").unwrap(), Amounts::cost([]).unwrap())
}

pub(crate) fn commit(lease: Key) -> Action {
    Action::Commit(Commit { lease, used: Amounts::default(), progress: false, refused: false })
}

/// Reserves once, without waiting.
pub(crate) fn ask(member: &mut Participant<FileLog>) -> Decision {
    let outcomes = member.submit(vec![Action::from(reserve())]).unwrap();
    match &outcomes[0].answer {
        Answer::Decided(decision) => decision.clone(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn admitted(decision: &Decision) -> Option<Key> {
    match decision {
        Decision::Admit(grant) => Some(grant.lease),
        _ => None,
    }
}

/// Reserves and claims its ticket until admitted, by the machine's clock.
pub(crate) fn wait_for(member: &mut Participant<FileLog>, store: &FileStore) -> Key {
    let mut call = Reserve { patience: Span::secs(300), ..reserve() };
    loop {
        let outcomes = member.submit(vec![Action::from(call.clone())]).unwrap();
        match &outcomes[0].answer {
            Answer::Decided(Decision::Admit(grant)) => return grant.lease,
            Answer::Decided(Decision::Wait(hold)) => {
                call.ticket = Some(hold.ticket);
                let now = member.replica().now();
                let until = hold.refusal.until.map_or(Span::secs(1), |until| until.since(now));
                store.wait_for_wake(Duration::from_micros(until.0.clamp(1, 1_000_000)));
            }
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn lives(store: &FileStore, session: u64) -> bool {
    store.liveness(session) == Liveness::Alive
}

pub(crate) fn is_dead(store: &FileStore, session: u64) -> bool {
    store.liveness(session) == Liveness::Dead
}

/// Ends the sessions of dead processes, as a waiter does.
pub(crate) fn bury_the_dead(member: &mut Participant<FileLog>, store: &FileStore) {
    member.refresh().unwrap();
    let sessions: Vec<u64> = member.replica().state().facts().sessions.keys().copied().collect();
    let gone = sessions.into_iter().filter(|session| is_dead(store, *session));
    let ended: Vec<Action> = gone.map(|session| Action::SessionEnded { session }).collect();
    if !ended.is_empty() {
        member.submit(ended).unwrap();
    }
}

/// Returns the state as a new process reads it.
pub(crate) fn as_read_anew(store: &FileStore) -> Vec<u8> {
    let mut replica = Replica::new();
    replica.catch_up(&mut store.pool_log(&pool()), |_, _, _| ()).unwrap();
    replica.state().check().unwrap();
    encode_state(replica.state().facts())
}

/// Another process of this test binary, which runs one of its `worker` tests.
pub(crate) struct Worker {
    pub(crate) child: Child,
    pub(crate) out: BufReader<ChildStdout>,
}

impl Worker {
    /// `part` is the name of a test that does nothing unless it runs as a worker.
    pub(crate) fn start(part: &str, home: &Path, variables: &[(&str, &str)]) -> Self {
        Self::start_with(part, home, variables, Stdio::null())
    }

    pub(crate) fn start_with(
        part: &str,
        home: &Path,
        variables: &[(&str, &str)],
        stdin: Stdio,
    ) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", part, "--nocapture", "--test-threads=1"]);
        command.env(HOME, home).envs(variables.iter().copied());
        let mut child =
            command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next line that the worker printed for the test.
    pub(crate) fn says(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.out.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some((_, said)) = line.trim_end().split_once("> ") {
                return Some(said.to_owned());
            }
        }
    }

    /// Whether it has ended. Its output can still be read.
    pub(crate) fn is_through(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().try_into().unwrap()).unwrap();
        let _ = kill_process(pid, signal);
    }

    /// Kills it if it is alive, and waits until it is dead.
    pub(crate) fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }
}

/// Returns the directory that a worker uses, if this process is one.
pub(crate) fn told_to_play() -> Option<PathBuf> {
    std::env::var_os(HOME).map(PathBuf::from)
}

const HOME: &str = "STANDPIPE_TEST_WORKER";

/// The factor by which `STANDPIPE_LONG` extends the tests.
pub(crate) fn more() -> usize {
    if std::env::var_os("STANDPIPE_LONG").is_some() { 10 } else { 1 }
}
