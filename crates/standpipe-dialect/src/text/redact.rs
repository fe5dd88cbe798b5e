//! Makes a provider's message fit for the journal: one short line without secrets.
//!
//! Invariant: no part of a word that looks like a key, a token or an account reaches the output,
//! not even its start.

use crate::text::is_invisible;

/// Replaces a secret.
const MASK: &str = "[masked]";

/// How many characters are read for each one that is kept.
const READ_FACTOR: usize = 10;

/// Prefixes of keys and account ids, in lower case.
const SECRET_PREFIXES: [&str; 29] = [
    "sk-",
    "sk_",
    "rk_",
    "pk_",
    "pk-",
    "whsec_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "xoxa-",
    "xoxb-",
    "xoxe-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "gsk_",
    "csk-",
    "shpat_",
    "shpss_",
    "aiza",
    "akia",
    "eyj",
    "org-",
    "proj_",
    "wrkspc_",
];

/// Authorization schemes: a secret follows.
const AUTH_SCHEMES: [&str; 2] = ["bearer", "basic"];

/// Endings of names whose values are secret: `x-api-key=…`.
const PRIVATE_NAMES: [&str; 6] = ["password", "passwd", "secret", "token", "key", "credential"];

/// The shortest run of letters and digits together that counts as a key.
const MIN_KEY: usize = 16;

/// The text on one line, secrets masked, of at most `most` characters.
pub(crate) fn redact(text: &str, most: usize) -> String {
    let mut read: Vec<char> = text.chars().take(most * READ_FACTOR).collect();
    if text.chars().nth(most * READ_FACTOR).is_some() {
        // Drop the last word: it is cut, and a truncated key is not recognised as one.
        let end = read.iter().rposition(|c| is_separator(*c)).map_or(0, |at| at + 1);
        read.truncate(end);
    }
    let mut out = String::new();
    let (mut after_scheme, mut after_private_name) = (false, false);
    for piece in pieces(&read) {
        if piece.first().is_some_and(|c| is_separator(*c)) {
            push_separators(&mut out, piece);
            continue;
        }
        let word: String = piece.iter().collect();
        let is_assigned =
            after_private_name && (out.ends_with(['=', ':']) || out.ends_with("\":\""));
        if is_secret(&word) || is_assigned || (after_scheme && word.len() >= 8) {
            out.push_str(MASK);
        } else {
            out.push_str(&word);
        }
        after_scheme = AUTH_SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
        let lower = word.to_ascii_lowercase();
        after_private_name = PRIVATE_NAMES.iter().any(|end| lower.ends_with(end));
    }
    shortened(out.trim(), most)
}

/// Splits a text into words and the runs of separators between them.
fn pieces(text: &[char]) -> impl Iterator<Item = &[char]> {
    text.chunk_by(|a, b| is_separator(*a) == is_separator(*b))
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || is_invisible(c) || "\"'`,;:()<>[]{}=&?/|\\".contains(c)
}

/// Appends separators; blank and invisible ones become a single space.
fn push_separators(out: &mut String, piece: &[char]) {
    for c in piece {
        if !c.is_whitespace() && !is_invisible(*c) {
            out.push(*c);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
}

fn is_secret(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    // A prefix counts wherever a part of the word begins, as in `v1.sk-…`.
    let is_start = |at: usize| {
        let before = lower[..at].chars().next_back();
        !before.is_some_and(char::is_alphanumeric)
    };
    let starts = lower.char_indices().map(|(at, _)| at).filter(|at| is_start(*at));
    let has_prefix =
        |rest: &str| SECRET_PREFIXES.iter().any(|s| rest.len() > s.len() && rest.starts_with(s));
    starts.map(|at| &lower[at..]).any(has_prefix)
        || is_address(&lower)
        || is_uuid(lower.trim_matches('.'))
        || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random)
}

/// A long run of letters and digits together, which no natural word is.
fn is_random(run: &str) -> bool {
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    run.len() >= MIN_KEY && digits > 0 && digits < run.len()
}

/// An email address, or the credentials before a host in a URL.
fn is_address(word: &str) -> bool {
    word.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.'))
}

fn is_uuid(word: &str) -> bool {
    let mut parts = word.split('-');
    let hex = |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_hexdigit());
    [8, 4, 4, 4, 12].into_iter().all(|len| parts.next().is_some_and(|part| hex(part, len)))
        && parts.next().is_none()
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_accounts_are_masked() {
        for secret in [
            "sk-ant-api03-abcDEF",
            "sk-proj-1",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "github_pat_11ABC",
            "org-x",
            "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
            "AKIAIOSFODNN7EXAMPLE",
            "xoxb-1234-abcd",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "wrkspc_01JwQvzr7rXLA5AGx3HKfFUJ",
            "a1b2c3d4e5f6a7b8c9",
        ] {
            for text in [
                format!("no: {secret}."),
                format!("(org: {secret}, model: m)"),
                format!("key=\"{secret}\""),
                format!("https://x/y?key={secret}&z=1"),
            ] {
                let redacted = redact(&text, 200);
                assert!(redacted.contains(MASK), "{text} -> {redacted}");
                let inside = secret.trim_start_matches(|c: char| !c.is_alphanumeric());
                assert!(!redacted.contains(inside), "{text} -> {redacted}");
            }
        }
        for (text, secret) in [
            ("password=hunter2password no", "hunter2"),
            ("x-api-key=hunter2 no", "hunter2"),
            ("api_key=abc123DEF no", "abc123"),
            (r#"{"client_secret":"plain"}"#, "plain"),
            ("https://user:hunter2@api.example.com/v1", "hunter2"),
            ("mail to ops@example.com", "ops"),
        ] {
            assert!(!redact(text, 200).contains(secret), "{text}");
        }
        assert_eq!(
            redact("Authorization: Bearer opaqueword", 200),
            "Authorization: Bearer [masked]"
        );
    }

    #[test]
    fn plain_words_stay() {
        for text in [
            "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29012.",
            "model: claude-3-5-sonnet-20241022",
            "generativelanguage.googleapis.com/generate_content_free_tier_input_token_count",
            "Too many tokens, please wait before trying again.",
        ] {
            assert_eq!(redact(text, 200), text);
        }
    }

    #[test]
    fn it_is_one_short_line() {
        assert_eq!(redact(" a\r\n\tb\u{0}\u{1b}[31mc \u{202e}d", 200), "a b [31mc d");
        let long = redact(&"word ".repeat(100), 20);
        assert_eq!(long.chars().count(), 20);
        assert!(long.ends_with('…'));
        assert_eq!(redact("", 20), "");
    }

    #[test]
    fn a_key_that_is_cut_leaves_nothing() {
        let text = format!("{}{}", "sk-aaaa ".repeat(24), "b1".repeat(500));
        assert!(!redact(&text, 20).contains('b'));
    }
}
