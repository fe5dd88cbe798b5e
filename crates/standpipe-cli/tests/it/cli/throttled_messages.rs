//! Commands that handle their 429s themselves: recognised messages, and old ones that are ignored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::support::{Home, Ran};

const LIMIT: [&str; 2] = ["--limit", "requests=100/h"];

/// Runs a command that prints this on its standard error and fails.
fn prints(home: &Home, pattern: &str, line: &str) -> Ran {
    let script = "echo \"$0\" >&2; exit 1";
    let flags = ["hold", "my/api", "--timeout", "0", "--throttled-match", pattern];
    let command = ["--", "sh", "-c", script, line];
    home.run(flags.into_iter().chain(LIMIT).chain(command))
}

fn pause(home: &Home) -> Option<u64> {
    home.status("my/api")["pause"]["for_ms"].as_u64()
}

/// A time of day in UTC, so many hours from now, as Claude Code writes it.
fn clock(hours: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let then = now.checked_add_signed(hours * 3_600).unwrap() % 86_400;
    let (hour, minute) = (then / 3_600, then % 3_600 / 60);
    let half = if hour < 12 { "am" } else { "pm" };
    format!("{}:{minute:02}{half} (UTC)", (hour + 11) % 12 + 1)
}

#[track_caller]
fn assert_not_believed(home: &Home, ran: &Ran, why: &str) {
    assert_eq!(ran.code, Some(1), "its code is passed through: {ran:?}");
    assert!(ran.err.contains("is not believed") && ran.err.contains(why), "{ran:?}");
    assert_eq!(pause(home), None, "{ran:?}");
    let status = home.status("my/api");
    assert_eq!(status["in_flight"], 0, "it is settled: {status}");
    let output = home.run(["events", "--kind", "anomaly"]);
    assert!(output.printed().contains(why), "{output:?}");
}

#[test]
fn b60_known_messages_pause_until_the_reset_they_state() {
    let at = format!("You've hit your session limit · resets {}", clock(2));
    for (line, minutes) in [
        (at.as_str(), 118..=120),
        ("Sorry, you have been rate-limited. Please wait 20 minutes before trying again", 19..=20),
    ] {
        let home = Home::new();
        let ran = prints(&home, "auto", line);
        assert!(ran.err.contains("`my/api` pauses for every caller"), "{ran:?}");
        let length = pause(&home).unwrap() / 60_000;
        assert!(minutes.contains(&length), "{line}: {length} min");
    }
    let home = Home::new();
    let ran = prints(&home, "auto", "error: the limit of open files was reached");
    assert_eq!((ran.code, pause(&home)), (Some(1), None), "{ran:?}");
    // A pattern of one's own takes the reset from the line, too.
    let ran = prints(&home, "(?i)budget used", "Budget used, try again in 40 minutes");
    assert!((38..=40).contains(&(pause(&home).unwrap() / 60_000)), "{ran:?}");
}

#[test]
fn a_message_whose_reset_has_passed_does_not_pause() {
    let home = Home::new();
    for line in [
        &format!("You've hit your session limit · resets {}", clock(-1)),
        "Claude AI usage limit reached|1762952400",
        "You've reached your weekly rate limit. Please wait for your limit to reset on \
         April 20, 2026 at 2:00 AM or switch to auto model",
    ] {
        let ran = prints(&home, "auto", line);
        assert_not_believed(&home, &ran, "the reset it states has passed");
    }
}

#[test]
fn b59_a_message_repeated_after_the_announced_reset_does_not_pause() {
    let home = Home::new();
    let cached = "gh: API rate limit exceeded for user ID 7. (HTTP 403)";
    let first = prints(&home, "rate limit.* in (?<wait>\\d+)", "rate limit, again in 1");
    assert!(first.err.contains("pauses"), "{first:?}");
    home.run(["resume", "my/api"]).printed();
    // Nothing was served since: the same message is believed.
    let again = prints(&home, "rate limit.* in (?<wait>\\d+)", "rate limit, again in 1");
    assert!(again.err.contains("pauses"), "{again:?}");
    home.run(["resume", "my/api"]).printed();
    let serve = ["hold", "my/api"].into_iter().chain(LIMIT).chain(["--", "true"]);
    assert_eq!(home.run(serve).code, Some(0));
    std::thread::sleep(Duration::from_millis(1_100));
    for _ in 0..2 {
        assert_not_believed(&home, &prints(&home, "auto", cached), "was reset at");
    }
}

#[test]
fn b59_a_message_is_not_believed_against_the_providers_own_report() {
    let home = Home::new();
    let cached = "gh: API rate limit exceeded for user ID 7. (HTTP 403)";
    let reserve = ["reserve", "my/api"].into_iter().chain(LIMIT);
    let ran = home.run(reserve);
    home.run(["commit", ran.printed()]).printed();
    let report = |remaining: &str| {
        let remaining = format!("x-ratelimit-remaining: {remaining}");
        let headers = ["x-ratelimit-limit: 100", &remaining, "x-ratelimit-reset: 1800"];
        let headers = headers.into_iter().flat_map(|header| ["--header", header]);
        home.run(["observe", "my/api"].into_iter().chain(headers).chain(["--json"])).json()
    };
    let output: Value = report("90");
    assert_eq!(output["limits"], 1, "{output}");
    assert_not_believed(&home, &prints(&home, "auto", cached), "reported room");
    // The same report with nothing left is no anomaly.
    report("0");
    report("0");
    let ran = prints(&home, "auto", cached);
    assert!(!ran.err.contains("not believed"), "{ran:?}");
}
