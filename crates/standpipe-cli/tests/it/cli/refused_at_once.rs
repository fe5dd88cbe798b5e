//! Calls that are refused at once leave a trace: an event, and a figure in the audit.

use crate::support::{Home, Ran};

fn flat(ran: &Ran) -> String {
    ran.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn late(home: &Home, agent: &str, timeout: &str) {
    let hold = ["hold", "my/slots", "--as", agent, "--timeout", timeout, "-q", "--", "true"];
    let ran = home.run(hold);
    assert!(matches!(ran.code, Some(75 | 77)), "{ran:?}");
}

#[test]
fn p1_a_call_that_was_refused_at_once_is_an_event_and_counts_in_the_audit() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    late(&home, "cron", "0");
    home.run(["pause", "my/slots", "--for", "10min", "-q"]).printed();
    late(&home, "nightly", "2s");
    home.run(["resume", "my/slots", "-q"]).printed();
    home.run(["throttle", "my/slots", "--kind", "terminal", "-q"]).printed();
    late(&home, "retrying", "2s");
    let events = home.run(["events", "--kind", "refuse"]);
    let wanted = [
        "cron was not admitted (parallel has no room, in use by holder; timeout 0)",
        "nightly was not admitted (the pool is paused; timeout 2 s)",
        "retrying was not admitted (the provider stopped the pool; timeout 2 s)",
    ];
    for words in wanted {
        assert!(events.out.contains(words), "`{words}` is missing in {events:?}");
    }
    assert_eq!(events.out.lines().count(), 3, "one line each: {events:?}");
    let audit = flat(&home.run(["audit"]));
    let wanted = ["running not admitted", "cron 0 1", "nightly 0 1", "retrying 0 1", "holder 1 1"];
    for words in wanted {
        assert!(audit.contains(words), "`{words}` is missing in {audit}");
    }
    assert_eq!(holder.end().code, Some(0));
}
