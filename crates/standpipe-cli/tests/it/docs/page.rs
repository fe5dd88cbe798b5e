//! Pages of the documentation, their fenced blocks, and a fresh home directory to run them in.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(super) fn document(name: &str) -> String {
    let path = root().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(super) fn exists(name: &str) -> bool {
    root().join(name).exists()
}

/// With `STANDPIPE_BLESS` writes a page; otherwise compares it.
pub(super) fn check(name: &str, now: &str) {
    let path = root().join(name);
    if std::env::var_os("STANDPIPE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, now).unwrap();
        return;
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(there == now, "{name} is stale; run `cargo xtask reference`");
}

/// Replaces what stands between a mark and the next `<!-- end -->` of a page.
pub(super) fn with_part(page: &str, mark: &str, now: &str) -> String {
    let mark = format!("<!-- {mark} -->\n\n");
    let (before, rest) = page.split_once(&mark).unwrap_or_else(|| panic!("no {mark}"));
    let (old, after) = rest.split_once("\n<!-- end -->").unwrap();
    assert!(!old.contains("<!--"), "{mark} has no end");
    format!("{before}{mark}{now}\n<!-- end -->{after}")
}

/// README.md and every page in `docs`, but for the decisions.
pub(super) fn pages() -> Vec<String> {
    let mut found = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                folders.extend((name != "docs/decisions").then_some(name));
            } else if name.ends_with(".md") {
                found.push(name);
            }
        }
    }
    found.sort_unstable();
    found
}

/// A fenced block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) language: String,
    pub(super) lines: Vec<String>,
}

impl Block {
    pub(super) fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// What a person types: the lines behind a prompt, with their continuations.
    pub(super) fn typed(&self) -> Vec<String> {
        let mut typed: Vec<String> = Vec::new();
        let mut continues = false;
        for line in &self.lines {
            match line.strip_prefix("$ ") {
                Some(line) => typed.push(line.to_owned()),
                None if continues => {
                    let last = typed.last_mut().unwrap();
                    *last = format!("{last}\n{line}");
                }
                None => {}
            }
            continues = line.ends_with('\\') && !typed.is_empty();
        }
        typed
    }
}

/// All fenced blocks of a page.
pub(super) fn all_blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(language) => {
                inside = true;
                found.push(Block { language: language.to_owned(), lines: Vec::new() });
            }
            None if inside => found.last_mut().unwrap().lines.push(line.to_owned()),
            None => {}
        }
    }
    found
}

/// The fenced blocks of a language.
pub(super) fn blocks(page: &str, language: &str) -> Vec<Block> {
    let mut blocks = all_blocks(page);
    blocks.retain(|block| block.language == language);
    blocks
}

/// A new user of this machine: nothing configured, the program on the path.
pub(super) struct Newcomer(pub(super) PathBuf);

impl Newcomer {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-docs-{}-{number}", std::process::id());
        let home = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&home).unwrap();
        Self(home)
    }

    pub(super) fn shell(&self, line: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_standpipe")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env_clear().env("PATH", path).env("HOME", &self.0);
        shell.current_dir(&self.0).stdin(Stdio::null());
        shell
    }

    pub(super) fn types(&self, line: &str) -> Output {
        self.shell(line).output().unwrap()
    }

    /// Starts a daemon and returns its URL.
    pub(super) fn up(&self) -> String {
        let begun = self.types("standpipe --json up --detach --listen 127.0.0.1:0");
        assert!(begun.status.success(), "{begun:?}");
        let said = text(&begun.stdout);
        let url = said.split("\"url\":\"").nth(1).and_then(|rest| rest.split('"').next());
        url.unwrap_or_else(|| panic!("{said}")).to_owned()
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
