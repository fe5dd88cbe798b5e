//! The address of a server, parsed from a URL, and the login.
//!
//! ```text
//! redis://[user[:password]@]host[:port][/db]        one server
//! rediss://…                                        the same with TLS
//! redis+cluster://…host:port,host:port              a cluster, found from any of its nodes
//! redis+sentinel://…host:port,host:port/master[/db] the master that Sentinel names
//! redis+unix:///path                                a Unix socket
//! ```
//!
//! Only this module stores the password. `Display`, `Debug` and errors never show it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a server, and the login.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) route: Route,
    pub(crate) encrypted: bool,
    pub(crate) database: u16,
    pub(crate) user: Option<String>,
    password: Option<String>,
    /// A certificate authority to use instead of the system's, as PEM.
    pub(crate) authority: Option<Vec<u8>>,
}

/// How to find the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Server(Node),
    Socket(PathBuf),
    Cluster(Vec<Node>),
    Sentinel { sentinels: Vec<Node>, master: String },
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The error for a URL that is not the address of a server. It contains no part of the URL, which
/// may hold a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAddress {
    /// What is wrong.
    pub what: &'static str,
    /// What to write instead.
    pub remedy: &'static str,
}

impl Address {
    /// Sets the password, instead of the URL's.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets the user to log in as, instead of the URL's.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Verifies certificates against this authority (PEM) instead of the system's.
    #[must_use]
    pub fn with_authority(mut self, pem: Vec<u8>) -> Self {
        self.authority = Some(pem);
        self
    }

    /// Whether there is a password.
    #[must_use]
    pub const fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Whether the traffic is encrypted or stays on this machine.
    pub(crate) fn is_private(&self) -> bool {
        let is_local =
            |node: &Node| matches!(node.host.as_str(), "localhost" | "127.0.0.1" | "::1");
        self.encrypted
            || match &self.route {
                Route::Server(node) => is_local(node),
                Route::Socket(_) => true,
                Route::Cluster(nodes) | Route::Sentinel { sentinels: nodes, .. } => {
                    nodes.iter().all(is_local)
                }
            }
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(url: &str) -> Result<Self, InvalidAddress> {
        let (scheme, rest) = url.split_once("://").ok_or(FORM)?;
        let (encrypted, kind) = match scheme.split_once('+').unwrap_or((scheme, "")) {
            ("redis", kind) => (false, kind),
            ("rediss", kind) => (true, kind),
            _ => return Err(FORM),
        };
        let (userinfo, place) = rest.rsplit_once('@').map_or((None, rest), |(u, p)| (Some(u), p));
        if place.contains(['?', '#']) {
            return Err(InvalidAddress {
                what: "the store's URL has a query",
                remedy: "write settings as keys of [store]: password_file, password_env, ca",
            });
        }
        let (user, password) = userinfo.map(parse_userinfo).transpose()?.unwrap_or_default();
        let base = Self {
            route: Route::Socket(PathBuf::new()),
            encrypted,
            database: 0,
            user,
            password,
            authority: None,
        };
        if kind == "unix" {
            let path = percent_decode(place)?;
            let absolute = path.starts_with('/') && !encrypted;
            let route = Route::Socket(PathBuf::from(path));
            return if absolute { Ok(Self { route, ..base }) } else { Err(SOCKET) };
        }
        let (hosts, path) = place.split_once('/').unwrap_or((place, ""));
        let (route, database) = match kind {
            "" if hosts.contains(',') => return Err(SEVERAL),
            "" => (Route::Server(parse_node(hosts, REDIS_PORT)?), path),
            "cluster" => (Route::Cluster(parse_nodes(hosts, REDIS_PORT)?), path),
            "sentinel" => {
                let (master, database) = path.split_once('/').unwrap_or((path, ""));
                let (sentinels, master) =
                    (parse_nodes(hosts, SENTINEL_PORT)?, percent_decode(master)?);
                if master.is_empty() {
                    return Err(MASTER);
                }
                (Route::Sentinel { sentinels, master }, database)
            }
            _ => return Err(FORM),
        };
        let database = match database {
            "" => 0,
            number => number.parse().map_err(|_| DATABASE)?,
        };
        if database != 0 && kind == "cluster" {
            return Err(DATABASE);
        }
        Ok(Self { route, database, ..base })
    }
}

fn parse_nodes(hosts: &str, default_port: u16) -> Result<Vec<Node>, InvalidAddress> {
    hosts.split(',').map(|host| parse_node(host, default_port)).collect()
}

fn parse_node(text: &str, default_port: u16) -> Result<Node, InvalidAddress> {
    // Look for the port behind the brackets of an IPv6 address, which contains colons.
    let after_host = text.rsplit_once(']').map_or(text, |(_, port)| port);
    let (host, port) = match after_host.rsplit_once(':') {
        Some((_, port)) => (&text[..text.len() - port.len() - 1], port.parse().map_err(|_| PORT)?),
        None => (text, default_port),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(HOST);
    }
    Ok(Node { host: host.to_owned(), port })
}

/// Parses `user[:password]`, the part before the `@`.
fn parse_userinfo(text: &str) -> Result<(Option<String>, Option<String>), InvalidAddress> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(percent_decode(password)?)),
        None => (text, None),
    };
    Ok((Some(percent_decode(user)?).filter(|user| !user.is_empty()), password))
}

fn percent_decode(text: &str) -> Result<String, InvalidAddress> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or(ESCAPE)?;
        let digits = std::str::from_utf8(digits).map_err(|_| ESCAPE)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| ESCAPE)?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| ESCAPE)
}

const REDIS_PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;

const FORM: InvalidAddress = InvalidAddress {
    what: "this is not the URL of a Redis server",
    remedy: "write redis://host, rediss://host, redis+cluster://host:port,host:port, \
             redis+sentinel://host:port,host:port/master or redis+unix:///path",
};
const SEVERAL: InvalidAddress = InvalidAddress {
    what: "the store's URL names several hosts",
    remedy: "write redis+cluster:// or redis+sentinel:// before them",
};
const SOCKET: InvalidAddress = InvalidAddress {
    what: "the store's socket is not an absolute path",
    remedy: "write redis+unix:///run/redis/redis.sock",
};
const MASTER: InvalidAddress = InvalidAddress {
    what: "the store's URL names no master",
    remedy: "write the name that Sentinel uses after the hosts: redis+sentinel://host/mymaster",
};
const DATABASE: InvalidAddress = InvalidAddress {
    what: "what follows the host is not the number of a database",
    remedy: "write redis://host/0, or nothing; a cluster has only database 0",
};
const PORT: InvalidAddress = InvalidAddress {
    what: "the store's port is not a number from 1 to 65535",
    remedy: "write for example redis://host:6379",
};
const HOST: InvalidAddress = InvalidAddress {
    what: "the store's URL names no host",
    remedy: "write for example redis://localhost",
};
const ESCAPE: InvalidAddress = InvalidAddress {
    what: "the store's URL has a % that is not followed by two digits",
    remedy: "write %25 for a % of the password, or use password_file",
};

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.encrypted { "rediss" } else { "redis" };
        let list = |nodes: &[Node]| {
            let shown: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            shown.join(",")
        };
        match &self.route {
            Route::Server(node) => write!(f, "{scheme}://{node}")?,
            Route::Socket(path) => write!(f, "redis+unix://{}", path.display())?,
            Route::Cluster(nodes) => write!(f, "{scheme}+cluster://{}", list(nodes))?,
            Route::Sentinel { sentinels, master } => {
                write!(f, "{scheme}+sentinel://{}/{master}", list(sentinels))?;
            }
        }
        if self.database != 0 { write!(f, "/{}", self.database) } else { Ok(()) }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for InvalidAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl std::error::Error for InvalidAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        url.parse::<Address>().unwrap().to_string()
    }

    #[test]
    fn addresses_are_read_and_shown_without_secrets() {
        for (url, expected) in [
            ("redis://localhost", "redis://localhost:6379"),
            ("rediss://me:s3cret@host:1/3", "rediss://host:1/3"),
            ("redis://:s3cret@[::1]:7000", "redis://[::1]:7000"),
            ("redis+cluster://u:s3cret@a:1,b", "redis+cluster://a:1,b:6379"),
            ("redis+sentinel://:s3cret@a,b:2/main/4", "redis+sentinel://a:26379,b:2/main/4"),
            ("redis+unix:///run/redis.sock", "redis+unix:///run/redis.sock"),
        ] {
            assert_eq!(shown(url), expected);
            let debug = format!("{:?}", url.parse::<Address>().unwrap());
            assert!(!debug.contains("s3cret") && !debug.contains("me:"), "{debug}");
        }
    }

    #[test]
    fn who_logs_in_is_read_with_its_escapes() {
        let address: Address = "redis://me%40home:p%3Aw%25@host".parse().unwrap();
        assert_eq!(address.user.as_deref(), Some("me@home"));
        assert_eq!(address.password(), Some("p:w%"));
        let none: Address = "redis://host".parse().unwrap();
        assert_eq!((none.user.clone(), none.password()), (None, None));
        assert_eq!(none.with_password("x").password(), Some("x"));
    }

    #[test]
    fn what_is_no_address_says_what_to_write_and_shows_nothing_of_it() {
        for (url, what) in [
            ("http://s3cret", "not the URL"),
            ("redis:s3cret", "not the URL"),
            ("redis+tls://s3cret", "not the URL"),
            ("redis://a,b", "several hosts"),
            ("redis://s3cret@", "no host"),
            ("redis://host:s3cret", "not a number"),
            ("redis://host/s3cret", "number of a database"),
            ("redis+cluster://host/1", "number of a database"),
            ("redis+sentinel://host", "no master"),
            ("redis+unix://s3cret", "absolute path"),
            ("redis://a:%s3cret@host", "two digits"),
            ("redis://host?password=s3cret", "a query"),
        ] {
            let error = url.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(what) && !error.contains("s3cret"), "{url}: {error}");
        }
    }
}
