//! A provider's words, made fit for a journal: short, on one line, and without secrets.
//!
//! Invariant: a word that looks like a key, a token or an account never gets through, not even its
//! beginning.

/// What takes the place of a secret.
const MASK: &str = "[masked]";

/// How much of a text is looked at for each character that is kept.
const LOOK: usize = 10;

/// What keys and accounts begin with, in lower case.
const SECRETS: [&str; 29] = [
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

/// Words after which a secret follows.
const ANNOUNCE: [&str; 2] = ["bearer", "basic"];

/// What is said to have a value that is nobody's business.
const PRIVATE: [&str; 6] = ["password", "passwd", "secret", "token", "key", "credential"];

/// The shortest run of letters and digits together that is taken for a key.
const RUN: usize = 16;

/// The text on one line, secrets masked, of at most `most` characters.
pub(crate) fn scrubbed(text: &str, most: usize) -> String {
    let mut looked: Vec<char> = text.chars().take(most * LOOK).collect();
    if text.chars().nth(most * LOOK).is_some() {
        // The last word is cut, and a cut key does not look like one.
        let end = looked.iter().rposition(|c| is_between(*c)).map_or(0, |at| at + 1);
        looked.truncate(end);
    }
    let mut out = String::new();
    let (mut after_announce, mut private) = (false, false);
    for piece in pieces(&looked) {
        if piece.first().is_some_and(|c| is_between(*c)) {
            push_between(&mut out, piece);
            continue;
        }
        let word: String = piece.iter().collect();
        let assigned = private && (out.ends_with(['=', ':']) || out.ends_with("\":\""));
        if is_secret(&word) || assigned || (after_announce && word.len() >= 8) {
            out.push_str(MASK);
        } else {
            out.push_str(&word);
        }
        after_announce = ANNOUNCE.iter().any(|announce| word.eq_ignore_ascii_case(announce));
        let lower = word.to_ascii_lowercase();
        private = PRIVATE.iter().any(|end| lower.ends_with(end));
    }
    shortened(out.trim(), most)
}

/// Runs of characters that are between words, and words.
fn pieces(text: &[char]) -> impl Iterator<Item = &[char]> {
    text.chunk_by(|a, b| is_between(*a) == is_between(*b))
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || is_hidden(c) || "\"'`,;:()<>[]{}=&?/|\\".contains(c)
}

/// Control characters, and those that turn or hide text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || c == '\u{feff}'
}

/// Whatever is not printed becomes a space, and spaces in a row become one.
fn push_between(out: &mut String, piece: &[char]) {
    for c in piece {
        if !c.is_whitespace() && !is_hidden(*c) {
            out.push(*c);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
}

fn is_secret(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let is_start = |at: usize| {
        let before = lower[..at].chars().next_back();
        !before.is_some_and(char::is_alphanumeric)
    };
    let starts = lower.char_indices().map(|(at, _)| at).filter(|at| is_start(*at));
    let named = |rest: &str| SECRETS.iter().any(|s| rest.len() > s.len() && rest.starts_with(s));
    starts.map(|at| &lower[at..]).any(named)
        || is_address(&lower)
        || is_uuid(lower.trim_matches('.'))
        || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random)
}

/// Letters and digits together, and many of them: no word of a language.
fn is_random(run: &str) -> bool {
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    run.len() >= RUN && digits > 0 && digits < run.len()
}

/// Somebody's address, or a name and a password before a host.
fn is_address(word: &str) -> bool {
    word.split_once('@').is_some_and(|(who, host)| !who.is_empty() && host.contains('.'))
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
                let scrubbed = scrubbed(&text, 200);
                assert!(scrubbed.contains(MASK), "{text} -> {scrubbed}");
                let inside = secret.trim_start_matches(|c: char| !c.is_alphanumeric());
                assert!(!scrubbed.contains(inside), "{text} -> {scrubbed}");
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
            assert!(!scrubbed(text, 200).contains(secret), "{text}");
        }
        assert_eq!(
            scrubbed("Authorization: Bearer opaqueword", 200),
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
            assert_eq!(scrubbed(text, 200), text);
        }
    }

    #[test]
    fn it_is_one_short_line() {
        assert_eq!(scrubbed(" a\r\n\tb\u{0}\u{1b}[31mc \u{202e}d", 200), "a b [31mc d");
        let long = scrubbed(&"word ".repeat(100), 20);
        assert_eq!(long.chars().count(), 20);
        assert!(long.ends_with('…'));
        assert_eq!(scrubbed("", 20), "");
    }

    #[test]
    fn a_key_that_is_cut_leaves_nothing() {
        let text = format!("{}{}", "sk-aaaa ".repeat(24), "b1".repeat(500));
        assert!(!scrubbed(&text, 20).contains('b'));
    }
}
