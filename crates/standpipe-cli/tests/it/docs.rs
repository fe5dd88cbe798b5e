//! The commands in the documents work as documented.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use standpipe_servers::Server;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The fenced blocks of a language, line by line.
fn blocks(text: &str, language: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(fence) => {
                inside = fence == language && !inside;
                if inside {
                    found.push(Vec::new());
                }
            }
            None if inside => found.last_mut().unwrap().push(line.to_owned()),
            None => {}
        }
    }
    found
}

/// What a person types in a block: the lines behind a prompt.
fn typed(block: &[String]) -> Vec<&str> {
    block.iter().filter_map(|line| line.strip_prefix("$ ")).collect()
}

/// A fresh machine for a new user: nothing configured, the program on the path.
struct Newcomer(PathBuf);

impl Newcomer {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-docs-{}-{number}", std::process::id());
        let home = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&home).unwrap();
        Self(home)
    }

    fn shell(&self, line: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_standpipe")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env_clear().env("PATH", path).env("HOME", &self.0);
        shell.current_dir(&self.0).stdin(Stdio::null());
        shell
    }

    fn types(&self, line: &str) -> Output {
        self.shell(line).output().unwrap()
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_quick_start_works() {
    let readme = document("README.md");
    let blocks = blocks(&readme, "console");
    let [install, run, semaphore, rate, status, up, ..] = blocks.as_slice() else {
        panic!("{blocks:?}")
    };
    assert_eq!(typed(up), ["cargo run --release -- up"]);
    assert_eq!(typed(install), ["cargo install --path crates/standpipe-cli"]);
    // `tests/sdks` runs a program like that.
    assert_eq!(typed(run), ["standpipe run -- python my_agent.py"]);
    let newcomer = Newcomer::new();

    // In two shells: the second waits for the first.
    let [first, second] = typed(semaphore)[..] else { panic!("{semaphore:?}") };
    let marked = first.replace("sleep 2", "sh -c 'echo begun; sleep 1; echo ended'");
    let mut one = newcomer.shell(&marked).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(one.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert_eq!(line, "begun\n");
    let other = newcomer.types(second);
    assert_eq!(text(&other.stdout), "my turn\n");
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert_eq!(line, "begun\nended\n", "the first was over when the second ran");
    assert!(one.wait().unwrap().success() && other.status.success());

    let [rate] = typed(rate)[..] else { panic!("{rate:?}") };
    let looped = newcomer.types(rate);
    let calls: Vec<String> = (1..=6).map(|call| format!("call {call}")).collect();
    assert_eq!(text(&looped.stdout).lines().collect::<Vec<_>>(), calls);

    let [status] = typed(status)[..] else { panic!("{status:?}") };
    let shown = text(&newcomer.types(status).stdout);
    for word in ["my/slots", "web/api", "0 of 1", "of 4 per 2s", "idle"] {
        assert!(shown.contains(word), "{word} in {shown}");
    }
}

#[test]
fn two_machines_share_a_ledger_as_documented() {
    let readme = document("README.md");
    let blocks = blocks(&readme, "console");
    let lines = blocks.iter().find(|block| block[0].contains("STORE=redis://")).unwrap();
    let [store, first, second, rate, status] = typed(lines)[..] else { panic!("{lines:?}") };
    let server = Server::start();
    let store = store.replace("127.0.0.1:6379", &server.address());
    let at = |line: &str| format!("{store}; {line}");
    let (here, there) = (Newcomer::new(), Newcomer::new());

    let marked = first.replace("sleep 2", "sh -c 'echo begun; sleep 1; echo ended'");
    let mut one = here.shell(&at(&marked)).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(one.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert_eq!(line, "begun\n");
    let other = there.types(&at(second));
    assert_eq!(text(&other.stdout), "my turn\n");
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert_eq!(line, "begun\nended\n", "the first was over when the second ran");
    assert!(one.wait().unwrap().success() && other.status.success());

    let looped = here.types(&at(rate));
    let calls: Vec<String> = (1..=6).map(|call| format!("call {call}")).collect();
    assert_eq!(text(&looped.stdout).lines().collect::<Vec<_>>(), calls);
    let shown = text(&there.types(&at(status)).stdout);
    for word in ["my/slots", "web/api", "0 of 1", "of 4 per 2s", "idle"] {
        assert!(shown.contains(word), "{word} in {shown}");
    }
}

#[test]
fn a_server_is_started_and_secured_in_one_command() {
    let page = document("docs/redis.md");
    let scripts = blocks(&page, "sh");
    for (script, user) in [(&scripts[0], ""), (&scripts[1], "standpipe:a-long-password@")] {
        let newcomer = Newcomer::new();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let line = script.join("\n").replace("6379", &free.to_string());
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

/// A daemon of a newcomer's own. Answers where it listens.
fn up(newcomer: &Newcomer) -> String {
    let begun = newcomer.types("standpipe --json up --detach --listen 127.0.0.1:0");
    assert!(begun.status.success(), "{begun:?}");
    let said = text(&begun.stdout);
    let url = said.split("\"url\":\"").nth(1).and_then(|rest| rest.split('"').next());
    url.unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn requests_of_the_documents_are_answered_as_documented() {
    let page = document("docs/daemon.md");
    let script = blocks(&page, "sh")[0].join("\n");
    let newcomer = Newcomer::new();
    let url = up(&newcomer);
    let ran = newcomer.types(&script.replace("http://127.0.0.1:8377", &url));
    let shown = text(&newcomer.types("standpipe status my/api --json").stdout);
    let down = newcomer.types("standpipe down");
    assert!(ran.status.success(), "{ran:?}");
    assert!(shown.contains("\"leases\":[]") && shown.contains("\"used\":900"), "{shown}");
    assert!(down.status.success(), "{down:?}");
}

#[test]
fn a_daemon_detaches_and_stops_as_documented() {
    let page = document("docs/daemon.md");
    let lines = blocks(&page, "console");
    let [begin, end] = typed(&lines[0])[..] else { panic!("{lines:?}") };
    let newcomer = Newcomer::new();
    let begun = newcomer.types(&format!("{begin} --listen 127.0.0.1:0"));
    let again = newcomer.types(&format!("{begin} --listen 127.0.0.1:0"));
    let ended = newcomer.types(end);
    let none = newcomer.types(end);
    assert!(begun.status.success() && text(&begun.stdout).contains("is up"), "{begun:?}");
    assert!(text(&again.stderr).contains("is already running"), "{again:?}");
    assert!(ended.status.success(), "{ended:?}");
    assert!(text(&none.stderr).contains("no daemon runs"), "{none:?}");
}

#[test]
fn the_script_in_the_readme_settles_its_lease() {
    let readme = document("README.md");
    let script = blocks(&readme, "sh")[0].join("\n");
    let newcomer = Newcomer::new();
    let ran = newcomer.types(&script);
    assert!(ran.status.success(), "{ran:?}");
    let shown = text(&newcomer.types("standpipe status anthropic/sonnet --json").stdout);
    assert!(shown.contains("\"leases\":[]"), "{shown}");
    assert!(shown.contains("\"used\":900"), "what the script counts is limited: {shown}");
    assert!(newcomer.types("standpipe config init").status.success());
    assert!(newcomer.types("standpipe config check").status.success());
}

#[test]
fn the_script_in_the_command_line_page_works() {
    let page = document("docs/cli.md");
    let script = blocks(&page, "sh")[0].join("\n");
    for (call, used) in [("true", "\"used\":1"), ("false", "\"used\":0")] {
        let newcomer = Newcomer::new();
        let ran = newcomer.types(&script.replace("./call-the-api", call));
        assert!(ran.status.success(), "{ran:?}");
        let shown = text(&newcomer.types("standpipe status my/api --json").stdout);
        assert!(shown.contains(used) && shown.contains("\"leases\":[]"), "{shown}");
    }
}

#[test]
fn audit_and_doctor_print_what_the_command_line_page_shows() {
    let page = document("docs/cli.md");
    let scripts = blocks(&page, "sh");
    let of = |word: &str| {
        let found = scripts.iter().map(|block| block.join("\n")).find(|s| s.contains(word));
        found.unwrap_or_else(|| panic!("no script with {word}"))
    };
    let newcomer = Newcomer::new();
    let audited = newcomer.types(&of("standpipe audit"));
    assert!(audited.status.success(), "{audited:?}");
    let shown = blocks(&page, "text")[0].join("\n") + "\n";
    // A minute may end between two of its calls.
    let averages = |text: &str| text.lines().filter(|line| !line.contains('%')).count();
    let said = text(&audited.stdout);
    assert_eq!(averages(&said), averages(&shown), "{said}");
    assert_eq!(said.lines().next(), shown.lines().next());
    let looked = newcomer.types(&of("standpipe doctor"));
    assert!(looked.status.success(), "{looked:?}");
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

#[test]
fn every_example_of_the_configuration_page_is_right() {
    let page = document("docs/config.md");
    let examples = blocks(&page, "toml");
    assert!(examples.len() >= 3);
    for example in examples {
        let newcomer = Newcomer::new();
        std::fs::write(newcomer.0.join("standpipe.toml"), example.join("\n")).unwrap();
        let checked = newcomer.types("standpipe --config standpipe.toml config check");
        assert!(checked.status.success(), "{example:#?}: {}", text(&checked.stderr));
    }
}
