//! `status --check`: the exit code and the line say how bad it is, the worst pool first.

use crate::support::Home;

fn pool(home: &Home, name: &str) {
    let limit = ["--limit", "requests=60/min", "-q", "--", "true"];
    home.run(["hold", name, "--as", "blog"].into_iter().chain(limit)).printed();
}

#[test]
fn b21_a_stopped_pool_is_refused_and_not_short_of_room() {
    let home = Home::new();
    pool(&home, "my/api");
    home.run(["throttle", "my/api", "--as", "blog", "--kind", "terminal", "-q"]).printed();
    let check = home.run(["status", "my/api", "--check"]);
    assert_eq!(check.code, Some(77), "{check:?}");
    assert!(
        check.err.starts_with("standpipe: refused: the provider stopped `my/api`"),
        "{check:?}"
    );
    let doctor = home.run(["doctor"]);
    assert_eq!(doctor.code, Some(77), "{doctor:?}");
    assert!(doctor.err.starts_with("error: the provider stopped a pool"), "{doctor:?}");
    assert!(doctor.out.contains("pools          failure  the provider stopped"), "{doctor:?}");
}

#[test]
fn b21_of_many_pools_the_worst_is_named_and_the_others_are_counted() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    for name in ["my/free", "my/paused", "my/stopped"] {
        pool(&home, name);
    }
    home.run(["pause", "my/paused", "--for", "10min", "-q"]).printed();
    let check = home.run(["status", "--check"]);
    assert_eq!(check.code, Some(75), "{check:?}");
    let says = "standpipe: would wait: not admitted on `my/paused`: the pool is paused";
    assert!(check.err.starts_with(says), "{check:?}");
    assert!(check.err.trim_end().ends_with("(and 1 more pool)"), "{check:?}");
    home.run(["throttle", "my/stopped", "--kind", "terminal", "-q"]).printed();
    let check = home.run(["status", "--check"]);
    assert_eq!(check.code, Some(77), "{check:?}");
    assert!(check.err.contains("`my/stopped`"), "{check:?}");
    assert!(check.err.trim_end().ends_with("(and 2 more pools)"), "{check:?}");
    let slots = home.run(["status", "my/slots", "--check"]);
    let pid = holder.child.id();
    assert!(slots.err.starts_with("standpipe: no room: "), "{slots:?}");
    assert!(slots.err.contains(&format!("holder (pid {pid}) holds it")), "{slots:?}");
    assert_eq!(holder.end().code, Some(0));
}

#[test]
fn p2_a_retry_budget_that_is_used_up_is_shown_with_its_end() {
    let home = Home::new();
    let reserve = |more: &[&str]| {
        let limit = ["--limit", "requests=60/min", "--timeout", "0"];
        home.run(["reserve", "my/api", "--as", "blog"].iter().chain(&limit).chain(more).copied())
    };
    let first = reserve(&[]).printed().to_owned();
    for _ in 0..3 {
        reserve(&["--retry-of", &first]).printed();
    }
    assert_eq!(reserve(&["--retry-of", &first]).code, Some(75));
    let status = home.run(["status", "my/api"]);
    assert!(status.printed().contains("retries: 0 of 3 left until "), "{status:?}");
    let doctor = home.run(["doctor"]);
    assert!(doctor.out.contains("the retry budget of `my/api` is used up"), "{doctor:?}");
    let explain = home.run(["explain", "my/api", "--as", "blog", "--retry-of", &first]);
    let says = "too many of the last minute's calls were retries";
    assert!(explain.printed().contains(says), "{explain:?}");
}
