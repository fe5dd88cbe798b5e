//! The margin of a rate, as `status` shows it and as the file sets it.

use crate::support::Home;

#[test]
fn status_shows_the_margin_and_what_is_usable_of_a_limit() {
    let home = Home::new();
    let limits = ["--limit", "requests=100/h", "--limit", "parallel=3"];
    let hold = |pool| ["hold", pool].into_iter().chain(limits).chain(["--", "true"]);
    home.run(hold("my/api")).printed();
    let status = home.status("my/api");
    assert_eq!((&status["margin_per_mille"], &status["margin_auto"]), (&200.into(), &true.into()));
    let [requests, parallel] = [0, 1].map(|at| &status["limits"][at]["margin_per_mille"]);
    assert_eq!((requests, parallel), (&200.into(), &serde_json::Value::Null));
    let shown = home.run(["status", "my/api"]);
    assert!(shown.printed().contains("margin 20 %"), "{}", shown.printed());
    assert!(shown.printed().contains("limit 100, usable 80"), "{}", shown.printed());

    home.configure("version = 1\n[pool.\"my/api\"]\nrequests = \"100/h\"\nmargin = 0\n");
    home.run(["hold", "my/api", "--", "true"]).printed();
    let shown = home.run(["status", "my/api"]);
    assert!(!shown.printed().contains("margin"), "{}", shown.printed());
    assert!(shown.printed().contains("of 100 per hour"), "{}", shown.printed());
}

#[test]
fn the_old_key_is_rejected_with_its_line_and_the_new_figure() {
    let home = Home::new();
    home.configure("version = 1\n[pool.\"my/api\"]\nrequests = \"100/h\"\nheadroom = 0.85\n");
    let says = [":4: `headroom` is now `margin`", "write margin = \"15%\""];
    home.run(["config", "check"]).failed(78, &says);
    home.run(["hold", "my/api", "--", "true"]).failed(78, &says);
}
