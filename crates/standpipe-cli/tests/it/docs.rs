//! The commands in the documents work as documented.

mod commands;
mod generated;
mod http;
mod newcomer;
mod numbers;
mod page;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Stdio;

use standpipe_servers::Server;

use self::page::{Newcomer, blocks, document, exists, pages, text};

/// Runs a slow `hold` at one newcomer and another one at a second: the second waits for the first.
fn waits_its_turn(here: &Newcomer, there: &Newcomer, line: &str) {
    let slow = line.replace("echo \"my turn\"", "sh -c 'echo begun; sleep 1; echo ended'");
    assert_ne!(slow, line);
    let mut one = here.shell(&slow).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(one.stdout.take().unwrap());
    let mut printed = String::new();
    said.read_line(&mut printed).unwrap();
    assert_eq!(printed, "begun\n");
    let other = there.types(line);
    assert_eq!(text(&other.stdout), "my turn\n");
    said.read_line(&mut printed).unwrap();
    assert_eq!(printed, "begun\nended\n", "the first was over when the second ran");
    assert!(one.wait().unwrap().success() && other.status.success());
}

/// The first command of a page that contains a text.
fn command(page: &str, part: &str) -> String {
    let blocks = blocks(&document(page), "console");
    let mut typed = blocks.iter().flat_map(|block| block.typed());
    typed.find(|line| line.contains(part)).unwrap_or_else(|| panic!("{page}: no {part}"))
}

#[test]
fn a_slot_is_shared_over_two_shells_as_the_readme_shows() {
    let newcomer = Newcomer::new();
    let looped = command("README.md", "hold my/slots");
    let hold = looped.split("do ").nth(1).and_then(|rest| rest.split(" & ").next()).unwrap();
    let turn = hold.replace("sh -c 'date +%T; sleep 1'", "echo \"my turn\"");
    waits_its_turn(&newcomer, &newcomer, &turn);
    let shown = text(&newcomer.types("standpipe status").stdout);
    for word in ["my/slots", "0 of 1", "active"] {
        assert!(shown.contains(word), "{word} in {shown}");
    }
}

#[test]
fn a_rate_is_shared_over_a_loop_as_the_guide_shows() {
    let newcomer = Newcomer::new();
    let looped = newcomer.types(&command("docs/guide/2-one-machine.md", "for i in"));
    let calls: Vec<String> = (1..=6).map(|call| format!("call {call}")).collect();
    assert_eq!(text(&looped.stdout).lines().collect::<Vec<_>>(), calls);
}

#[test]
fn two_machines_share_a_ledger_as_the_guide_shows() {
    let server = Server::start();
    let page = "docs/guide/4-machines.md";
    let store = command(page, "STORE=redis://").replace("redis.example:6379", &server.address());
    let line = format!("{store}; {}", command(page, "hold my/slots"));
    waits_its_turn(&Newcomer::new(), &Newcomer::new(), &line);
}

/// The anchors of a page, as GitHub and others make them of its headings.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
    let slug = |line: &str| -> String {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title.chars().filter(kept).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    headings.map(slug).collect()
}

/// Links between the pages, and to files of the repository, lead somewhere.
#[test]
fn every_link_of_the_pages_leads_somewhere() {
    for page in pages() {
        let folder = page.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let text = document(&page);
        let ends = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
        for link in ends.filter_map(|rest| rest.split(')').next()) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            if target.contains("://") {
                continue;
            }
            let target = if target.is_empty() { &page } else { &format!("{folder}/{target}") };
            assert!(exists(target), "{page}: {link}");
            let known = anchor.is_empty() || anchors(&document(target)).iter().any(|a| a == anchor);
            assert!(known, "{page}: {link}");
        }
    }
}

/// The pages use plain technical words. The reference shows the words of the program.
#[test]
fn the_pages_use_plain_words() {
    const BANNED: [&str; 18] = [
        " told ",
        " tells ",
        " hears ",
        " heard ",
        " mended ",
        " mend ",
        " whoever ",
        " nobody ",
        " is away ",
        " goes away ",
        " comes back ",
        " no word ",
        " bears ",
        " stirs ",
        " through the tap ",
        " single file ",
        " a herd ",
        " scene ",
    ];
    let own = |page: &&String| !page.starts_with("docs/reference/");
    for page in pages().iter().filter(own) {
        let words = document(page).to_lowercase();
        let words: Vec<_> = words.split(|letter: char| !letter.is_alphanumeric()).collect();
        let text = format!(" {} ", words.join(" "));
        let found = BANNED.iter().find(|banned| text.contains(**banned));
        assert_eq!(found, None, "{page}");
    }
}

#[test]
fn a_server_is_started_and_secured_in_one_command() {
    let page = document("docs/redis.md");
    let scripts = blocks(&page, "sh");
    for (script, user) in [(&scripts[0], ""), (&scripts[1], "standpipe:a-long-password@")] {
        let newcomer = Newcomer::new();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let line = script.text().replace("6379", &free.to_string());
        let line = line.replace("--daemonize yes", "--daemonize no --save ''");
        let mut server = newcomer.shell(&format!("exec {line}"));
        let mut server = server.stdout(Stdio::null()).spawn().unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", free)).is_err() {
            assert_eq!(server.try_wait().unwrap(), None, "it does not start: {line}");
            std::thread::yield_now();
        }
        let store = format!("standpipe --store redis://{user}127.0.0.1:{free}");
        let hold = "hold my/slots --limit parallel=1 --limit requests=100/min --timeout 20s";
        let held = newcomer.types(&format!("{store} {hold} -- echo held"));
        let status = newcomer.types(&format!("{store} status"));
        let doctor = newcomer.types(&format!("{store} doctor"));
        let moved = newcomer.types(&format!("{store} store reset my/slots --yes"));
        let stranger =
            newcomer.types(&format!("standpipe --store redis://127.0.0.1:{free} status"));
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(text(&held.stdout), "held\n", "{held:?}");
        assert!(text(&status.stdout).contains("my/slots"), "{status:?}");
        assert!(doctor.status.success() && moved.status.success(), "{doctor:?} {moved:?}");
        assert_eq!(stranger.status.success(), user.is_empty(), "{stranger:?}");
    }
}

#[test]
fn requests_of_the_documents_are_answered_as_documented() {
    let page = document("docs/daemon.md");
    let script = blocks(&page, "sh")[0].text();
    let newcomer = Newcomer::new();
    let url = newcomer.up();
    let ran = newcomer.types(&script.replace("http://127.0.0.1:8377", &url));
    let shown = text(&newcomer.types("standpipe status my/api --json").stdout);
    let down = newcomer.types("standpipe down");
    assert!(ran.status.success(), "{ran:?}");
    assert!(shown.contains("\"leases\":[]") && shown.contains("\"used\":900"), "{shown}");
    assert!(down.status.success(), "{down:?}");
}

#[test]
fn a_daemon_detaches_and_stops_as_documented() {
    let begin = command("docs/daemon.md", "standpipe up");
    let end = command("docs/daemon.md", "standpipe down");
    let newcomer = Newcomer::new();
    let begun = newcomer.types(&format!("{begin} --listen 127.0.0.1:0"));
    let again = newcomer.types(&format!("{begin} --listen 127.0.0.1:0"));
    let ended = newcomer.types(&end);
    let none = newcomer.types(&end);
    assert!(begun.status.success() && text(&begun.stdout).contains("is up"), "{begun:?}");
    assert!(text(&again.stderr).contains("is already running"), "{again:?}");
    assert!(ended.status.success(), "{ended:?}");
    assert!(text(&none.stderr).contains("no daemon runs"), "{none:?}");
}

#[test]
fn the_script_in_the_readme_settles_its_lease() {
    let readme = document("README.md");
    let script = blocks(&readme, "sh")[0].text();
    let newcomer = Newcomer::new();
    let ran = newcomer.types(&script);
    assert!(ran.status.success(), "{ran:?}");
    let shown = text(&newcomer.types("standpipe status my/api --json").stdout);
    assert!(shown.contains("\"leases\":[]"), "{shown}");
    assert!(shown.contains("\"used\":900"), "what the script counts is limited: {shown}");
}

#[test]
fn the_script_in_the_command_line_page_works() {
    let page = document("docs/cli.md");
    let script = blocks(&page, "sh")[0].text();
    for call in ["true", "false"] {
        let newcomer = Newcomer::new();
        let ran = newcomer.types(&script.replace("./call-the-api", call));
        assert!(ran.status.success(), "{ran:?}");
        let shown = text(&newcomer.types("standpipe status my/api --json").stdout);
        let used = "\"used\":1";
        assert!(shown.contains(used) && shown.contains("\"leases\":[]"), "{shown}");
    }
}

/// Answers one request after another with these statuses, each with it as the body.
fn answers(statuses: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (status, stream) in statuses.iter().zip(listener.incoming()) {
            let mut stream = BufReader::new(stream.unwrap());
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).unwrap();
            }
            let head = "retry-after: 1\r\nconnection: close\r\ncontent-length: 3";
            let answer = format!("HTTP/1.1 {status} Status\r\n{head}\r\n\r\n{status}");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    url
}

/// A refused or failed call is made again, a wrong one is not, and no lease stays open.
#[test]
fn the_loop_of_the_command_line_page_retries_and_settles() {
    let page = document("docs/cli.md");
    let scripts = blocks(&page, "sh");
    let script = scripts.iter().find(|block| block.lines[0].starts_with("url=")).unwrap().text();
    let nothing_there = || {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        format!("http://{free}/")
    };
    for (url, prints, calls) in [
        (answers(&["429", "200"]), "status 200, 3 bytes", 1),
        (answers(&["503", "200"]), "status 200, 3 bytes", 2),
        (answers(&["400", "200"]), "status 400, 3 bytes", 1),
        (nothing_there(), "status 000, 0 bytes", 3),
    ] {
        let newcomer = Newcomer::new();
        let script = script.replace("https://api.example.com/", &url);
        assert!(script.contains(&url));
        let ran = newcomer.types(&format!("set -e\n{script}"));
        assert!(ran.status.success(), "{ran:?}");
        assert_eq!(text(&ran.stdout).trim(), prints, "{ran:?}");
        let shown = text(&newcomer.types("standpipe status my/api --json").stdout);
        let used = format!("\"used\":{}", calls * 1200);
        assert!(shown.contains("\"leases\":[]") && shown.contains(&used), "{shown}");
    }
}

#[test]
fn every_command_is_in_the_command_line_page_and_no_other() {
    let page = document("docs/cli.md");
    let help = text(&Newcomer::new().types("standpipe --help").stdout);
    let (_, commands) = help.split_once("Run programs:\n").unwrap();
    let (commands, _) = commands.split_once("On every command:\n").unwrap();
    let commands = commands.lines().filter_map(|line| line.strip_prefix("  "));
    let mut there: Vec<&str> =
        commands.filter_map(|line| line.split_ascii_whitespace().next()).collect();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `standpipe "));
    let mut named: Vec<&str> = rows.filter_map(|row| row.split([' ', '`']).next()).collect();
    there.sort_unstable();
    named.sort_unstable();
    assert_eq!(there, named);
}
