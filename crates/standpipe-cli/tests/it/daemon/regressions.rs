//! What people found who tried `up` and did not spare it.

use std::os::unix::fs::symlink;

use crate::daemon::support::Daemon;
use crate::support::Home;

#[test]
fn a_token_file_that_is_no_file_is_refused_at_once() {
    let home = Home::new();
    for odd in ["/dev/zero", "/dev/null", "/tmp"] {
        let config = home.configure(&format!("[server]\ntoken_file = \"{odd}\"\n"));
        let config = config.to_str().unwrap();
        let words = ["--config", config, "up", "--listen", "127.0.0.1:0"];
        home.run(words).failed(78, &["token_file", "not a regular file"]);
    }
}

#[test]
fn a_link_in_the_place_of_its_files_is_not_followed() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let directory = daemon.socket.parent().unwrap().to_path_buf();
    assert!(daemon.stop().success());
    let victim = directory.join("victim");
    std::fs::write(&victim, "mine").unwrap();
    std::fs::remove_file(directory.join("daemon.pid")).unwrap();
    symlink(&victim, directory.join("daemon.pid")).unwrap();
    home.run(["up", "--listen", "127.0.0.1:0"]).failed(69, &["daemon.pid"]);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
}
