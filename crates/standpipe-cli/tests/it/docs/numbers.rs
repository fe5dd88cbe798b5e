//! Every number in the prose of README.md is generated or checked: what is left after the checked
//! sentences are taken out has none.

use standpipe_core::{Span, bounds};
use standpipe_servers::{Flavour, Options, Server};

use super::page::{document, exists};

/// Words for numbers that a page may use.
const WORDS: [&str; 11] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/// Figures that are names: the status code and the signal.
const NAMES: [&str; 3] = ["(429)", "429", "`kill -9`"];

/// The value of a key in a TOML file, without comparison and quotes.
fn value(file: &str, key: &str) -> String {
    let text = document(file);
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_prefix('='));
    let value = line.unwrap_or_else(|| panic!("{file}: no {key}"));
    value.trim().trim_matches(['"', '>', '=']).to_owned()
}

/// The oldest server that the tests of the store run on.
fn oldest_redis() -> String {
    let server = Server::start_with(Options { flavour: Flavour::Old, ..Options::default() });
    let version = server.info("redis_version").unwrap();
    version.rsplit_once('.').unwrap().0.to_owned()
}

fn guide_pages() -> usize {
    let pages = ["1-install", "2-one-machine", "3-agents", "4-machines", "5-operating"];
    let is_there = |page: &&str| exists(&format!("docs/guide/{page}.md"));
    pages.iter().filter(|page| is_there(page)).count()
}

/// Sentences with numbers, each from its source.
fn claims() -> Vec<String> {
    let rust = value("Cargo.toml", "rust-version");
    let python = value("bindings/python/pyproject.toml", "requires-python");
    let silence = bounds::SILENCE.0 / Span::secs(60).0;
    let listen = standpipe::Settings::LISTEN;
    vec![
        format!("Linux, Rust {rust} or newer"),
        format!("Rust {rust} or newer; Python {python} or newer for the package"),
        format!("Redis ≥ {} or Valkey", oldest_redis()),
        format!("after {} minutes of silence", WORDS[silence as usize]),
        format!("<http://{listen}/>"),
        format!("in {} pages", WORDS[guide_pages()]),
        // 1,200 reserved and 900 used, which the script beside it does.
        "300 tokens are free again at once".to_owned(),
    ]
}

/// Sentences that other tests check: `picture.rs` of `standpipe-sim`, and `generated.rs`.
const ELSEWHERE: [&str; 2] = [
    "Five agents, each limited to 30 calls a minute, on a key that allows 100; in the \
     [simulator](docs/concepts/saying-no.md), with the usual retries (four attempts, each with \
     the SDK's own two)",
    "50 processes of Anthropic's Node SDK on one key, against a local server that enforces 600 \
     requests and 480,000 input tokens a minute",
];

/// The page without fenced blocks and generated parts, in one line.
fn prose(page: &str) -> String {
    let (mut inside, mut generated) = (false, false);
    let mut prose = String::new();
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        if !inside && line.starts_with("<!-- ") {
            generated = line != "<!-- end -->";
        } else if is_fence {
            inside = !inside;
        } else if !inside && !generated {
            prose += &format!("{} ", line.trim());
        }
    }
    prose.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_number_in_the_readme_is_generated_or_checked() {
    let readme = document("README.md");
    let mut left = prose(&readme);
    let fenced = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    for claim in claims().iter().map(String::as_str).chain(ELSEWHERE) {
        assert!(fenced.contains(claim), "not in README.md: {claim}");
        left = left.replace(claim, "");
    }
    // The target of a link is no claim, and `--limit requests=30/min` is an example of an option.
    let left = left.replace("`--limit requests=30/min`", "");
    let words = left.split([' ', '|']).filter(|word| !word.contains("](") && !word.contains('<'));
    let is_number = |word: &&str| {
        let plain = word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
        // "one" and "One" are pronouns and articles of the page.
        let is_word = WORDS.contains(&plain.as_str()) && plain != "one";
        (word.contains(|letter: char| letter.is_ascii_digit()) || is_word)
            && !NAMES.iter().any(|name| word.contains(name) || name.contains(word))
    };
    let unchecked: Vec<&str> = words.filter(is_number).collect();
    assert!(unchecked.is_empty(), "no test checks these numbers of README.md: {unchecked:?}");
}
