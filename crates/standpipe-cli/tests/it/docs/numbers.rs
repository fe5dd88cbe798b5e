//! Every number in the prose of README.md is generated or checked: what is left after the checked
//! sentences are taken out has none.

use standpipe_core::{Span, bounds};
use standpipe_servers::{Flavour, Options, Server};

use super::commands::GUIDE;
use super::page::{Newcomer, document, exists, text};

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
    GUIDE.iter().filter(|page| exists(page)).count()
}

/// What a stated rate admits at first: the margin in percent, and the calls of `30/min`.
fn margin_at_first() -> (u64, u64) {
    let newcomer = Newcomer::new();
    let held = newcomer.types("standpipe hold my/api --limit requests=30/min -- true");
    assert!(held.status.success(), "{held:?}");
    let shown = text(&newcomer.types("standpipe status my/api --json").stdout);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let limit = &shown["pools"][0]["limits"][0];
    let figure = |key: &str| limit[key].as_u64().unwrap();
    (figure("margin_per_mille") / 10, figure("effective"))
}

/// Sentences with numbers, each from its source.
fn claims() -> Vec<String> {
    let rust = value("Cargo.toml", "rust-version");
    let python = value("bindings/python/pyproject.toml", "requires-python");
    let silence = bounds::SILENCE.0 / Span::secs(60).0;
    let listen = standpipe::Settings::LISTEN;
    let (margin, admitted) = margin_at_first();
    vec![
        format!("Linux, Rust {rust} or newer"),
        format!("Rust {rust} or newer; Python {python} or newer for the package"),
        format!("Redis ≥ {} or Valkey", oldest_redis()),
        format!("after {} minutes of silence", WORDS[silence as usize]),
        format!("<http://{listen}/>"),
        format!("in {} pages", WORDS[guide_pages()]),
        format!("a margin of {margin} % under a stated rate at first"),
        format!("`--limit requests=30/min` admits {admitted} calls in a minute"),
        format!("at version {}", env!("CARGO_PKG_VERSION")),
        // 1,200 reserved and 900 used, which the script beside it does.
        "300 tokens are free again at once".to_owned(),
        format!("{} means equal shares", jain(&[4, 4, 4])),
    ]
}

/// Jain's index of fairness.
fn jain(shares: &[u64]) -> u64 {
    let sum: u64 = shares.iter().sum();
    sum * sum / (shares.len() as u64 * shares.iter().map(|share| share * share).sum::<u64>())
}

/// Sentences that other tests check: `picture.rs` of `standpipe-sim`, and `generated.rs`.
const ELSEWHERE: [&str; 2] = [
    "five agents share a key that allows 100 calls a minute. Each limits itself to 30 calls a \
     minute and makes up to four attempts; the SDK sends each attempt up to three times",
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
    // The target of a link is no claim.
    let left = left.replace("`margin = 0`", "");
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
