//! A certificate authority for one server, and that server's certificate, made by `openssl`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::programs;
use crate::scratch::Scratch;

/// Makes `ca.pem`, `server.pem` and `server.key`, and says which settings use them.
pub(crate) fn make(scratch: &Scratch, address: &str) -> Vec<String> {
    let names = format!("DNS:localhost,IP:127.0.0.1,IP:{address}");
    scratch.write("leaf.ext", &format!("basicConstraints=CA:FALSE\nsubjectAltName={names}\n"));
    openssl(scratch, &["req", "-x509", "-subj", "/CN=Test authority", "-out", "ca.pem"], "ca.key");
    openssl(scratch, &["req", "-subj", "/CN=localhost", "-out", "server.csr"], "server.key");
    let sign = ["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key"];
    let with = ["-CAcreateserial", "-extfile", "leaf.ext", "-days", "2", "-out", "server.pem"];
    run(scratch, &[&sign[..], &with[..]].concat());
    vec![
        "tls-cert-file server.pem".into(),
        "tls-key-file server.key".into(),
        "tls-ca-cert-file ca.pem".into(),
        "tls-auth-clients no".into(),
    ]
}

pub(crate) fn ca_file(scratch: &Scratch) -> PathBuf {
    scratch.join("ca.pem")
}

/// With a new key; curves, because such a key is made in no time.
fn openssl(scratch: &Scratch, arguments: &[&str], key: &str) {
    let new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    run(scratch, &[arguments, &new, &["-keyout", key]].concat());
}

fn run(scratch: &Scratch, arguments: &[&str]) {
    let mut command = Command::new(programs::needed("openssl"));
    command.args(arguments).current_dir(scratch.path()).stdin(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("cannot run openssl: {error}"),
    };
    if !output.status.success() {
        panic!("openssl {arguments:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
}
