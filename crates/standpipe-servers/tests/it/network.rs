//! The ways to a server: encrypted, or by a cable that is pulled.

use std::process::{Command, Stdio};
use std::time::Duration;

use standpipe_servers::{Client, Gate, Namespace, Options, Server};

/// What `openssl` says of the server's certificate, as a client that trusts this authority.
fn handshake(address: &str, authority: &std::path::Path) -> String {
    let mut openssl = Command::new("openssl");
    openssl.args(["s_client", "-connect", address, "-servername", "localhost", "-CAfile"]);
    openssl.arg(authority).args(["-verify_hostname", "localhost"]).stdin(Stdio::null());
    let output = openssl.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_server_with_tls_shows_a_certificate_of_its_own_authority() {
    let tls = || Server::start_with(Options { tls: true, ..Options::default() });
    let (server, stranger) = (tls(), tls());
    assert_eq!(server.url(), format!("rediss://localhost:{}", server.port()));
    let said = handshake(&server.address(), server.ca_file());
    assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
    let said = handshake(&server.address(), stranger.ca_file());
    assert!(!said.contains("Verify return code: 0 (ok)"), "{said}");
    let mut plain = Client::connect(&server.address()).unwrap();
    assert!(plain.run(&["PING"]).is_err(), "its port speaks only TLS");
    assert_eq!(server.run(&["PING"]), "PONG", "the test itself gets in another way");
    let gate = Gate::before(&server);
    assert_eq!(gate.url(), format!("rediss://localhost:{}", gate.port()));
    assert!(handshake(&gate.address(), server.ca_file()).contains("code: 0 (ok)"));
}

#[test]
fn a_pulled_cable_is_silence_and_a_plugged_one_goes_on() {
    let namespace = Namespace::new();
    let options = Options { namespace: Some(namespace.name()), ..Options::default() };
    let server = Server::start_with(options);
    assert_eq!(server.address(), format!("{}:{}", namespace.address(), server.port()));
    let mut client = Client::connect(&server.address()).unwrap();
    assert_eq!(client.run(&["PING"]).unwrap(), "PONG");
    namespace.cut();
    client.send(&["SET", "key", "value"]).unwrap();
    let hasty = Duration::from_millis(100);
    assert!(Client::connect_within(&server.address(), hasty).is_err());
    assert_eq!(server.run(&["EXISTS", "key"]), "0", "nothing arrived");
    namespace.heal();
    assert_eq!(client.reply().unwrap(), "OK", "the same connection, and nothing is lost");
}

#[test]
fn a_namespace_has_programs_and_goes_with_its_value() {
    let namespace = Namespace::new();
    let output = namespace.command("ip").args(["-o", "address"]).output().unwrap();
    let inside = String::from_utf8(output.stdout).unwrap();
    assert!(inside.contains(&namespace.address()), "{inside}");
    assert!(!inside.contains(&namespace.address_outside()), "{inside}");
    let name = namespace.name();
    drop(namespace);
    let left = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let left = String::from_utf8(left.stdout).unwrap();
    assert!(!left.lines().any(|line| line.starts_with(&format!("{name} "))), "{left}");
}
