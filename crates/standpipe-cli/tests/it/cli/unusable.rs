//! `doctor` in states in which calls cannot run: it names each with what to do, and is never well.

use rustix::process::Signal;
use standpipe_servers::Server;

use crate::support::{Home, Ran};

/// What doctor prints, in one line.
fn doctor(home: &Home) -> String {
    flat(&home.run(["doctor"]))
}

fn flat(ran: &Ran) -> String {
    ran.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(text: &str, all: &[&str]) {
    assert!(!text.contains("All is well."), "{text}");
    for words in all {
        assert!(text.contains(words), "`{words}` is missing in {text}");
    }
}

/// Waits until a call is queued on the pool.
fn until_waiting(home: &Home, pool: &str) {
    for _ in 0..500 {
        if home.status(pool)["waiting"] == 1 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("no call waits on {pool}");
}

#[test]
fn a_pool_that_the_provider_stopped_is_named_with_resume() {
    let home = Home::new();
    let limit = ["--limit", "requests=60/min", "-q", "--", "true"];
    home.run(["hold", "my/api", "--as", "blog"].into_iter().chain(limit)).printed();
    home.run(["throttle", "my/api", "--as", "blog", "--kind", "terminal", "-q"]).printed();
    let text = doctor(&home);
    let shown = ["the provider stopped `my/api`", "blog was refused", "standpipe resume my/api"];
    says(&text, &shown);
    let refused = home.run(["reserve", "my/api", "--as", "news", "--timeout", "0"]);
    let fix = "fix the account at the provider (credit, spend limit, key), then `standpipe resume \
               my/api`";
    let who = "blog was refused at ";
    refused.failed(77, &["the provider stopped `my/api`", who, fix, "without that, ask again in"]);
    for command in [&["status", "my/api"][..], &["explain", "my/api", "--as", "news"]] {
        let text = flat(&home.run(command.iter().copied()));
        says(&text, &["the provider stopped the pool", "until it is resumed", who, fix]);
    }
    home.run(["resume", "my/api", "-q"]).printed();
    assert!(!doctor(&home).contains("the provider stopped"), "it is resumed");
}

#[test]
fn a_stopped_holder_of_the_only_slot_is_named_with_kill() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    holder.signal(Signal::STOP);
    let waiter = home.start(["reserve", "my/slots", "--as", "news", "--timeout", "60s"]);
    until_waiting(&home, "my/slots");
    let (text, pid) = (doctor(&home), holder.child.id());
    let kill = [format!("kill -CONT {pid}"), format!("kill -9 {pid}")];
    says(&text, &["is stopped and holds 1 lease of `my/slots`, and 1 call waits"]);
    says(&text, &[&kill[0], &kill[1]]);
    for command in [&["status", "my/slots"][..], &["explain", "my/slots", "--as", "blog"]] {
        let text = flat(&home.run(command.iter().copied()));
        says(&text, &[&kill[0], &kill[1], "holds a lease and is stopped"]);
        assert!(!text.contains("raise `parallel`"), "{text}");
    }
    holder.signal(Signal::CONT);
    waiter.signal(Signal::TERM);
    assert_eq!(holder.end().code, Some(0));
    drop(waiter.end());
}

/// Its turn comes, and it cannot take the slot: it is not next, and the holder is not to blame.
#[test]
fn a_stopped_waiter_whose_turn_has_come_is_named_with_kill() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let waiter = home.start(["reserve", "my/slots", "--as", "news", "--timeout", "60s"]);
    until_waiting(&home, "my/slots");
    waiter.suspend();
    let pid = waiter.child.id();
    assert_eq!(holder.end().code, Some(0));
    let text = flat(&home.run(["status", "my/slots"]));
    says(&text, &["its turn has come, but its process is stopped", &format!("kill -CONT {pid}")]);
    waiter.signal(Signal::CONT);
    assert_eq!(waiter.end().code, Some(0));
}

#[test]
fn a_slot_of_a_script_is_not_suspected_at_once() {
    let home = Home::new();
    let reserve = ["reserve", "my/slots", "--as", "leaky", "--limit", "parallel=1"];
    home.run(reserve).printed();
    let late = home.run(["reserve", "my/slots", "--as", "news", "--timeout", "100ms"]);
    assert_eq!(late.code, Some(75), "{late:?}");
    assert!(doctor(&home).contains("stale state ok"), "the call may be running");
}

#[test]
fn a_lost_ledger_is_named_while_its_limits_count_as_full() {
    let home = Home::new();
    let limit = ["--limit", "requests=60/min", "-q", "--", "true"];
    home.run(["hold", "my/api", "--as", "blog"].into_iter().chain(limit)).printed();
    std::fs::remove_file(home.path.join("state/pools/my+api.pool")).unwrap();
    home.run(["hold", "my/api", "--as", "blog", "--timeout", "0"].into_iter().chain(limit));
    let full = ["the store lost the ledger of `my/api`", "rates count as full for another"];
    says(&doctor(&home), &full);
}

#[test]
fn entries_that_the_store_lost_under_a_call_in_flight_are_named_with_what_to_do() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    std::fs::remove_dir_all(home.path.join("state")).unwrap();
    // The next process makes a new ledger, and the holder puts back what it holds.
    home.run(["reserve", "my/slots", "--as", "news", "--limit", "parallel=1", "--timeout", "0"]);
    assert_eq!(holder.end().code, Some(0));
    let text = doctor(&home);
    says(&text, &["`my/slots`: the store lost its latest entries", "docs/recipes/backup.md"]);
}

#[test]
fn an_unreachable_store_is_one_failure_and_nothing_else_is_well() {
    let mut server = Server::start();
    let home = Home::new();
    let url = server.url();
    let reserve = ["--store", &url, "reserve", "my/api", "--limit", "requests=60/min"];
    home.run(reserve).printed();
    server.kill();
    let ran = home.run(["--store", &url, "doctor"]);
    assert_eq!(ran.code, Some(69), "{ran:?}");
    assert!(ran.err.contains("check that the server runs and listens there"), "{ran:?}");
    let text = flat(&ran);
    assert!(text.contains("1 failure, "), "{text}");
    assert_eq!(text.matches("not checked").count(), 1, "{text}");
    let (_, list) = text.split_once("not checked while the store is unreachable: ").unwrap();
    for check in ["writing", "server", "clocks", "pools", "stale state", "processes"] {
        assert!(list.contains(check), "{check}: {list}");
    }
    for words in ["no pool yet", "no abandoned", "no pool to compare"] {
        assert!(!text.contains(words), "{words} in {text}");
    }
}

#[test]
fn the_same_file_on_two_machines_is_no_other_configuration() {
    let home = Home::new();
    let file = |name: &str, text: &str| {
        let path = home.path.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let pool = "[pool.\"k/api\"]\nrequests = \"60/min\"\n";
    let first = file("f1.toml", pool);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let second = file("f2.toml", &format!("listen = \"127.0.0.1:8400\"\n{pool}"));
    let hold = |file: &str| home.run(["--config", file, "hold", "k/api", "--", "true"]);
    let doctor = |file: &str| home.run(["--config", file, "doctor"]).out;
    for file in [&second, &first] {
        let ran = hold(file);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    }
    assert!(!doctor(&first).contains("another file"), "{}", doctor(&first));
    std::thread::sleep(std::time::Duration::from_millis(20));
    let other = file("f2.toml", "[pool.\"k/api\"]\nrequests = \"30/min\"\n");
    hold(&other).printed();
    let ran = hold(&first);
    assert!(ran.err.contains("keeps the limits it has: requests=30/min"), "{ran:?}");
    let text = doctor(&first);
    assert!(text.contains("is configured by another file, written"), "{text}");
    assert!(!text.contains("Z, not by"), "no time of UTC: {text}");
}

#[test]
fn a_pause_that_is_longer_than_retry_after_is_explained() {
    let home = Home::new();
    let limit = ["--limit", "requests=60/min", "-q", "--", "true"];
    home.run(["hold", "my/api", "--as", "blog"].into_iter().chain(limit)).printed();
    let throttle = || home.run(["throttle", "my/api", "--as", "blog", "--retry-after", "1s"]);
    let first = throttle();
    assert!(first.err.contains("(1 s): quota, Retry-After 1 s"), "{first:?}");
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    let again = throttle();
    let long = "(20 s): quota, refused twice in a row, Retry-After was 1 s";
    assert!(again.err.contains(long), "{again:?}");
    let status = flat(&home.run(["status", "my/api"]));
    assert!(status.contains("refused twice in a row"), "{status}");
}

/// The file that a note points to must exist.
#[test]
fn limits_of_a_file_that_is_gone_are_named_with_a_way_out() {
    let home = Home::new();
    let file = home.configure("[pool.\"my/api\"]\nrequests = \"60/min\"\n");
    let hold = ["hold", "my/api", "--limit", "requests=30/min", "--", "true"];
    assert!(home.run(hold).err.contains("a file comes before flags: change it there"));
    std::fs::remove_file(file).unwrap();
    let said = home.run(hold).err;
    assert!(
        said.contains("no file that is read here describes it: `standpipe store reset"),
        "{said}"
    );
    home.run(["store", "reset", "my/api", "--yes"]).printed();
    assert_eq!(home.run(hold).err, "");
}
