//! Manners: what a first look shows, pipes, narrow lines, colours.

use crate::support::{Home, Ran};

#[test]
fn a_first_look_says_what_to_do_next() {
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
fn whoever_has_read_enough_is_not_told_so() {
    let home = Home::new();
    let (closed, out) = std::io::pipe().unwrap();
    drop(closed);
    let mut command = home.command(["man"]);
    let ran = Ran::of(&command.stdout(out).stderr(std::process::Stdio::piped()).output().unwrap());
    assert_eq!((ran.code, &*ran.err), (Some(141), ""));
}

#[test]
fn the_hidden_step_needs_a_living_parent() {
    let home = Home::new();
    let ran = home.run(["__child", "1", "echo", "ran"]);
    assert_eq!((ran.code, &*ran.out), (Some(137), ""), "not started by that parent");
}
