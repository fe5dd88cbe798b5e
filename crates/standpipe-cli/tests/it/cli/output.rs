//! Output for people: empty states, closed pipes, narrow lines, colours.

use crate::support::{Home, Ran};

#[test]
fn an_empty_status_suggests_a_command() {
    let home = Home::new();
    let ran = home.run(["status"]);
    assert!(ran.printed().contains("standpipe hold my/slots"), "{ran:?}");
    assert!(home.run(["events"]).printed().is_empty());
}

#[test]
fn a_pipe_has_no_colours() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let ran = home.run(["status"]);
    assert!(!ran.out.contains('\x1b'), "{ran:?}");
    assert!(ran.out.contains("holds  holder"), "{ran:?}");
    assert!(ran.out.contains("1 of 1"), "{ran:?}");
    assert!(ran.out.contains("full"), "{ran:?}");
    assert_eq!(holder.end().code, Some(0));
}

#[test]
fn a_narrow_line_is_kept() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let output = home.command(["status"]).env("COLUMNS", "44").output().unwrap();
    let ran = Ran::of(&output);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 44), "{}", ran.out);
    assert_eq!(holder.end().code, Some(0));
}

#[test]
fn sentences_are_broken_between_words() {
    let home = Home::new();
    let fresh = home.run(["status"]);
    assert!(fresh.out.lines().all(|line| line.chars().count() <= 60), "{}", fresh.out);
    home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "true"]).printed();
    home.run(["pause", "my/slots", "--for", "1h"]).printed();
    for args in [&["status"][..], &["explain", "my/slots", "--as", "a-rather-long-agents-name"]] {
        let mut command = home.command(args.iter().copied());
        let ran = Ran::of(&command.env("COLUMNS", "60").output().unwrap());
        assert!(ran.out.lines().all(|line| line.chars().count() <= 60), "{}", ran.out);
    }
}

#[test]
fn a_locale_without_utf8_gets_ascii() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let output = home.command(["status"]).env("LC_ALL", "C").output().unwrap();
    let ran = Ran::of(&output);
    assert!(ran.out.is_ascii(), "{}", ran.out);
    assert!(ran.out.contains('#') || ran.out.contains('='), "{}", ran.out);
    assert_eq!(holder.end().code, Some(0));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let home = Home::new();
    let (closed, out) = std::io::pipe().unwrap();
    drop(closed);
    let mut command = home.command(["man"]);
    let ran = Ran::of(&command.stdout(out).stderr(std::process::Stdio::piped()).output().unwrap());
    assert_eq!((ran.code, &*ran.err), (Some(141), ""));
}

#[test]
fn an_output_that_cannot_be_written_is_74() {
    let home = Home::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = home.command(["status"]);
    let ran = Ran::of(&command.stdout(full).stderr(std::process::Stdio::piped()).output().unwrap());
    ran.failed(74, &["cannot write", "standard output"]);
}

#[test]
fn a_lease_whose_id_cannot_be_printed_is_cancelled() {
    let home = Home::new();
    let into = |output: &str| {
        let script = format!("exec \"$0\" \"$@\" {output}");
        let reserve = ["reserve", "my/slots", "--limit", "parallel=1", "--timeout", "0"];
        home.run_by(&["sh", "-c", &script], reserve)
    };
    into(">&-").failed(74, &["cannot write", "closed"]);
    assert_eq!(home.status("my/slots")["leases"], serde_json::json!([]));
    let unread = into(">/dev/null");
    assert_eq!((unread.code, &*unread.err), (Some(0), ""), "that was meant so");
}

#[test]
fn there_is_no_hidden_command() {
    let home = Home::new();
    home.run(["__child", "1", "echo", "ran"]).failed(2, &["__child"]);
}
