//! Fault B50: a handle used after a fork.

#![cfg(test)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use standpipe::{Limit, Pool, Request, Rule, Settings, Standpipe};

struct Family {
    directory: PathBuf,
    parent: Child,
    said: BufReader<ChildStdout>,
}

impl Family {
    fn start() -> Self {
        Self::start_in(scratch(), &[])
    }

    fn start_in(directory: PathBuf, arguments: &[&str]) -> Self {
        let mut parent = Command::new(env!("CARGO_BIN_EXE_forks"))
            .arg(&directory)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(parent.stdout.take().unwrap());
        Self { directory, parent, said }
    }

    /// Reads what they print until all of these lines were printed, in any order.
    fn says_all(&mut self, expected: &[&str]) {
        let mut missing: Vec<&str> = expected.to_vec();
        while !missing.is_empty() {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "they ended before {missing:?}");
            assert!(!line.contains("refused a slot"), "{line} instead of {missing:?}");
            assert!(!line.contains("is locked out"), "{line} instead of {missing:?}");
            missing.retain(|wanted| !line.starts_with(wanted));
        }
    }

    fn pool(&self) -> Pool {
        pool_in(&self.directory)
    }
}

/// A directory of a test's own.
fn scratch() -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("standpipe-forks-{}-{count}", std::process::id()))
}

fn pool_in(directory: &Path) -> Pool {
    let builder = Standpipe::builder().settings(Settings::default()).home(directory);
    builder.open().unwrap().pool("test/slots").unwrap()
}

impl Drop for Family {
    fn drop(&mut self) {
        drop(self.parent.stdin.take());
        let _ = self.parent.wait();
        // The child may still write to the directory for a moment.
        let mut rest = String::new();
        let _ = std::io::Read::read_to_string(&mut self.said, &mut rest);
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

const BOTH: [&str; 4] =
    ["parent ", "child sees 1 in flight", "child holds, 2 in flight", "child is refused a third"];

#[test]
fn b50_after_a_fork_the_child_is_a_session_of_its_own() {
    let mut family = Family::start();
    family.says_all(&BOTH);
    assert_eq!(family.pool().status().blocking().unwrap().leases.len(), 2);
    drop(family.parent.stdin.take());
    family.says_all(&["parent settled", "child gave back"]);
    assert!(family.parent.wait().unwrap().success());
    assert_eq!(family.pool().status().blocking().unwrap().leases.len(), 0);
}

#[test]
fn b50_a_child_does_not_keep_its_dead_parents_session_alive() {
    let mut family = Family::start();
    family.says_all(&BOTH);
    // The child lives, with everything it inherited, while its standard input is open.
    let input = family.parent.stdin.take();
    family.parent.kill().unwrap();
    family.parent.wait().unwrap();
    let pool = family.pool();
    let patient = Request::by("stranger").timeout(Duration::from_secs(100));
    let lease = pool.reserve(patient).blocking().unwrap();
    let holders: Vec<String> =
        pool.status().blocking().unwrap().leases.iter().map(|lease| lease.agent.clone()).collect();
    assert_eq!(holders.len(), 2);
    assert!(!holders.contains(&"parent".to_owned()), "{holders:?}");
    drop((lease, input));
}

#[test]
fn b50_a_thread_that_blocks_while_its_process_forks_is_woken_and_so_is_the_child() {
    let directory = scratch();
    let pool = pool_in(&directory);
    pool.limit(vec![Limit::new(Rule::Parallel { amount: 2 })]).blocking().unwrap();
    let [first, second] = [(); 2].map(|()| pool.reserve(Request::by("test")).blocking().unwrap());
    let mut family = Family::start_in(directory, &["blocked"]);
    while pool.status().blocking().unwrap().tickets.len() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    first.commit([]).blocking().unwrap();
    family.says_all(&["parent holds"]);
    second.commit([]).blocking().unwrap();
    family.says_all(&["child holds"]);
    drop(family.parent.stdin.take());
    family.says_all(&["parent gave back", "child gave back"]);
    assert!(family.parent.wait().unwrap().success());
    assert_eq!(pool.status().blocking().unwrap().leases.len(), 0);
}

/// A child must not keep a lock of its parent: nobody could use the pool any more.
#[test]
fn b50_killed_inside_a_step_while_a_forked_child_lives_a_process_locks_nobody_out() {
    let mut family = Family::start_in(scratch(), &["inside"]);
    family.says_all(&["parent inside", "child out"]);
    let input = family.parent.stdin.take();
    family.parent.kill().unwrap();
    family.parent.wait().unwrap();
    // Neither the child nor others are locked out.
    family.says_all(&["child holds"]);
    let patient = Request::by("stranger").timeout(Duration::from_secs(20));
    drop(family.pool().reserve(patient).blocking().unwrap());
    drop(input);
}

#[test]
fn b50_a_program_that_starts_itself_anew_does_not_keep_its_leases() {
    let mut family = Family::start_in(scratch(), &["exec"]);
    family.says_all(&["after holds"]);
    assert_eq!(family.pool().status().blocking().unwrap().leases.len(), 1);
}
