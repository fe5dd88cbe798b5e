//! The bad network: exactly what was asked for is lost, and nothing else.

use std::time::Duration;

use standpipe_servers::{Client, Gate, Server};

const HASTY: Duration = Duration::from_millis(100);

#[test]
fn an_open_gate_passes_everything() {
    let server = Server::start();
    let gate = Gate::before(&server);
    let mut client = Client::connect(&gate.address()).unwrap();
    let large = "x".repeat(1_000_000);
    assert_eq!(client.run(&["SET", "key", &large]).unwrap(), "OK");
    assert_eq!(client.run(&["GET", "key"]).unwrap(), large);
    assert_eq!(gate.url(), format!("redis://127.0.0.1:{}", gate.port()));
}

#[test]
fn answers_are_lost_as_often_as_asked_and_what_they_answer_was_done() {
    let server = Server::start();
    let gate = Gate::before(&server);
    gate.lose_next_answers(2);
    let (mut lost, mut answered) = (0, 0);
    for _ in 0..5 {
        let mut client = Client::connect(&gate.address()).unwrap();
        match client.run(&["INCR", "counter"]) {
            Ok(_) => answered += 1,
            Err(_) => lost += 1,
        }
    }
    assert_eq!((lost, answered, gate.lost()), (2, 3, 2));
    assert_eq!(server.run(&["GET", "counter"]), "5", "every request was carried out");
}

#[test]
fn only_the_answers_to_the_named_command_are_lost() {
    let server = Server::start();
    let gate = Gate::before(&server);
    gate.lose_next_answers_to("INCR", 1);
    let mut client = Client::connect(&gate.address()).unwrap();
    assert_eq!(client.run(&["PING"]).unwrap(), "PONG");
    assert!(client.run(&["incr", "counter"]).is_err());
    let mut client = Client::connect(&gate.address()).unwrap();
    assert_eq!(client.run(&["INCR", "counter"]).unwrap(), "2");
    assert_eq!(gate.lost(), 1);
}

#[test]
fn a_cut_gate_drops_and_refuses_until_it_is_healed() {
    let server = Server::start();
    let gate = Gate::before(&server);
    for _ in 0..3 {
        let mut client = Client::connect(&gate.address()).unwrap();
        assert_eq!(client.run(&["PING"]).unwrap(), "PONG");
        gate.cut();
        assert!(client.run(&["PING"]).is_err());
        let error = Client::connect(&gate.address()).unwrap_err();
        assert!(error.contains("refused"), "{error}");
        gate.heal();
    }
    assert_eq!(Client::connect(&gate.address()).unwrap().run(&["PING"]).unwrap(), "PONG");
}

#[test]
fn a_stalled_gate_keeps_connections_and_swallows_what_they_say() {
    let server = Server::start();
    let gate = Gate::before(&server);
    let mut idle = Client::connect(&gate.address()).unwrap();
    assert_eq!(idle.run(&["PING"]).unwrap(), "PONG");
    let mut client = Client::connect_within(&gate.address(), HASTY).unwrap();
    gate.stall();
    let error = client.run(&["INCR", "counter"]).unwrap_err();
    assert!(error.contains("unavailable") || error.contains("timed out"), "{error}");
    assert_eq!(server.run(&["EXISTS", "counter"]), "0", "it never arrived");
    gate.heal();
    assert!(client.reply().unwrap_err().contains("closed"), "it lost something");
    assert_eq!(idle.run(&["PING"]).unwrap(), "PONG", "it lost nothing");
}

#[test]
fn a_gate_leads_elsewhere_after_a_failover() {
    let (mut old, new) = (Server::start(), Server::start());
    new.run(&["SET", "name", "new"]);
    let gate = Gate::before(&old);
    old.kill();
    gate.lead_to(&new);
    let mut client = Client::connect(&gate.address()).unwrap();
    assert_eq!(client.run(&["GET", "name"]).unwrap(), "new");
}

#[test]
fn slow_answers_arrive_whole() {
    let server = Server::start();
    let gate = Gate::before(&server);
    let value = "x".repeat(500);
    server.run(&["SET", "key", &value]);
    let mut client = Client::connect(&gate.address()).unwrap();
    gate.lag(Duration::from_millis(1), Duration::from_millis(20));
    for _ in 0..5 {
        assert_eq!(client.run(&["GET", "key"]).unwrap(), value);
    }
    gate.trickle(Duration::from_micros(20));
    assert_eq!(client.run(&["GET", "key"]).unwrap(), value);
    gate.heal();
    assert_eq!(client.run(&["GET", "key"]).unwrap(), value, "nothing was lost");
}

#[test]
fn an_answer_that_is_late_by_more_than_the_patience_is_not_waited_for() {
    let server = Server::start();
    let gate = Gate::before(&server);
    gate.lag(10 * HASTY, 10 * HASTY);
    let mut client = Client::connect_within(&gate.address(), HASTY).unwrap();
    assert!(client.run(&["INCR", "counter"]).is_err());
    assert_eq!(server.run(&["GET", "counter"]), "1", "it was carried out");
    gate.heal();
    let mut client = Client::connect(&gate.address()).unwrap();
    assert_eq!(client.run(&["INCR", "counter"]).unwrap(), "2");
}
