//! The command line on a real server, from two machines: two state directories.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use standpipe_servers::{Options, Server};

/// A machine of its own: nothing on it is known to others but what is on the server.
struct Machine {
    home: PathBuf,
    store: String,
}

impl Machine {
    fn new(store: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-machine-{}-{number}", std::process::id());
        let home = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&home).unwrap();
        Self { home, store: store.to_owned() }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_standpipe"));
        command.args(["--store", &self.store]).args(line.split(' ')).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var("PATH").unwrap());
        command.env("STANDPIPE_HOME", &self.home).env("XDG_CONFIG_HOME", &self.home);
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    fn says(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Holds a slot until its end of a pipe is closed.
    fn holds(&self) -> Child {
        let mut command = self.command("hold my/slots --limit parallel=1 -- sh -c");
        command.arg("echo held; read line; true").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        child
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

fn release(mut child: Child) {
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

const NEXT: &str = "hold my/slots --limit parallel=1 --timeout 60s -- true";
const AT_ONCE: &str = "hold my/slots --limit parallel=1 --timeout 0 -- true";

#[test]
fn a_killed_holders_slot_is_free_at_once_on_its_machine_and_not_seen_from_another() {
    let server = Server::start();
    let (here, there) = (Machine::new(&server.url()), Machine::new(&server.url()));
    let mut holder = here.holds();
    assert_eq!(there.run(AT_ONCE).status.code(), Some(75), "it is held");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(there.run(AT_ONCE).status.code(), Some(75), "only silence tells, from here");
    assert!(here.run(AT_ONCE).status.success(), "its death is seen here");
    assert!(there.run(AT_ONCE).status.success(), "for every process");
}

#[test]
fn calls_wait_for_a_restarting_server_and_continue() {
    let options = Options { persistent: true, ..Options::default() };
    let mut server = Server::start_with(options);
    let (here, there) = (Machine::new(&server.url()), Machine::new(&server.url()));
    let holder = here.holds();
    let waiter = there.command(NEXT).stderr(Stdio::piped()).spawn().unwrap();
    server.kill();
    server.start_again();
    release(holder);
    let waited = waiter.wait_with_output().unwrap();
    assert!(waited.status.success(), "{waited:?}");
    assert!(here.run(NEXT).status.success(), "capacity is whole");
    let events = here.says("events --kind store") + &there.says("events --kind store");
    assert!(events.contains("another server process answers"), "{events}");
}

/// A server that ends while a command waits is reported, and so is its return.
#[test]
fn a_waiting_command_says_when_the_store_does_not_answer() {
    let options = Options { persistent: true, ..Options::default() };
    let mut server = Server::start_with(options);
    let here = Machine::new(&server.url());
    let holder = here.holds();
    let mut waiter = here.command(NEXT).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(waiter.stderr.take().unwrap()).lines().map_while(Result::ok);
    while !here.says("status my/slots").contains("1 waiting") {}
    server.kill();
    let url = server.url();
    let outage = |line: &String| line.contains(&url) && line.contains("; retrying until ");
    lines.find(outage).expect("it reports the outage while it waits");
    server.start_again();
    let answers = |line: &String| line.contains("the store answers again; waiting for `my/slots`");
    lines.find(answers).expect("it reports the return while it waits");
    release(holder);
    assert!(waiter.wait().unwrap().success());
}

/// The ledger has the name, not the journal of one machine.
#[test]
fn who_ordered_a_pause_is_shown_on_every_machine() {
    let server = Server::start();
    let (here, there) = (Machine::new(&server.url()), Machine::new(&server.url()));
    assert!(here.run(AT_ONCE).status.success());
    here.says("pause my/slots --for 1h --as ops");
    for view in ["status", "explain my/slots --as blog"] {
        let shown = there.says(view);
        assert!(shown.contains("by ops at "), "{view}: {shown}");
    }
    let refused = String::from_utf8(there.run(AT_ONCE).stderr).unwrap();
    assert!(refused.contains("the pool is paused by ops"), "{refused}");
}

/// Each machine has a journal of its own, so an audit cannot add up the others.
#[test]
fn an_audit_of_a_shared_pool_names_its_extent() {
    let server = Server::start();
    let (here, there) = (Machine::new(&server.url()), Machine::new(&server.url()));
    assert!(here.run(AT_ONCE).status.success());
    assert!(here.says("audit").contains("1 call · the last day · on this machine only\n"));
    assert!(there.says("audit").contains("in the last day, on this machine only."));
    assert!(here.says("audit --compare").contains("calls on this machine only."));
    let alone = Machine::new("file");
    assert!(alone.run(AT_ONCE).status.success());
    assert!(alone.says("audit").contains("1 call · the last day\n"));
    assert!(!alone.says("audit --compare").contains("this machine"));
}

#[test]
fn the_caller_who_lowers_a_limit_of_other_machines_gets_a_note() {
    let server = Server::start();
    let (here, there) = (Machine::new(&server.url()), Machine::new(&server.url()));
    let says = |machine: &Machine, limit: &str| {
        let line = format!("hold my/slots --as {limit} --limit parallel={limit} -- true");
        String::from_utf8(machine.run(&line).stderr).unwrap()
    };
    assert_eq!(says(&here, "5"), "", "a new pool is no change");
    let lowered = says(&there, "2");
    assert!(lowered.contains("--limit parallel=2 now applies to every caller"), "{lowered}");
    assert_eq!(says(&there, "2"), "", "the same limit is no change");
}

#[test]
fn an_unavailable_server_is_a_clear_error_in_time() {
    let mut server = Server::start();
    let here = Machine::new(&server.url());
    assert!(here.run(AT_ONCE).status.success());
    server.kill();
    for line in [AT_ONCE, "status", "store ping", "reserve my/slots --timeout 1s"] {
        let output = here.run(line);
        assert_eq!(output.status.code(), Some(69), "{line}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("refuses connections\nhint: check that the server runs"), "{said}");
    }
}

#[test]
fn a_server_that_lost_its_data_is_noticed_and_counts_as_full() {
    let server = Server::start();
    let (here, new) = (Machine::new(&server.url()), Machine::new(&server.url()));
    let call = "hold my/api --limit requests=1000/h --timeout 0 -- true";
    assert!(here.run(call).status.success());
    server.run(&["FLUSHALL"]);
    let refused = here.run(call);
    assert_eq!(refused.status.code(), Some(75), "{refused:?}");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("`my/api` was lost"), "{said}");
    assert!(here.says("events --kind store").contains("was lost"), "it is in the journal");
    assert_eq!(new.run(call).status.code(), Some(75), "a machine that comes new is told, too");
    let patient = call.replace("--timeout 0", "--timeout 60s");
    let reset = here.run("store reset my/api --yes");
    assert!(reset.status.success() && here.run(&patient).status.success(), "anew, on purpose");
    assert!(new.run(&patient).status.success(), "which is no loss to anybody");
}

#[test]
fn leases_are_restored_after_a_reset_before_any_admission() {
    let server = Server::start();
    let (here, there) = (Machine::new(&server.url()), Machine::new(&server.url()));
    let holder = here.holds();
    there.says("store reset my/slots --yes");
    let waiter = there.command(NEXT).stderr(Stdio::piped()).spawn().unwrap();
    while !there.says("status").contains("1 in flight") {}
    assert_eq!(there.run(AT_ONCE).status.code(), Some(75));
    release(holder);
    assert!(waiter.wait_with_output().unwrap().status.success(), "then it is its turn");
}

#[test]
fn pools_move_between_stores_with_their_usage() {
    let server = Server::start();
    let (file, redis) = (Machine::new("file"), Machine::new(&server.url()));
    for _ in 0..3 {
        let call = "hold my/api --limit requests=10/h --limit parallel=3 -- true";
        assert!(file.run(call).status.success());
    }
    let moved = file.run(&format!("store move my/api --to {} --yes", server.url()));
    assert!(moved.status.success(), "{moved:?}");
    assert!(!file.says("status").contains("my/api"), "it is there no more");
    let shown = redis.says("status my/api");
    assert!(shown.contains("3 of 8 per hour") && shown.contains("0 of 3"), "{shown}");
    assert!(redis.run("hold my/api -- true").status.success());
    assert!(redis.says("status my/api").contains("4 of 8 per hour"), "and it goes on");
    let busy = redis.run(&format!("store move my/api --to file:{} --yes", file.home.display()));
    let said = String::from_utf8(busy.stderr).unwrap();
    assert!(!busy.status.success() && said.contains("silent for 2 min"), "{said}");
    let taken = file.run("hold my/api --limit requests=10/h -- true");
    assert!(taken.status.success());
    let twice = file.run(&format!("store move my/api --to {} --yes", server.url()));
    let said = String::from_utf8(twice.stderr).unwrap();
    assert!(
        !twice.status.success()
            && said.contains("already has a pool `my/api`\nhint: delete the copy there: standpipe"),
        "{said}"
    );
}

/// The first of several processes creates the pool, and changes nothing for the others.
#[test]
fn equal_limits_that_start_together_are_not_noted_as_a_change() {
    let server = Server::start();
    let machine = Machine::new(&server.url());
    for round in 0..3 {
        let call = format!("hold my/new{round} --limit requests=50/s -- true");
        let mut all = Vec::new();
        for _ in 0..6 {
            all.push(machine.command(&call).stderr(Stdio::piped()).spawn().unwrap());
        }
        for one in all {
            let ended = one.wait_with_output().unwrap();
            assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
        }
    }
    let lowered = machine.run("hold my/new0 --limit requests=40/s --as other -- true");
    let said = String::from_utf8(lowered.stderr).unwrap();
    assert!(said.contains("--limit requests=40/s now applies to every caller"), "{said}");
}
