//! `run` without a daemon: several at once start one and share it.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::TcpListener;

use crate::daemon::support::until;
use crate::support::{Home, Running};

/// A home whose daemon uses a free port and is stopped at the end.
struct Proxied(Home);

impl Proxied {
    fn new() -> Self {
        let home = Home::new();
        home.configure("listen = \"127.0.0.1:0\"\n");
        Self(home)
    }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        let _stopped_already = self.0.run(["down"]);
    }
}

/// The processes that a process has started and that have not ended.
fn children(of: &Running) -> Vec<u32> {
    let pid = of.child.id();
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    list.unwrap_or_default().split(' ').filter_map(|pid| pid.parse().ok()).collect()
}

/// While another process has the lock of the daemon and is not ready, as in the first moments of
/// every daemon, each `run` must wait and retry.
#[test]
fn several_at_once_without_a_daemon_share_the_one_that_starts() {
    let proxied = Proxied::new();
    let Proxied(home) = &proxied;
    std::fs::create_dir(home.path.join("state")).unwrap();
    let lock = File::create(home.path.join("state/daemon.pid")).unwrap();
    lock.lock().unwrap();
    let names = ["j1", "j2", "j3", "j4"];
    let mut runs = names.map(|name| home.start(["run", "--as", name, "--", "echo", name]));
    for run in &mut runs {
        let mut attempts = BTreeSet::new();
        until("it was refused and tries again", || {
            attempts.extend(children(run));
            let ended = run.child.try_wait().unwrap().is_some();
            (ended || attempts.len() >= 2).then_some(())
        });
    }
    drop(lock);
    let ended = runs.map(Running::end);
    for (name, ran) in names.iter().zip(&ended) {
        assert_eq!((ran.code, ran.out.trim_end()), (Some(0), *name), "{ran:?}");
    }
    let started = ended.iter().filter(|ran| ran.err.contains("started a daemon")).count();
    assert_eq!(started, 1, "{ended:?}");
}

#[test]
fn the_agent_is_named_after_the_script_that_is_run() {
    let proxied = Proxied::new();
    let Proxied(home) = &proxied;
    std::fs::write(home.path.join("my_agent.sh"), "echo $STANDPIPE_AGENT").unwrap();
    assert_eq!(home.run(["run", "--", "sh", "./my_agent.sh"]).printed(), "my_agent");
    let ran = home.run(["run", "--as", "blog", "--", "sh", "./my_agent.sh"]);
    assert_eq!(ran.printed(), "blog");
    let doctor = home.run(["doctor"]);
    assert!(doctor.out.contains("runs at http://127.0.0.1:"), "{doctor:?}");
}

/// `run` has no `--listen`, which the hint of `up` names.
#[test]
fn a_port_in_use_is_changed_in_the_file() {
    let home = Home::new();
    let program = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = program.local_addr().unwrap();
    home.configure(&format!("listen = \"{address}\"\n"));
    let ran = home.run(["run", "--", "true"]);
    ran.failed(69, &[&format!("{address} is in use"), "`listen =` in standpipe.toml"]);
    assert!(!ran.err.contains("--listen"), "{ran:?}");
}

#[test]
fn a_program_that_made_no_call_is_said_to_have_made_none() {
    let proxied = Proxied::new();
    let Proxied(home) = &proxied;
    let note = "blog made no call through the proxy; if it calls an API, its SDK may ignore";
    let ran = home.run(["run", "--as", "blog", "--", "true"]);
    assert!(ran.code == Some(0) && ran.err.contains(note), "{ran:?}");
    let quiet = home.run(["run", "-q", "--as", "blog", "--", "true"]);
    assert_eq!((quiet.code, quiet.err.as_str()), (Some(0), ""), "{quiet:?}");
}
