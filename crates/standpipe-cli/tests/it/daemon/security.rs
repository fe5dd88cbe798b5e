//! `up` without the token it needs, and a token that no command shows.

use crate::daemon::support::Daemon;
use crate::support::Home;

const TOKEN: &str = "swordfish-0123456789abcdef";

fn with_token(home: &Home, token: &str) {
    let file = home.path.join("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    home.configure(&format!("open_pools = true\n[server]\ntoken_file = \"{}\"\n", file.display()));
}

#[test]
fn an_address_that_others_can_reach_needs_a_token() {
    let home = Home::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ran = home.run(["up", "--listen", address]);
        ran.failed(78, &["token", "token_file", "127.0.0.1"]);
    }
    home.configure("listen = \"0.0.0.0:0\"\n");
    home.run(["up"]).failed(78, &["token"]);
    home.configure("[server]\ntoken_file = \"/nowhere/token\"\n");
    home.run(["up", "--listen", "127.0.0.1:0"]).failed(78, &["/nowhere/token"]);
    for wrong in ["short", "with a blank 0123456789", ""] {
        with_token(&home, wrong);
        let ran = home.run(["up", "--listen", "0.0.0.0:0"]);
        ran.failed(78, &["printable", "openssl rand"]);
        assert!(wrong.is_empty() || !ran.err.contains(wrong), "{ran:?}");
    }
    assert!(!home.path.join("state").exists() || !home.path.join("state/daemon.json").exists());
}

#[test]
fn no_command_shows_the_token() {
    let home = Home::new();
    with_token(&home, TOKEN);
    let daemon = Daemon::up_with(&home, &["--listen", "0.0.0.0:0"]);
    let mut shown = daemon.said.to_string();
    for view in ["status", "events"] {
        shown.push_str(&home.run([view, "--json"]).out);
    }
    shown.push_str(&daemon.log());
    assert!(!shown.contains("swordfish"), "the token was shown: {shown}");
}
