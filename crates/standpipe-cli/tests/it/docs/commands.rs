//! Every fenced command of README.md and `docs` runs: each page as one script, from top to bottom,
//! in a home directory of its own; the pages of the guide also in one home, one after the other.
//!
//! A `toml` block whose first line is `# ~/.config/standpipe/standpipe.toml` is that file from
//! there on. The daemon of a page listens on a port of its own in place of 8377, and a private
//! Redis replaces redis.example:6379. Programs that stand for the reader's own end with 0.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use standpipe_servers::Server;

use super::page::{Block, Newcomer, all_blocks, document, pages, text};

/// Blocks that cannot run here: page, beginning of the block, reason.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "$ cargo install", "it compiles for minutes and installs for the user"),
    ("docs/guide/1-install.md", "$ cargo install", "it compiles for minutes and installs"),
    ("docs/guide/1-install.md", "$ pip install", "it compiles for minutes and installs"),
    ("docs/testing.md", "", "these commands build and test the whole workspace"),
    ("docs/guide/4-machines.md", "sudo install", "it needs root"),
    ("docs/recipes/github.md", "$ standpipe run --as triage", "it calls GitHub"),
    ("docs/recipes/github.md", "$ standpipe hold github/copilot", "it calls GitHub"),
    ("docs/recipes/bullmq.md", "try {", "it needs BullMQ and its own Redis"),
    ("docs/recipes/backup.md", "restic backup", "backup programs are not installed for the tests"),
    ("docs/recipes/backup.md", "rsync", "backup programs are not installed for the tests"),
];

/// Blocks that another test runs: page, beginning of the block, which test.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("docs/redis.md", "redis-server", "a_server_is_started_and_secured_in_one_command"),
    ("docs/clients.md", "", "tests/sdks/test_guides.py"),
    ("docs/cli.md", "url=", "the_loop_of_the_command_line_page_retries_and_settles"),
    ("docs/proxy.md", "$ eval", "tests/sdks/test_guides.py, with the same variables"),
];

/// Pages whose Python other tests run: `bindings/python/tests/test_docs.py`, and `tests/sdks`.
const PYTHON: &[&str] = &[
    "README.md",
    "docs/python.md",
    "docs/clients.md",
    "docs/recipes/celery.md",
    "docs/recipes/temporal.md",
    "docs/recipes/own-limiter.md",
];

/// Programs of the reader.
const PROGRAMS: &[&str] = &["call-the-api", "build.sh", "research.sh", "backup.sh", "nightly.sh"];

fn is_listed(list: &[(&str, &str, &str)], page: &str, block: &Block) -> bool {
    let first = block.lines.first().map_or("", String::as_str);
    list.iter().any(|(of, begins, _)| *of == page && first.starts_with(begins))
}

/// The commands of a page, one script per fenced block; empty if none runs here.
pub(super) fn steps(page: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut commands = 0;
    for block in all_blocks(&document(page)) {
        if is_listed(NOT_RUN, page, &block) || is_listed(ELSEWHERE, page, &block) {
            continue;
        }
        let lines = match block.language.as_str() {
            "console" => block.typed(),
            "sh" => vec![block.text()],
            "js" => vec![format!("cat > block.mjs <<'END'\n{}\nEND\nnode block.mjs", block.text())],
            "toml" if block.lines[0] == "# ~/.config/standpipe/standpipe.toml" => {
                steps.push(format!("cat > $config <<'END'\n$listen\n{}\nEND\n", block.text()));
                continue;
            }
            _ => continue,
        };
        commands += lines.len();
        steps.push(lines.iter().map(|line| format!("{line}\n")).collect());
    }
    if commands == 0 { Vec::new() } else { steps }
}

/// A newcomer with what the commands of a page need.
pub(super) struct Reader {
    pub(super) newcomer: Newcomer,
    /// The daemon's address, in place of the default one.
    address: String,
    redis: Option<Server>,
}

impl Reader {
    pub(super) fn new(steps: &[String]) -> Self {
        let newcomer = Newcomer::new();
        for program in PROGRAMS {
            let path = newcomer.0.join(program);
            std::fs::write(&path, "#!/bin/sh\nexit 0\n").unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        std::fs::write(newcomer.0.join("my_agent.py"), "print('done')\n").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let has = |word: &str| steps.iter().any(|step| step.contains(word));
        let redis = has("redis.example:6379").then(Server::start);
        let reader = Self { newcomer, address, redis };
        let config = reader.config();
        std::fs::create_dir_all(config.parent().unwrap()).unwrap();
        if ["standpipe up", "standpipe run", "8377"].into_iter().any(has) {
            let text = format!("{}\nopen_pools = true\n", reader.listen());
            std::fs::write(config, text).unwrap();
        }
        reader
    }

    fn config(&self) -> PathBuf {
        self.newcomer.0.join(".config/standpipe/standpipe.toml")
    }

    fn listen(&self) -> String {
        format!("listen = \"{}\"", self.address)
    }

    /// Runs commands of the page in this home.
    pub(super) fn runs(&self, script: &str) -> Output {
        let redis = self.redis.as_ref().map_or_else(String::new, Server::address);
        let script = script.replace("$listen", &self.listen());
        let script = script.replace("127.0.0.1:8377", &self.address);
        let script = script.replace("redis.example:6379", &redis);
        let script = format!("set -ex\nconfig={}\n{script}", self.config().display());
        std::fs::write(self.newcomer.0.join("page.sh"), script).unwrap();
        self.newcomer.types("exec timeout 300 sh page.sh")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.newcomer.types("standpipe down");
    }
}

/// Runs the script of a page. Returns what is wrong with it.
fn run(page: &str) -> Result<(), String> {
    let steps = steps(page);
    if steps.is_empty() {
        return Ok(());
    }
    let ran = Reader::new(&steps).runs(&steps.concat());
    if ran.status.success() {
        return Ok(());
    }
    Err(format!("{page}: {}\n{}", ran.status, text(&ran.stderr)))
}

/// The pages of the guide, in their order.
pub(super) const GUIDE: [&str; 5] = [
    "docs/guide/1-install.md",
    "docs/guide/2-one-machine.md",
    "docs/guide/3-agents.md",
    "docs/guide/4-machines.md",
    "docs/guide/5-operating.md",
];

/// What one page leaves, its file above all, is there for the next.
#[test]
fn the_guide_works_in_one_home() {
    let pages = GUIDE.map(|page| (page, steps(page)));
    let all: Vec<String> = pages.iter().flat_map(|(_, steps)| steps.clone()).collect();
    let home = Reader::new(&all);
    for (page, steps) in &pages {
        if page.ends_with("3-agents.md") {
            // Until here the reader has no file: the one of this test only moves the daemon's port.
            home.runs("standpipe down || true\nrm $config");
        }
        let ran = home.runs(&steps.concat());
        let printed = text(&ran.stderr);
        assert!(ran.status.success(), "{page}: {}\n{printed}", ran.status);
        for note in ["keeps the limits", "has one more limit"] {
            assert!(!printed.contains(note), "{page} limits a pool of an earlier page:\n{printed}");
        }
    }
}

#[test]
fn every_command_of_the_pages_runs() {
    let pages = pages();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = pages.iter().map(|page| scope.spawn(|| run(page))).collect();
        running.into_iter().filter_map(|page| page.join().unwrap().err()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A list that names blocks which are gone would let others pass unseen.
#[test]
fn the_lists_of_exceptions_name_blocks_that_exist() {
    for entry in NOT_RUN.iter().chain(ELSEWHERE) {
        let blocks = all_blocks(&document(entry.0));
        let named = blocks.iter().any(|block| is_listed(&[*entry], entry.0, block));
        assert!(named, "{entry:?}");
    }
}

/// Each language is either run by a test or is no command.
#[test]
fn every_fenced_block_has_a_language_that_a_test_knows() {
    // Python and JavaScript: bindings/python/tests and tests/sdks. Rust: `cargo test --doc`.
    let known = ["console", "sh", "toml", "text", "json", "python", "js", "rust", "yaml", ""];
    for page in pages() {
        for block in all_blocks(&document(&page)) {
            assert!(known.contains(&block.language.as_str()), "{page}: {}", block.language);
            let runs = match block.language.as_str() {
                "python" => PYTHON.contains(&&*page),
                "rust" => page == "docs/rust.md",
                _ => true,
            };
            assert!(runs, "{page}: no test runs this:\n{}", block.text());
        }
    }
}

#[test]
fn every_configuration_of_the_pages_is_valid() {
    for page in pages() {
        for block in all_blocks(&document(&page)).iter().filter(|block| block.language == "toml") {
            let newcomer = Newcomer::new();
            // The reader has made the token that the page names.
            std::fs::write(newcomer.0.join("token"), "a-token-of-24-characters").unwrap();
            let text_here = block.text().replace("/etc/standpipe/token", "token");
            std::fs::write(newcomer.0.join("standpipe.toml"), text_here).unwrap();
            let checked = newcomer.types("standpipe --config standpipe.toml config check");
            assert!(checked.status.success(), "{page}: {}", text(&checked.stderr));
        }
    }
}
