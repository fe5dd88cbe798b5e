//! One server alone: it answers, it dies, it comes back with what it promised to keep.

use standpipe_servers::{Client, Flavour, Options, Server};

#[test]
fn a_server_answers_until_it_is_killed_and_after_it_is_started_again() {
    let mut server = Server::start();
    assert_eq!(server.run(&["SET", "key", "value"]), "OK");
    let mut client = Client::connect(&server.address()).unwrap();
    assert_eq!(client.run(&["GET", "key"]).unwrap(), "value");
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
    let port = server.port();
    server.kill();
    assert!(Client::connect(&server.address()).is_err(), "it is dead");
    server.start_again();
    assert_eq!(server.port(), port);
    let mut client = Client::connect(&server.address()).unwrap();
    assert_eq!(client.run(&["GET", "key"]).unwrap(), "(nil)");
}

#[test]
fn a_persistent_server_keeps_every_answered_write() {
    let mut server = Server::start_with(Options { persistent: true, ..Options::default() });
    server.run(&["SET", "first", "1"]);
    server.kill();
    server.start_again();
    assert_eq!(server.run(&["GET", "first"]), "1");
    server.run(&["SET", "second", "2"]);
    server.stop();
    server.start_again();
    assert_eq!(server.run(&["MGET", "first", "second"]), "1\n2");
}

#[test]
fn a_server_that_is_stopped_in_order_says_so_and_forgets() {
    let mut server = Server::start();
    server.run(&["SET", "key", "value"]);
    server.stop();
    assert!(server.log().contains("ready to exit"), "{}", server.log());
    server.start_again();
    assert_eq!(server.run(&["EXISTS", "key"]), "0");
}

#[test]
fn a_paused_server_answers_late_and_not_never() {
    let server = Server::start();
    let mut client = Client::connect(&server.address()).unwrap();
    server.pause();
    client.send(&["PING"]).unwrap();
    let hasty = std::time::Duration::from_millis(100);
    let mut other = Client::connect_within(&server.address(), hasty).unwrap();
    assert!(other.run(&["PING"]).unwrap_err().starts_with("no answer"));
    server.resume();
    assert_eq!(client.reply().unwrap(), "PONG");
}

#[test]
fn commands_for_debugging_are_there() {
    for flavour in [Flavour::Redis, Flavour::Valkey, Flavour::Old] {
        let server = Server::start_with(Options { flavour, ..Options::default() });
        assert_eq!(server.run(&["DEBUG", "SLEEP", "0"]), "OK");
    }
}

#[test]
fn each_flavour_is_what_it_says() {
    let version = |flavour, field| {
        Server::start_with(Options { flavour, ..Options::default() }).info(field).unwrap()
    };
    assert!(version(Flavour::Redis, "redis_version").starts_with("7."));
    assert!(version(Flavour::Old, "redis_version").starts_with("6.2."));
    let valkey = version(Flavour::Valkey, "valkey_version");
    assert!(valkey.starts_with(['8', '9']), "{valkey}");
}

#[test]
fn a_user_may_only_what_the_list_says() {
    let acl = "user default off\nuser app on >secret ~app:* +get +set".to_owned();
    let server = Server::start_with(Options { acl: Some(acl), ..Options::default() });
    let mut client = Client::connect(&server.address()).unwrap();
    assert!(client.run(&["GET", "app:key"]).unwrap_err().starts_with("NOAUTH"));
    assert_eq!(client.run(&["AUTH", "app", "secret"]).unwrap(), "OK");
    assert_eq!(client.run(&["SET", "app:key", "1"]).unwrap(), "OK");
    assert!(client.run(&["SET", "other", "1"]).unwrap_err().starts_with("NOPERM"));
    assert!(client.run(&["DEL", "app:key"]).unwrap_err().starts_with("NOPERM"));
    assert_eq!(server.run(&["DEL", "app:key"]), "1", "the test itself may everything");
}

#[test]
fn a_server_that_cannot_start_shows_its_log() {
    let args = vec!["--no-such-setting".to_owned(), "yes".to_owned()];
    let options = Options { args, ..Options::default() };
    let panic = std::panic::catch_unwind(|| Server::start_with(options)).unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("no-such-setting"), "{message}");
}

#[test]
fn the_clock_of_a_server_can_be_set_while_it_runs() {
    for flavour in [Flavour::Redis, Flavour::Old] {
        let here = Server::start_with(Options { flavour, ..Options::default() });
        let options = Options { flavour, movable_clock: true, ..Options::default() };
        let moved = Server::start_with(options);
        let seconds = |server: &Server| -> i64 {
            server.run(&["TIME"]).lines().next().unwrap().parse().unwrap()
        };
        let days = || (seconds(&moved) - seconds(&here) + 3_600).div_euclid(86_400);
        assert_eq!(days(), 0);
        moved.set_clock("+30d");
        assert_eq!(days(), 30);
        moved.set_clock("-30d");
        assert_eq!(days(), -30);
    }
}
