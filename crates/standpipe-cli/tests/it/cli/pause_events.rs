//! The events about the end of a pause, and about leases that somebody else settles.

use crate::support::Home;

/// The milliseconds of the minute of `2026-01-31T12:00:00.000Z`.
fn millis(at: &serde_json::Value) -> u64 {
    let (seconds, thousandths) = at.as_str().unwrap()[17..23].split_once('.').unwrap();
    seconds.parse::<u64>().unwrap() * 1_000 + thousandths.parse::<u64>().unwrap()
}

#[test]
fn b23_the_end_of_a_pause_has_its_own_time_and_says_who_ended_it() {
    let home = Home::new();
    let limit = ["--limit", "requests=60/min", "-q", "--", "true"];
    let hold = |agent| home.run(["hold", "my/api", "--as", agent].into_iter().chain(limit));
    hold("blog").printed();
    home.run(["pause", "my/api", "--for", "10min", "--as", "ops", "-q"]).printed();
    home.run(["resume", "my/api", "--as", "ops", "-q"]).printed();
    home.run(["pause", "my/api", "--for", "200ms", "--as", "ops", "-q"]).printed();
    // The call waits for the end of the pause and then for its return window.
    hold("blog").printed();
    let lines = home.run(["events", "--json"]).out;
    let events: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).collect::<Vec<_>>();
    let (paused, resumed) = (of("pause"), of("resume"));
    assert_eq!((paused.len(), resumed.len()), (2, 2), "{lines}");
    assert_eq!(resumed[0]["by"], "ops", "{lines}");
    // The first call comes half a second later at the soonest.
    let late = millis(&resumed[1]["at"]).abs_diff(millis(&paused[1]["until"]));
    assert!(late < 100, "{late} ms: {lines}");
    let text = home.run(["events", "--kind", "resume"]);
    assert!(
        text.out.contains("resumed by ops") && text.out.contains("the pause is over"),
        "{text:?}"
    );
}

#[test]
fn p11_settling_the_lease_of_a_running_process_leaves_an_event() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let lease = home.status("my/slots")["leases"][0]["id"].as_str().unwrap().to_owned();
    home.run(["commit", &lease]).printed();
    let events = home.run(["events", "--kind", "settle"]);
    let says = format!("a lease (pid {}) was settled by", holder.child.id());
    assert!(events.out.contains(&says), "{events:?}");
    drop(holder.end());
    let own = home.run(["reserve", "my/slots", "--as", "script"]).printed().to_owned();
    home.run(["commit", &own]).printed();
    assert_eq!(home.run(["events", "--kind", "settle"]).out.lines().count(), 1);
}
