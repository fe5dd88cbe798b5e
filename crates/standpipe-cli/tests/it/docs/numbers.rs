//! Every number in the prose of README.md is generated or checked: what is left after the checked
//! sentences are taken out has none. The figures of the page about tuning are in tables.

use standpipe_core::{Span, bounds};
use standpipe_servers::{Flavour, Options, Server};

use std::collections::BTreeSet;

use super::commands::GUIDE;
use super::generated::{storm_minutes, thousands};
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

/// The cells of the first row of a text that begins with this one, without the text in brackets.
fn row(text: &str, begins: &str) -> Vec<String> {
    let begins = format!("| {begins} |");
    let row = text.lines().find(|line| line.starts_with(&begins));
    let row = row.unwrap_or_else(|| panic!("no {begins}"));
    let cell = |cell: &str| cell.split(" (").next().unwrap_or_default().trim().to_owned();
    row.split('|').map(cell).collect()
}

/// The digits of a cell: `310.7 s` is 3107, and `1,348` is 1348.
fn digits(cell: &str) -> u64 {
    cell.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// What the table of the simulator's page about five agents shows.
fn five_agents() -> String {
    let page = document("docs/concepts/simulator.md");
    let (_, table) = page.split_once("<!-- table: five-agents -->").unwrap();
    let of = |name: &str| row(table, name)[2..4].iter().map(|cell| digits(cell)).collect();
    let [wanted, sent, lost, ends]: [Vec<u64>; 4] = [
        "calls wanted",
        "calls sent",
        "given up after the last attempt",
        "the last call ends after",
    ]
    .map(of);
    assert_eq!((wanted[1], lost[1]), (sent[1], 0), "through Standpipe all calls succeed at once");
    let later = (100 * ends[1] + ends[0] / 2) / ends[0] - 100;
    format!(
        "want {} calls. Without Standpipe they send {}, and {} are lost; with it they send {}, all \
         succeed, and the last one ends {later} % later",
        wanted[0],
        thousands(sent[0]),
        lost[0],
        sent[1]
    )
}

/// What the benchmarks measured.
fn speed() -> [String; 2] {
    let results = document("bench/RESULTS.md");
    let pair = digits(&row(&results, "Standpipe through the library")[2]);
    let proxy = row(&results, "1 KB");
    let [direct, nginx, ours] = [2, 3, 4].map(|at| digits(&proxy[at]));
    let added = |by: u64| format!("0.{:02} ms", (by - direct + 5) / 10);
    [
        format!("A reserve and commit take {} µs on the file store", (pair + 50) / 100),
        format!(
            "adds about {} to a 1 KB request at the median; nginx adds {}",
            added(ours),
            added(nginx)
        ),
    ]
}

/// How long the runs of the storm took.
fn storm() -> String {
    let minutes = storm_minutes();
    let word = |minutes: u64| WORDS[usize::try_from(minutes).unwrap()];
    assert_eq!(minutes.ramp, 1, "the first minute");
    format!(
        "The first three columns count the whole run ({} minutes with the SDK's retries, {} \
         through Standpipe)",
        word(minutes.ramp + minutes.alone),
        word(minutes.ramp + minutes.through)
    )
}

/// Sentences with numbers, each from its source.
fn claims() -> Vec<String> {
    let rust = value("Cargo.toml", "rust-version");
    let silence = bounds::SILENCE.0 / Span::secs(60).0;
    let listen = standpipe::Settings::LISTEN;
    let (margin, admitted) = margin_at_first();
    let wait = standpipe::DEFAULT_TIMEOUT.as_secs() / 60;
    let mut claims = vec![
        storm(),
        five_agents(),
        format!("A call waits for up to {wait} minutes"),
        format!("on Linux with Rust {rust} or newer"),
        format!("after {} minutes of silence", WORDS[silence as usize]),
        format!("<http://{listen}/>"),
        format!("in {} pages", WORDS[guide_pages()]),
        format!("of {margin} % under a stated rate at first"),
        format!("limit 30, usable {admitted}"),
        format!("at version {}", env!("CARGO_PKG_VERSION")),
        // 1,200 reserved and 900 used, which the script beside it does.
        "300 tokens are free again at once".to_owned(),
    ];
    claims.extend(speed());
    claims
}

/// The same for other pages.
fn claims_elsewhere() -> [(&'static str, String); 3] {
    let [rust, python] = [
        value("Cargo.toml", "rust-version"),
        value("bindings/python/pyproject.toml", "requires-python"),
    ];
    [
        ("docs/guide/1-install.md", format!("Rust {rust} or newer")),
        ("docs/guide/1-install.md", format!("Python {python} or newer")),
        ("docs/concepts/fifty-processes.md", format!("{} means equal shares", jain(&[4, 4, 4]))),
    ]
}

/// Jain's index of fairness.
fn jain(shares: &[u64]) -> u64 {
    let sum: u64 = shares.iter().sum();
    sum * sum / (shares.len() as u64 * shares.iter().map(|share| share * share).sum::<u64>())
}

/// Sentences that other tests check: `picture.rs` of `standpipe-sim`, and `generated.rs`.
const ELSEWHERE: [&str; 3] = [
    // A date, which no test can repeat.
    "from each project's documentation in 2026-11",
    "Five agents in the",
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
fn the_numbers_of_other_pages_are_those_of_the_program() {
    for (page, claim) in claims_elsewhere() {
        is_on(page, &claim);
    }
}

#[test]
fn the_oldest_redis_of_the_page_is_the_one_that_is_tested() {
    is_on("docs/redis.md", &format!("Redis {} or newer, or Valkey", oldest_redis()));
}

fn is_on(page: &str, claim: &str) {
    let text = document(page).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(claim), "not in {page}: {claim}");
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

/// The figures of a text: numbers in tenths, numbers of refusals, and what they replace.
fn figures(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split([' ', '|', '\n']).filter(|word| !word.is_empty()).collect();
    let number = |at: usize| -> Option<String> {
        let plain = words.get(at)?.trim_matches([',', '.', ';', ':', '(', ')']);
        let is_number = plain.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
        (is_number && !plain.is_empty()).then(|| plain.trim_end_matches(".0").to_owned())
    };
    let is_figure = |at: usize, number: &str| {
        let of = words.get(at + 1).is_some_and(|next| next.starts_with("refusal"));
        let instead = at > 1
            && [["instead", "of"], ["without", "it"]].iter().any(|pair| words[at - 2..at] == *pair);
        number.contains('.') || of || instead || words[at].contains(".0")
    };
    (0..words.len()).filter_map(|at| number(at).filter(|number| is_figure(at, number))).collect()
}

/// A figure that a new run of the simulator changes must change on this page, too.
#[test]
fn the_figures_of_the_page_about_tuning_are_in_the_tables_of_the_simulator() {
    let mut known = BTreeSet::new();
    for page in ["docs/concepts/simulator.md", "docs/concepts/policies.md"] {
        let text = document(page);
        let cells = text
            .lines()
            .filter(|line| line.starts_with("| "))
            .flat_map(|row| row.split([' ', ',']));
        known.extend(cells.map(|cell| cell.trim_end_matches(".0").to_owned()));
    }
    let tuning = document("docs/concepts/tuning.md");
    let outside: Vec<&str> = tuning.split("```").step_by(2).collect();
    let found = figures(&outside.concat());
    assert!(found.len() >= 50, "{found:?}");
    let stale: Vec<&String> = found.iter().filter(|figure| !known.contains(*figure)).collect();
    assert!(stale.is_empty(), "figures of tuning.md that are in no table: {stale:?}");
}
