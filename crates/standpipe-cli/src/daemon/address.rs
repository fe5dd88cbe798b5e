//! Where a daemon listens: `http://127.0.0.1:8377` or `unix:/path/standpipe.sock`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// The port a daemon listens on by default.
const PORT: u16 = standpipe::Settings::LISTEN.port();

/// Where a daemon listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A port of this machine.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Address {
    /// Returns the value of a request's `host` header.
    pub(super) fn host(&self) -> String {
        match self {
            Self::Tcp(at) => at.to_string(),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(at) => write!(f, "http://{at}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
            return match path.is_absolute() && !text.contains('\0') {
                true => Ok(Self::Unix(path)),
                false => Err("the socket is not an absolute path; write it from the root: \
                         unix:/path/standpipe.sock"
                    .to_owned()),
            };
        }
        if text.starts_with("https:") {
            return Err("a daemon speaks plain HTTP; write http://127.0.0.1:8377".to_owned());
        }
        let Some(rest) = text.strip_prefix("http://") else {
            return Err("not the address of a daemon; write http://127.0.0.1:8377 or \
                        unix:/path/standpipe.sock"
                .to_owned());
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#', '@']) {
            return Err("more than a host and a port; write http://127.0.0.1:8377".to_owned());
        }
        tcp(rest).map(Self::Tcp)
    }
}

fn tcp(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (text, ""),
    };
    let port = match port {
        "" => PORT,
        port => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
            let shown: String = port.chars().take(20).collect();
            format!("`{shown}` is not a port; use 1 to 65535")
        })?,
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let ip = match bare {
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        other => other.parse::<IpAddr>(),
    };
    match ip {
        Ok(ip) if ip.is_loopback() || ip == IpAddr::V6(Ipv6Addr::LOCALHOST) => {
            Ok(SocketAddr::new(ip, port))
        }
        _ => Err(format!(
            "not an address of this machine; for a daemon elsewhere open a tunnel: \
             ssh -NL {port}:127.0.0.1:{port} HOST"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let cases = [
            ("http://127.0.0.1:8377", "http://127.0.0.1:8377"),
            ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
            ("http://localhost", "http://127.0.0.1:8377"),
            ("http://[::1]:80", "http://[::1]:80"),
            ("http://[::1]", "http://[::1]:8377"),
            ("unix:/run/s.sock", "unix:/run/s.sock"),
            ("unix:///run/s.sock", "unix:/run/s.sock"),
        ];
        for (text, read) in cases {
            assert_eq!(text.parse::<Address>().map(|at| at.to_string()), Ok(read.to_owned()));
        }
    }

    #[test]
    fn invalid_addresses_are_explained() {
        let cases = [
            ("127.0.0.1:8377", "http://127"),
            ("https://127.0.0.1", "plain HTTP"),
            ("http://10.0.0.7:8377", "ssh -NL 8377:"),
            ("http://example.org", "tunnel"),
            ("http://127.0.0.1:0", "not a port"),
            ("http://127.0.0.1:99999", "not a port"),
            ("http://u:p@127.0.0.1:1", "more than a host"),
            ("http://127.0.0.1:1/v1", "more than a host"),
            ("http://", "tunnel"),
            ("unix:s.sock", "from the root"),
            ("", "http://127"),
        ];
        for (text, why) in cases {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
            assert!(error.contains("; "), "{text} has a remedy: {error}");
        }
    }
}
