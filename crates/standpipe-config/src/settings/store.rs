//! The settings of the store: its URL, which may contain a password, and its options.
//!
//! Only the variants of [`StoreUrl`] contain the password. `Display` and `Debug` hide it, and no
//! error repeats the URL.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use standpipe_core::Span;

#[cfg(feature = "file")]
use crate::keys::{
    form::{Duration, FilePath, Flag, Form, Optional},
    store::{Prefix, Replicas, Url, arrange},
    text::Variable,
};
use crate::nearest::nearest;
use crate::parse::TextError;

settings! {
    /// The settings of the store.
    pub struct StoreSettings, "in [store]", arrange arrange, check |reader, item, store| {
        if store.password_file.is_some() && store.password_env.is_some() {
            reader.problem_at(item, "has password_file and password_env", "keep one of them");
        }
    } => {
        /// Location of the ledger.
        pub url: StoreUrl = StoreUrl::File(None), "url" as Url;
        /// Duration added to every period. Defaults to 50ms, or 100ms over a network.
        pub slack: Option<Span> = None, "slack" as Optional<Duration>,
            value |store, scope| {
                let slack = scope.map(|_| store.slack()).or(store.slack);
                Optional::<Duration>::value(&slack, scope)
            };
        /// Prefix of all keys in a network store.
        pub prefix: String = "standpipe".to_owned(), "prefix" as Prefix;
        /// Maximum difference between clocks (etcd).
        pub skew: Span = Span::millis(500), "skew" as Duration;
        /// Number of replicas that must acknowledge an entry (Redis).
        pub wait_replicas: u32 = 0, "wait_replicas" as Replicas;
        /// Whether the history may be compacted, because no other program uses the cluster (etcd).
        pub compact: bool = false, "compact" as Flag;
        /// File that contains the password.
        pub password_file: Option<PathBuf> = None, "password_file" as Optional<FilePath>;
        /// Environment variable that contains the password.
        pub password_env: Option<String> = None, "password_env" as Optional<Variable>;
        /// Certificate authority that signs the server's certificate.
        pub ca: Option<PathBuf> = None, "ca" as Optional<FilePath>;
    }
}

/// The location of a ledger. `Display` and `Debug` hide its password.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// Files on this machine, in the given directory or in the user's own.
    File(Option<PathBuf>),
    /// The memory of this process.
    Memory,
    /// A Redis server: the URL with its password.
    Redis(String),
    /// An etcd cluster: the URL with its password.
    Etcd(String),
}

impl StoreSettings {
    /// Returns the same settings for another URL. Credentials are dropped if it is another store.
    #[must_use]
    pub fn at(self, url: StoreUrl) -> Self {
        if self.url == url {
            return self;
        }
        Self { url, password_file: None, password_env: None, ca: None, ..self }
    }

    /// Returns the duration added to every period, against jitter on the way to the provider.
    #[must_use]
    pub fn slack(&self) -> Span {
        let default = if self.url.is_network() { Span::millis(100) } else { Span::millis(50) };
        self.slack.unwrap_or(default)
    }

    /// Returns how long units stay earmarked for a due ticket that is not claimed.
    #[must_use]
    pub const fn claim(&self) -> Span {
        if self.url.is_network() { Span::secs(5) } else { Span::secs(2) }
    }
}

/// A key of `[store]` whose file or variable cannot be read, and why. It contains no secret.
type UnreadableKey = (&'static str, TextError);

impl StoreSettings {
    /// Returns the password that `password_env` or `password_file` names.
    ///
    /// # Errors
    /// When there is no password there.
    pub fn read_password(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<String>, UnreadableKey> {
        if let Some(name) = &self.password_env {
            let missing = || {
                let what = format!("${name}, which password_env of [store] names, is not set here");
                let remedy = "set it where Standpipe runs, or change password_env";
                ("password_env", TextError::new(what, remedy))
            };
            return env(name).filter(|value| !value.is_empty()).map(Some).ok_or_else(missing);
        }
        let Some(path) = &self.password_file else { return Ok(None) };
        let text = String::from_utf8_lossy(&read("password_file", path)?).into_owned();
        match text.trim_end_matches(['\r', '\n']) {
            "" => {
                let what = format!("password_file {} is empty", path.display());
                Err(("password_file", TextError::new(what, "write the password into it")))
            }
            password => Ok(Some(password.to_owned())),
        }
    }

    /// Returns the content of the file that `ca` names.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_authority(&self) -> Result<Option<Vec<u8>>, UnreadableKey> {
        self.ca.as_deref().map(|path| read("ca", path)).transpose()
    }
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, UnreadableKey> {
    std::fs::read(path).map_err(|error| {
        let shown = path.display();
        let (what, remedy) = match error.kind() {
            std::io::ErrorKind::NotFound => (
                format!("{key} {shown} does not exist"),
                format!("create the file, or change {key} in [store]"),
            ),
            _ => (
                format!("{key} {shown} cannot be read: {}", standpipe_store::plain_io(&error)),
                format!("let this user read the file, or change {key} in [store]"),
            ),
        };
        (key, TextError::new(what, remedy))
    })
}

impl StoreUrl {
    /// Returns whether the store is reached over a network.
    #[must_use]
    pub const fn is_network(&self) -> bool {
        matches!(self, Self::Redis(_) | Self::Etcd(_))
    }
}

impl FromStr for StoreUrl {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let text = text.trim();
        match text {
            "file" => return Ok(Self::File(None)),
            "memory" => return Ok(Self::Memory),
            _ => {}
        }
        if text.chars().any(char::is_control) || text.len() > LONGEST {
            return Err(TextError::new("the store's URL is too long or not printable", FORMS));
        }
        if let Some(path) = text.strip_prefix("file:") {
            return directory(path);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(without_slashes(text).unwrap_or_else(|| unknown_store(text)));
        };
        let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        let url = match scheme {
            _ if scheme.starts_with("redis") => return redis(text, scheme),
            "etcd" | "etcds" => Self::Etcd(text.to_owned()),
            _ => return Err(unknown_store(scheme)),
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            let remedy = format!("write for example \"{scheme}://localhost\"");
            return Err(TextError::new("the store's URL names no host", remedy));
        }
        Ok(url)
    }
}

/// Checks the URL of a Redis server with the parser of the engine.
#[cfg(feature = "redis")]
fn redis(text: &str, scheme: &str) -> Result<StoreUrl, TextError> {
    use standpipe_store_redis::{Address, InvalidAddress};

    match text.parse::<Address>() {
        Ok(_) => Ok(StoreUrl::Redis(text.to_owned())),
        Err(_) if !scheme.contains('+') && !matches!(scheme, "redis" | "rediss") => {
            Err(unknown_store(scheme))
        }
        Err(InvalidAddress { what, remedy }) => Err(TextError::new(what, remedy)),
    }
}

#[cfg(not(feature = "redis"))]
fn redis(_text: &str, _scheme: &str) -> Result<StoreUrl, TextError> {
    let remedy = "build `standpipe` with the feature `redis`, or use `file`";
    Err(TextError::new("this build has no Redis engine", remedy))
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(None) => f.write_str("file"),
            Self::File(Some(path)) => write!(f, "file:{}", path.display()),
            Self::Memory => f.write_str("memory"),
            Self::Redis(url) | Self::Etcd(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

/// The maximum length of a URL, in bytes.
const LONGEST: usize = 2_048;

const FORMS: &str = "write file, file:/path, memory, redis://host or rediss://host";

fn directory(path: &str) -> Result<StoreUrl, TextError> {
    let path = path.strip_prefix("//").unwrap_or(path);
    if !Path::new(path).is_absolute() {
        return Err(TextError::new(
            "the store's directory is not an absolute path",
            "write it from the root, so that every process finds the same: file:/path",
        ));
    }
    Ok(StoreUrl::File(Some(PathBuf::from(path))))
}

/// The error of a URL whose slashes are missing, and of a path without a scheme. It repeats a text
/// only if it has no part that could be a password.
fn without_slashes(text: &str) -> Option<TextError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:[]".contains(c);
    if text.len() > 128 || !text.chars().all(is_plain) {
        return None;
    }
    let what = format!("`{text}` is not the URL of a store");
    if text.starts_with('/') {
        return Some(TextError::new(what, format!("did you mean file:{text}?")));
    }
    let (scheme, rest) = text.split_once(':')?;
    let rest = rest.trim_start_matches('/');
    let is_network = ["redis", "rediss", "etcd", "etcds"].contains(&scheme);
    (is_network && !rest.is_empty())
        .then(|| TextError::new(what, format!("did you mean {scheme}://{rest}?")))
}

/// Compares and shows only the part before the first colon, so that the message contains no
/// secret.
fn unknown_store(text: &str) -> TextError {
    let word = text.split([':', '/', '@']).next().unwrap_or_default();
    let schemes = ["file", "memory", "redis", "rediss"];
    let remedy = match nearest(word, schemes.into_iter()) {
        Some("file") => "did you mean file, or file:/path?".to_owned(),
        Some("memory") => "did you mean memory?".to_owned(),
        Some(scheme) => format!("did you mean {scheme}://host?"),
        None => FORMS.to_owned(),
    };
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._+-".contains(&b);
    // A word before an `@` may be a part of a password.
    let is_shown = (1..=32).contains(&word.len()) && word.bytes().all(is_plain);
    let what = match is_shown && !text.contains('@') {
        true => format!("there is no store `{word}`"),
        false => "the store is not known".to_owned(),
    };
    TextError::new(what, remedy)
}

/// Hides everything in a URL that can be a password: the part before the last `@`, except for a
/// user name, and the query.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return "***".to_owned();
    };
    let (user, place) = match rest.rsplit_once('@') {
        None => (String::new(), rest),
        Some((identity, place)) => match identity.split_once(':') {
            Some((user, _)) => (format!("{user}:***@"), place),
            None => ("***@".to_owned(), place),
        },
    };
    let (place, query) = match place.split_once(['?', '#']) {
        Some((place, _)) => (place, "?***"),
        None => (place, ""),
    };
    format!("{scheme}://{user}{place}{query}")
}
