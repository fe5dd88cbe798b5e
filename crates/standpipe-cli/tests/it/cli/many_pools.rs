//! Many pools: what needs attention comes first, and what is well takes one line.

use crate::support::Home;

fn pool(home: &Home, name: &str) {
    let limit = ["--limit", "requests=60/min", "-q", "--", "true"];
    home.run(["hold", name, "--as", "blog"].into_iter().chain(limit)).printed();
}

#[test]
fn p22_many_pools_begin_with_a_count_and_those_that_are_well_are_one_line_of_the_audit() {
    let home = Home::new();
    for number in 0..12 {
        pool(&home, &format!("my/svc{number:02}"));
    }
    assert!(home.run(["status"]).printed().starts_with("12 pools: all active\n"));
    home.run(["throttle", "my/svc03", "--kind", "terminal", "-q"]).printed();
    home.run(["pause", "my/svc05", "--for", "10min", "-q"]).printed();
    let status = home.run(["status"]);
    assert!(status.printed().starts_with("12 pools: 1 stopped, 1 paused\n"), "{status:?}");
    let audit = home.run(["audit"]).printed().to_owned();
    assert!(audit.contains("ok  11 pools are well: my/svc00, my/svc01"), "{audit}");
    assert_eq!(audit.matches("with all agents active").count(), 0, "{audit}");
    assert!(audit.contains("the provider stopped the pool once"), "{audit}");
}

#[test]
fn p23_a_pool_says_where_its_limits_come_from() {
    let home = Home::new();
    pool(&home, "my/api");
    let status = home.run(["status", "my/api"]);
    assert!(status.printed().ends_with("limits from code or --limit"), "{status:?}");
    let file = home.configure("[pool.\"my/api\"]\nrequests = \"90/min\"\n");
    let status = home.run(["status", "my/api"]);
    let words: Vec<&str> = status.printed().split_whitespace().collect();
    let says = format!("limits from {}, written ", file.display());
    assert!(words.join(" ").contains(&says), "{status:?}");
}
