//! Which server is meant: its address, read from a URL, and how to log in there.
//!
//! ```text
//! redis://[user[:password]@]host[:port][/db]        one server
//! rediss://…                                        the same, encrypted
//! redis+cluster://…host:port,host:port              a cluster, from any of its nodes
//! redis+sentinel://…host:port,host:port/master[/db] whoever Sentinel says is the master
//! redis+unix:///path                                a socket on this machine
//! ```
//!
//! Only this module holds the password, and nothing shows it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Which server is meant, and how to log in there.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) route: Route,
    pub(crate) encrypted: bool,
    pub(crate) database: i64,
    pub(crate) user: Option<String>,
    password: Option<String>,
    /// A certificate authority of one's own, as PEM.
    pub(crate) authority: Option<Vec<u8>>,
}

/// How the server is found.
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

/// Why a text is not the address of a server. It shows nothing of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAddress {
    /// What is wrong.
    pub what: &'static str,
    /// What to write instead.
    pub remedy: &'static str,
}

impl Address {
    /// The password, instead of the URL's.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// The user to log in as, instead of the URL's.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Certificates are checked against this authority (PEM) instead of the system's.
    #[must_use]
    pub fn with_authority(mut self, pem: Vec<u8>) -> Self {
        self.authority = Some(pem);
        self
    }

    /// Whether it says how to log in.
    #[must_use]
    pub const fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Whether what is said there is encrypted, or does not leave this machine.
    pub(crate) fn is_private(&self) -> bool {
        let here = |node: &Node| matches!(node.host.as_str(), "localhost" | "127.0.0.1" | "::1");
        self.encrypted
            || match &self.route {
                Route::Server(node) => here(node),
                Route::Socket(_) => true,
                Route::Cluster(nodes) | Route::Sentinel { sentinels: nodes, .. } => {
                    nodes.iter().all(here)
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
        let (encrypted, way) = match scheme.split_once('+').unwrap_or((scheme, "")) {
            ("redis", way) => (false, way),
            ("rediss", way) => (true, way),
            _ => return Err(FORM),
        };
        let (identity, place) = rest.rsplit_once('@').map_or((None, rest), |(i, p)| (Some(i), p));
        if place.contains(['?', '#']) {
            return Err(InvalidAddress {
                what: "the store's URL has a query",
                remedy: "write settings as keys of [store]: password_file, password_env, ca",
            });
        }
        let (user, password) = identity.map(log_in).transpose()?.unwrap_or_default();
        let plain = Self {
            route: Route::Socket(PathBuf::new()),
            encrypted,
            database: 0,
            user,
            password,
            authority: None,
        };
        if way == "unix" {
            let path = decoded(place)?;
            let absolute = path.starts_with('/') && !encrypted;
            let route = Route::Socket(PathBuf::from(path));
            return if absolute { Ok(Self { route, ..plain }) } else { Err(SOCKET) };
        }
        let (hosts, path) = place.split_once('/').unwrap_or((place, ""));
        let (route, database) = match way {
            "" if hosts.contains(',') => return Err(SEVERAL),
            "" => (Route::Server(node(hosts, REDIS)?), path),
            "cluster" => (Route::Cluster(nodes(hosts, REDIS)?), path),
            "sentinel" => {
                let (master, database) = path.split_once('/').unwrap_or((path, ""));
                let (sentinels, master) = (nodes(hosts, SENTINEL)?, decoded(master)?);
                if master.is_empty() {
                    return Err(MASTER);
                }
                (Route::Sentinel { sentinels, master }, database)
            }
            _ => return Err(FORM),
        };
        let database = match database {
            "" => 0,
            number => i64::from(number.parse::<u16>().map_err(|_| DATABASE)?),
        };
        if database != 0 && way == "cluster" {
            return Err(DATABASE);
        }
        Ok(Self { route, database, ..plain })
    }
}

fn nodes(hosts: &str, usual: u16) -> Result<Vec<Node>, InvalidAddress> {
    hosts.split(',').map(|host| node(host, usual)).collect()
}

fn node(text: &str, usual: u16) -> Result<Node, InvalidAddress> {
    // An IPv6 address stands in brackets, because it has colons of its own.
    let bare = text.rsplit_once(']').map_or(text, |(_, port)| port);
    let (host, port) = match bare.rsplit_once(':') {
        Some((_, port)) => (&text[..text.len() - port.len() - 1], port.parse().map_err(|_| PORT)?),
        None => (text, usual),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(HOST);
    }
    Ok(Node { host: host.to_owned(), port })
}

/// A user and a password as they stand before the host.
fn log_in(identity: &str) -> Result<(Option<String>, Option<String>), InvalidAddress> {
    let (user, password) = match identity.split_once(':') {
        Some((user, password)) => (user, Some(decoded(password)?)),
        None => (identity, None),
    };
    Ok((Some(decoded(user)?).filter(|user| !user.is_empty()), password))
}

/// What a URL writes as `%40` is an `@`.
fn decoded(text: &str) -> Result<String, InvalidAddress> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2).ok_or(ESCAPE)?;
        let digits = std::str::from_utf8(digits).map_err(|_| ESCAPE)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| ESCAPE)?);
        rest = behind;
    }
    String::from_utf8(bytes).map_err(|_| ESCAPE)
}

const REDIS: u16 = 6_379;
const SENTINEL: u16 = 26_379;

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
    remedy: "write the name Sentinel knows it by behind the hosts: redis+sentinel://host/mymaster",
};
const DATABASE: InvalidAddress = InvalidAddress {
    what: "what follows the host is not the number of a database",
    remedy: "write redis://host/0, or nothing; a cluster has only database 0",
};
const PORT: InvalidAddress = InvalidAddress {
    what: "the store's port is not a number",
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
