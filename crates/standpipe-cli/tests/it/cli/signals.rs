//! Signals: `hold` forwards them to its command, and they end a wait without leaving a ticket.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::support::Home;

#[test]
fn signals_are_forwarded() {
    let home = Home::new();
    let signals = [
        (Signal::INT, "INT"),
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
    ];
    for (signal, name) in signals {
        let script = format!("trap 'kill -9 $!; exit 7' {name}; sleep 600 & echo ready; wait");
        let limit = "parallel=1";
        let mut holder =
            home.start(["hold", "my/slots", "--limit", limit, "--", "sh", "-c", &script]);
        assert_eq!(holder.line(), "ready");
        holder.signal(signal);
        assert_eq!(holder.end().code, Some(7), "{name}");
    }
    assert_eq!(home.status("my/slots")["leases"].as_array().unwrap().len(), 0);
}

#[test]
fn a_command_killed_by_a_forwarded_signal_is_128_and_its_number() {
    let home = Home::new();
    let script = "echo ready; exec sleep 600";
    let mut holder =
        home.start(["hold", "my/slots", "--limit", "parallel=1", "--", "sh", "-c", script]);
    assert_eq!(holder.line(), "ready");
    holder.signal(Signal::TERM);
    assert_eq!(holder.end().code, Some(143));
}

#[test]
fn ignored_signals_stay_ignored() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_standpipe");
    // As `nohup` does it: hold must neither pass the signal on nor put its default back.
    let script = "kill -HUP $PPID; kill -HUP $$; echo lives";
    let nohup =
        format!("trap '' HUP; exec {program} hold my/slots --limit parallel=1 -- sh -c '{script}'");
    let command = home.command([]);
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(nohup).current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "lives\n", "{output:?}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_wait_that_is_interrupted_leaves_no_ticket() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let mut waiter = home.start(["hold", "my/slots", "--", "echo", "ran"]);
    let waiting = || home.status("my/slots")["tickets"].as_array().unwrap().len();
    while waiting() == 0 {
        assert!(waiter.child.try_wait().unwrap().is_none(), "it did not wait");
    }
    waiter.signal(Signal::INT);
    let ended = waiter.child.wait().unwrap();
    assert_eq!(ended.signal(), Some(2), "so that a shell's loop around it ends too");
    assert_eq!(waiter.rest(), "");
    assert_eq!(waiting(), 0);
    assert_eq!(holder.end().code, Some(0));
}
