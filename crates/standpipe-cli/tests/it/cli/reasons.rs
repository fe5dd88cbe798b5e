//! What `status` and `explain` print for the reasons that only a process meets: a call whose
//! timeout passed in the queue, and a store that does not answer. The other reasons are in
//! `src/show/golden.rs`.
//!
//! `tests/snapshots/reasons` has each command with its output, without the figures that differ from
//! run to run. `STANDPIPE_BLESS=1` rewrites the texts.

use std::path::Path;

use standpipe_servers::Server;

use crate::support::{Home, Ran};

/// Runs each line and compares what it prints with the snapshot of the reason.
fn check(reason: &str, home: &Home, lines: &[&str], hidden: &[(&str, &str)]) {
    let hidden =
        |line: &str| hidden.iter().fold(line.to_owned(), |line, (what, by)| line.replace(what, by));
    let mut text = String::new();
    for line in lines {
        let ran = home.run(line.split(' '));
        text += &format!("$ standpipe {}\n{}\n", hidden(line), hidden(&shown(&ran)));
    }
    let name = format!("tests/snapshots/reasons/{reason}.txt");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("STANDPIPE_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&file).unwrap_or_default(), "{text}");
}

/// What was printed, with the exit code.
fn shown(ran: &Ran) -> String {
    let lines = ran.out.lines().chain(ran.err.lines()).map(|line| masked(line) + "\n");
    format!("{}[exit {}]\n", lines.collect::<String>(), ran.code.unwrap_or(-1))
}

/// A line without lengths of time, process ids, dates and times. Spaces that align a table depend
/// on them too.
fn masked(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_unit = |word: &str| ["ms", "s"].contains(&word.trim_matches([',', ')', ':', '.', ';']));
    let is_figure = |part: &str| part.parse::<u16>().is_ok();
    let is_pair = |part: &str| part.len() == 2 && part.parse::<u8>().is_ok();
    let is_date = |word: &str| word.split('-').count() == 3 && word.split('-').all(is_figure);
    let figure = |(at, word): (usize, &&str)| {
        let is_number = word.trim_matches(['(', ')']).parse::<f64>().is_ok();
        let unit_follows = words.get(at + 1).is_some_and(|next| is_unit(next));
        let is_pid = at > 0 && words[at - 1].trim_start_matches('(') == "pid";
        let is_clock = word.split(':').count() == 3 && word.split(':').all(is_pair);
        match *word {
            _ if is_number && (unit_follows || is_pid) => "…".to_owned(),
            _ if is_clock || is_date(word) => "…".to_owned(),
            word if is_unit(word) => word.replace("ms", "s"),
            word => word.to_owned(),
        }
    };
    let words: Vec<String> = words.iter().enumerate().map(figure).collect();
    format!("{}{}", " ".repeat(indent), words.join(" "))
}

#[test]
fn a_call_that_timed_out_is_explained() {
    let home = Home::new();
    let mut holder = home.hold_the_slot();
    let lines = [
        "reserve my/slots --as blog --timeout 50ms",
        "status",
        "explain my/slots --as blog",
        "events --pool my/slots --kind wait",
    ];
    check("deadline", &home, &lines, &[]);
    drop(holder.child.stdin.take());
    assert!(holder.child.wait().unwrap().success());
}

#[test]
fn a_store_that_does_not_answer_is_explained() {
    let mut server = Server::start();
    let home = Home::new();
    let (url, address) = (server.url(), server.address());
    let reserve =
        format!("--store {url} reserve my/slots --limit parallel=1 --as blog --timeout 0");
    home.run(reserve.split(' ')).printed();
    server.kill();
    let status = format!("--store {url} status my/slots");
    let explain = format!("--store {url} explain my/slots --as blog");
    let hidden = [(address.as_str(), "127.0.0.1:6379")];
    check("store", &home, &[&reserve, &status, &explain], &hidden);
}
