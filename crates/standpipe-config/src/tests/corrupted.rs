//! Corrupted files: each is either accepted or rejected with lines and remedies, without a panic.

use super::*;

/// A small deterministic generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }
}

/// Fragments that are likely to be invalid somewhere.
const FRAGMENTS: [&str; 40] = [
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\n",
    "\r",
    "\0",
    "#",
    "-1",
    "0",
    "1e999",
    "nan",
    "inf",
    "99999999999999999999999999",
    "0xffffffffffffffffffffffffffffffffffff",
    "\"\"",
    "\"%\"",
    "\"/\"",
    "\"5/m\"",
    "\"-0.5s\"",
    "\"1/0s\"",
    "true",
    "[]",
    "{}",
    "🚰",
    "\\u0000",
    "2024-01-01T00:00:00Z",
    "[pool.\"a/b\"]\n",
    "[agent.x]\n",
    "\"redis://:@/?@:\"",
    "\"400d\"",
    "\"100%\"",
    "\"1000000G/min\"",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
];

fn cut(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

fn changed(text: &str, dice: &mut Dice) -> String {
    let mut text = text.to_owned();
    for _ in 0..=dice.roll(4) {
        let a = cut(&text, dice.roll(text.len() + 1));
        let b = cut(&text, a + dice.roll(24));
        let (from, to) = (a.min(b), a.max(b));
        match dice.roll(5) {
            0 => text.replace_range(from..to, ""),
            1 => text.insert_str(from, FRAGMENTS[dice.roll(FRAGMENTS.len())]),
            2 => text.replace_range(from..to, FRAGMENTS[dice.roll(FRAGMENTS.len())]),
            3 => text.truncate(from),
            _ => {
                let copy = text[from..to].to_owned();
                let place = cut(&text, dice.roll(text.len() + 1));
                text.insert_str(place, &copy);
            }
        }
    }
    text
}

#[track_caller]
fn is_accepted_or_rejected(text: &str) {
    match Settings::parse(text, Some(Path::new("s.toml")), 0) {
        Ok(settings) => {
            for pool in settings.pools.keys() {
                let check = settings.pool_config(pool).map(|config| config.check());
                assert!(matches!(check, None | Some(Ok(()))), "{check:?} for {text:?}");
            }
            let shown = settings.to_toml(true);
            let again = Settings::parse(&shown, None, 0);
            assert!(again.is_ok(), "{}\n{shown}", again.unwrap_err());
        }
        Err(error) => {
            assert!(!error.problems.is_empty());
            let lines = text.split('\n').count();
            let mut last = 0;
            for problem in &error.problems {
                let line = problem.line.unwrap();
                assert!((1..=lines).contains(&line) && line >= last, "{problem} in {text:?}");
                assert!(!problem.what.is_empty() && !problem.remedy.is_empty());
                let message = problem.to_string();
                assert!(message.len() < 1_200, "{message}");
                assert!(!message.chars().any(char::is_control), "{message:?}");
                last = line;
            }
        }
    }
}

#[test]
fn files_with_random_changes() {
    let mut dice = Dice(0x5eed);
    for _ in 0..4_000 {
        is_accepted_or_rejected(&changed(FULL, &mut dice));
        is_accepted_or_rejected(&changed(Settings::example(), &mut dice));
    }
}

#[test]
fn every_value_replaced_by_every_fragment() {
    for fragment in FRAGMENTS {
        for (at, line) in FULL.lines().enumerate() {
            let Some((key, _)) = line.split_once(" = ") else { continue };
            let replaced = format!("{key} = {fragment}");
            let lines = FULL.lines().enumerate();
            let text: Vec<&str> =
                lines.map(|(n, line)| if n == at { &replaced } else { line }).collect();
            is_accepted_or_rejected(&text.join("\n"));
        }
    }
}

#[test]
fn files_truncated_anywhere() {
    for at in 0..FULL.len() {
        is_accepted_or_rejected(&FULL[..cut(FULL, at)]);
    }
}

#[test]
fn random_fragments() {
    let mut dice = Dice(42);
    for _ in 0..2_000 {
        let length = dice.roll(40);
        let text: String = (0..length).map(|_| FRAGMENTS[dice.roll(FRAGMENTS.len())]).collect();
        is_accepted_or_rejected(&text);
    }
    is_accepted_or_rejected(&"[".repeat(100_000));
    is_accepted_or_rejected(&format!("x = {}", "[".repeat(100_000)));
    is_accepted_or_rejected(&"a.".repeat(100_000));
    is_accepted_or_rejected(&format!("{} = 1", "k".repeat(100_000)));
}
