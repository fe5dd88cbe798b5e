//! A network of its own for a server, tied to this machine's by one cable that can be pulled.
//!
//! A [`crate::Gate`] closes connections as a proxy does. Here packets vanish, as they do when a
//! cable is pulled: neither side is told.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::programs;

/// A network namespace. It is removed with this value, or when the process dies.
#[derive(Debug)]
pub struct Namespace {
    number: u32,
    guard: Child,
}

/// The networks of four addresses in 198.18.0.0/15, which is set aside for tests of networks.
const NETWORKS: u32 = 1 << 15;

/// Waits until its input closes, however that comes about, and removes both ends.
const GUARD: &str = "read -r line; \"$1\" link delete \"$2\"; \"$1\" netns delete \"$3\"";

impl Namespace {
    /// A new one, its cable plugged in.
    ///
    /// # Panics
    /// When this machine does not allow it: it needs root and the `ip` command.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a default should cost nothing")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let first = std::process::id().wrapping_mul(31);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            assert!(count < NETWORKS, "every network for tests is in use");
            let number = first.wrapping_add(count) % NETWORKS;
            // The name is the claim to the addresses: only one process can make it.
            match ip(&["netns", "add", &name(number)]) {
                Ok(_) => return Self::furnish(number),
                Err(error) if error.contains("File exists") => {}
                Err(error) => panic!(
                    "tests of cut networks need network namespaces, which only root can make, \
                     with the command `ip` of the package iproute2: {error}"
                ),
            }
        }
    }

    fn furnish(number: u32) -> Self {
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "sh"]).arg(programs::needed("ip"));
        guard.args([outer_link(number), name(number)]).stdin(Stdio::piped()).stderr(Stdio::null());
        let guard = match guard.spawn() {
            Ok(guard) => guard,
            Err(error) => panic!("cannot start `sh`: {error}"),
        };
        let namespace = Self { number, guard };
        let (outer, inner) = (outer_link(number), inner_link(number));
        let name = namespace.name();
        let (outside, inside) = (address(number, 1), address(number, 2));
        must(&["link", "add", &outer, "type", "veth", "peer", "name", &inner, "netns", &name]);
        must(&["address", "add", &format!("{outside}/30"), "dev", &outer]);
        must(&["link", "set", &outer, "up"]);
        must(&["-n", &name, "address", "add", &format!("{inside}/30"), "dev", &inner]);
        must(&["-n", &name, "link", "set", "lo", "up"]);
        must(&["-n", &name, "link", "set", &inner, "up"]);
        namespace
    }

    /// Its name, for `Options::namespace`.
    #[must_use]
    pub fn name(&self) -> String {
        name(self.number)
    }

    /// The address inside, where a server listens.
    #[must_use]
    pub fn address(&self) -> String {
        address(self.number, 2)
    }

    /// The address of this machine as it is seen from inside.
    #[must_use]
    pub fn address_outside(&self) -> String {
        address(self.number, 1)
    }

    /// A program that will run inside.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(programs::needed("ip"));
        command.args(["netns", "exec", &self.name(), program]);
        command
    }

    /// Pulls the cable: packets vanish both ways.
    pub fn cut(&self) {
        // The inner end: without the outer one, packets would look for another way out.
        must(&["-n", &self.name(), "link", "set", &inner_link(self.number), "down"]);
    }

    /// Plugs it in again.
    pub fn heal(&self) {
        must(&["-n", &self.name(), "link", "set", &inner_link(self.number), "up"]);
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// The address to which a server in that namespace binds.
pub(crate) fn address_in(namespace: &str) -> String {
    let list = must(&["-n", namespace, "-4", "-o", "address", "show", "scope", "global"]);
    let mut words = list.split_whitespace().skip_while(|word| *word != "inet").skip(1);
    let Some(address) = words.next().and_then(|network| network.split('/').next()) else {
        panic!("the namespace `{namespace}` has no address");
    };
    address.to_owned()
}

fn name(number: u32) -> String {
    format!("standpipe-{number}")
}

/// Names of links have at most 15 letters.
fn outer_link(number: u32) -> String {
    format!("standp{number}o")
}

fn inner_link(number: u32) -> String {
    format!("standp{number}i")
}

fn address(number: u32, end: u32) -> String {
    let bits = (198 << 24) + (18 << 16) + number * 4 + end;
    std::net::Ipv4Addr::from(bits).to_string()
}

fn must(arguments: &[&str]) -> String {
    match ip(arguments) {
        Ok(output) => output,
        Err(error) => panic!("{error}"),
    }
}

fn ip(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(programs::needed("ip")).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run `ip`: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("`ip {}`: {said}", arguments.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_do_not_overlap_and_stay_in_the_range() {
        assert_eq!(address(0, 1), "198.18.0.1");
        assert_eq!(address(1, 2), "198.18.0.6");
        assert_eq!(address(NETWORKS - 1, 2), "198.19.255.254");
        assert!(outer_link(NETWORKS - 1).len() <= 15);
    }
}
