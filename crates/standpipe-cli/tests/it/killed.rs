//! The program killed at every labelled point of a step: no slot stays without a known lease id.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use standpipe_store_file::failpoint;

struct Home(PathBuf);

impl Home {
    fn new(number: usize) -> Self {
        let name = format!("standpipe-killed-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn run(&self, arguments: &[&str], kill_at: Option<&str>) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_standpipe"));
        command.args(arguments).env("STANDPIPE_HOME", &self.0).env("XDG_CONFIG_HOME", &self.0);
        if let Some(label) = kill_at {
            command.env("STANDPIPE_KILL_AT", label);
        }
        command.output().unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SLOT: [&str; 4] = ["my/slots", "--limit", "parallel=1", "--timeout"];

#[test]
fn b25_reserve_killed_at_any_point_leaves_no_nameless_slot() {
    let mut kills = 0;
    for (number, label) in failpoint::ALL.iter().enumerate() {
        for time in 1..=4 {
            let home = Home::new(number * 10 + time);
            let killed = home
                .run(&[&["reserve"], &SLOT[..], &["0"]].concat(), Some(&format!("{label}:{time}")));
            if killed.status.signal().is_none() {
                // It never came there so often.
                break;
            }
            kills += 1;
            // A printed id can be settled, unless the lease ended with the process.
            let id = String::from_utf8(killed.stdout).unwrap();
            if !id.is_empty() {
                home.run(&["release", id.trim()], None);
            }
            // A nameless one would live for ten minutes. A waiter finds it within its patience,
            // because its process is seen to be dead.
            let hold = [&["hold"], &SLOT[..], &["100s", "--", "true"]].concat();
            let next = home.run(&hold, None);
            assert!(next.status.success(), "{label}:{time}: {next:?}");
        }
    }
    assert!(kills > 10, "only {kills} points were reached");
}

/// An id makes a reserve repeatable. A process that was killed before it printed the lease left
/// nothing to settle, so the next reserve with its id gets a lease, whatever was read in between.
#[test]
fn b25_reserve_with_an_id_killed_before_it_printed_can_be_repeated() {
    let mut kills = 0;
    let ask = [&["reserve"], &SLOT[..], &["100s", "--as", "blog", "--id", "job-1"]].concat();
    for (number, label) in failpoint::ALL.iter().enumerate() {
        for time in 1..=4 {
            let home = Home::new(3_000 + number * 10 + time);
            let killed = home.run(&ask, Some(&format!("{label}:{time}")));
            if killed.status.signal().is_none() {
                break;
            }
            if !killed.stdout.is_empty() {
                continue;
            }
            kills += 1;
            // Whoever looks finds the dead process and ends what it held.
            assert!(home.run(&["status"], None).status.success());
            let again = home.run(&ask, None);
            assert!(again.status.success(), "{label}:{time}: {again:?}");
            let lease = String::from_utf8(again.stdout).unwrap();
            let settled = home.run(&["commit", lease.trim()], None);
            assert!(settled.status.success(), "{label}:{time}: {settled:?}");
        }
    }
    assert!(kills > 7, "only {kills} points were reached");
}

#[test]
fn b25_hold_killed_at_any_point_frees_its_slot() {
    for label in
        ["head written:1", "lock released:1", "lock taken:2", "head written:2", "lock released:2"]
    {
        let home = Home::new(1_000 + label.len());
        let hold = [&["hold"], &SLOT[..], &["100s", "--", "true"]].concat();
        let killed = home.run(&hold, Some(label));
        assert_eq!(killed.status.signal(), Some(9), "{label}: {killed:?}");
        let next = home.run(&hold, None);
        assert!(next.status.success(), "{label}: {next:?}");
    }
}

/// A call on two pools, killed at any point of any step: between the two grants, while it dates the
/// first one, before its id is printed.
#[test]
fn b25_reserve_on_two_pools_killed_at_any_point_leaves_no_nameless_slot() {
    let mut kills = 0;
    for (number, label) in failpoint::ALL.iter().enumerate() {
        for time in 1..=6 {
            let home = Home::new(6_000 + number * 10 + time);
            let directory = home.0.join("standpipe");
            std::fs::create_dir_all(&directory).unwrap();
            let text = "[pool.\"my/org\"]\nparallel = 1\n\
                        [pool.\"my/slots\"]\nparallel = 1\nslack = 0\nwithin = \"my/org\"\n";
            std::fs::write(directory.join("standpipe.toml"), text).unwrap();
            let reserve = ["reserve", "my/slots", "--timeout", "0"];
            let killed = home.run(&reserve, Some(&format!("{label}:{time}")));
            if killed.status.signal().is_none() {
                break;
            }
            kills += 1;
            let id = String::from_utf8(killed.stdout).unwrap();
            if !id.is_empty() {
                home.run(&["release", id.trim()], None);
            }
            for pool in ["my/slots", "my/org"] {
                let next = home.run(&["hold", pool, "--timeout", "100s", "--", "true"], None);
                assert!(next.status.success(), "{label}:{time} {pool}: {next:?}");
            }
        }
    }
    assert!(kills > 20, "only {kills} points were reached");
}

#[test]
fn b52_a_damaged_ledger_is_reported_and_admits_nothing() {
    let home = Home::new(2_000);
    let hold = [&["hold"], &SLOT[..], &["0", "--", "true"]].concat();
    assert!(home.run(&hold, None).status.success());
    std::fs::write(home.0.join("pools/my+slots.pool"), b"not a ledger").unwrap();
    let refused = home.run(&hold, None);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(75), "{said}");
    for word in ["my/slots", "damaged", "kept as", "lost the ledger"] {
        assert!(said.contains(word), "{word} in {said}");
    }
}

/// What cannot be read is never "no pools": it is told, and the others are shown.
#[test]
fn b52_an_unreadable_ledger_is_not_a_missing_pool() {
    let home = Home::new(2_001);
    let hold = [&["hold"], &SLOT[..], &["0", "--", "true"]].concat();
    assert!(home.run(&hold, None).status.success());
    // What a newer program, another one or a slip of the hand may put there.
    let link = home.0.join("pools/my+directory.pool");
    std::os::unix::fs::symlink(&link, &link).unwrap();
    std::fs::write(home.0.join("pools/stray.pool"), b"not a ledger").unwrap();
    let ran = home.run(&["status"], None);
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(69), "{said}");
    assert!(String::from_utf8(ran.stdout).unwrap().contains("my/slots"));
    for words in ["`my/directory` cannot be read", "my+directory.pool", "stray.pool", "move it"] {
        assert!(said.contains(words), "{words} in {said}");
    }
    for command in ["status", "explain", "resume"] {
        let ran = home.run(&[command, "my/directory"], None);
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(69), "{command}: {said}");
        assert!(said.contains("my+directory.pool"), "{command}: {said}");
    }
    let ran = home.run(&["status", "--json"], None);
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(said.contains("\"unreadable\":[{") && said.lines().count() == 1, "{said}");
}

#[test]
fn b52_a_damaged_ledger_is_reported_by_status() {
    for (number, bytes) in [&b"not a ledger"[..], b"", &[0xa5; 9_000]].into_iter().enumerate() {
        let home = Home::new(2_010 + number);
        let hold = [&["hold"], &SLOT[..], &["0", "--", "true"]].concat();
        assert!(home.run(&hold, None).status.success());
        std::fs::write(home.0.join("pools/my+slots.pool"), bytes).unwrap();
        let ran = home.run(&["status", "my/slots"], None);
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(0), "{said}");
        for word in ["my/slots", "damaged", "kept as"] {
            assert!(said.contains(word), "{word} in {said}");
        }
    }
}
