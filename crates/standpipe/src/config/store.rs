//! Where the ledger is kept: the store's URL, which may hold a password, and its settings.
//!
//! Only the variants of [`StoreUrl`] hold the password. Everything that can be shown hides it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use standpipe_core::Span;
use standpipe_store_redis::{Address, InvalidAddress};

use super::nearest::nearest;
use super::reader::{Item, Reader};
use super::text::TextError;

/// Which store, and how it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Which one.
    pub url: StoreUrl,
    /// What the keys of a network store begin with.
    pub prefix: String,
    /// How far clocks may be apart (etcd).
    pub skew: Span,
    /// What widens every period unless a pool says otherwise.
    pub slack: Option<Span>,
    /// How many replicas must have an entry before it counts (Redis).
    pub wait_replicas: u32,
    /// Whether the store's history may be thrown away because it is ours alone (etcd).
    pub compact: bool,
    /// A file with the password, instead of one in the URL.
    pub password_file: Option<PathBuf>,
    /// The environment variable that holds it.
    pub password_env: Option<String>,
    /// A file with the certificate authority that the server's certificate is checked by.
    pub ca: Option<PathBuf>,
}

/// Where a ledger is kept. Shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// On this machine, in the given directory or in the user's own.
    File(Option<PathBuf>),
    /// In this process only.
    Memory,
    /// On a Redis server: the URL with its password.
    Redis(String),
    /// In an etcd cluster: the URL with its password.
    Etcd(String),
}

/// The keys of `[store]`.
pub(super) const KEYS: [&str; 9] = [
    "url",
    "prefix",
    "skew",
    "slack",
    "wait_replicas",
    "compact",
    "password_file",
    "password_env",
    "ca",
];

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            url: StoreUrl::File(None),
            prefix: "standpipe".to_owned(),
            skew: Span::millis(500),
            slack: None,
            wait_replicas: 0,
            compact: false,
            password_file: None,
            password_env: None,
            ca: None,
        }
    }
}

impl StoreSettings {
    /// The same elsewhere. What the file says of how to log in is not meant for another store.
    #[must_use]
    pub fn at(self, url: StoreUrl) -> Self {
        if self.url == url {
            return self;
        }
        Self { url, password_file: None, password_env: None, ca: None, ..self }
    }

    /// What widens every period for jitter on the way to the provider, unless a pool says
    /// otherwise.
    #[must_use]
    pub fn slack(&self) -> Span {
        let usual = if self.url.is_network() { Span::millis(100) } else { Span::millis(50) };
        self.slack.unwrap_or(usual)
    }

    /// How long units stay set aside for a due ticket that nobody claims.
    #[must_use]
    pub const fn claim(&self) -> Span {
        if self.url.is_network() { Span::secs(5) } else { Span::secs(2) }
    }
}

impl StoreUrl {
    /// Whether it is reached over a network.
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
            return Err(unknown_store(text));
        };
        let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        let url = match scheme {
            _ if scheme.starts_with("redis") => {
                let wrong = |InvalidAddress { what, remedy }| TextError::new(what, remedy);
                return match text.parse::<Address>() {
                    Ok(_) => Ok(Self::Redis(text.to_owned())),
                    Err(_) if !scheme.contains('+') && !matches!(scheme, "redis" | "rediss") => {
                        Err(unknown_store(scheme))
                    }
                    Err(invalid) => Err(wrong(invalid)),
                };
            }
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

/// The value of `store`: a URL, or a table with one.
pub(super) fn read(reader: &mut Reader<'_>, item: &Item<'_>) -> StoreSettings {
    let mut store = StoreSettings::default();
    if !item.value.is_table() {
        store.url = url(reader, item).unwrap_or(store.url);
        return store;
    }
    for entry in reader.entries(item) {
        match entry.key {
            "url" => store.url = url(reader, &entry).unwrap_or(StoreUrl::Memory),
            "prefix" => store.prefix = prefix(reader, &entry).unwrap_or_default(),
            "skew" => store.skew = reader.span(&entry).unwrap_or_default(),
            "slack" => store.slack = reader.span(&entry),
            "wait_replicas" => store.wait_replicas = replicas(reader, &entry).unwrap_or_default(),
            "compact" => store.compact = reader.flag(&entry).unwrap_or_default(),
            "password_file" => store.password_file = reader.path(&entry),
            "password_env" => store.password_env = super::provider::variable(reader, &entry),
            "ca" => store.ca = reader.path(&entry),
            _ => reader.unknown(&entry, &KEYS, "in [store]"),
        }
    }
    if store.password_file.is_some() && store.password_env.is_some() {
        reader.wrong_at(item, "has password_file and password_env", "keep one of them");
    }
    store
}

fn url(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<StoreUrl> {
    let text = reader.text(item)?;
    match text.parse() {
        Ok(url) => Some(url),
        Err(TextError { what, remedy }) => {
            reader.wrong_at(item, what, remedy);
            None
        }
    }
}

fn prefix(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<String> {
    let text = reader.text(item)?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._:/-".contains(&b);
    if !(1..=64).contains(&text.len()) || !text.bytes().all(plain) {
        let what = "is empty, too long or has odd characters";
        reader.wrong_at(item, what, "use 1 to 64 of A-Z a-z 0-9 . _ : / -");
        return None;
    }
    Some(text.to_owned())
}

fn replicas(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<u32> {
    let count = reader.take(item, super::text::amount)?;
    let few = u32::try_from(count).ok().filter(|few| *few <= 64);
    if few.is_none() {
        reader.wrong_at(item, "is too many", "write how many replicas to wait for, at most 64");
    }
    few
}

/// More than any URL needs.
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

/// Only what stands before a colon is looked at, so that nothing secret is shown.
fn unknown_store(text: &str) -> TextError {
    let word = text.split([':', '/', '@']).next().unwrap_or_default();
    let schemes = ["file", "memory", "redis", "rediss", "etcd"];
    let remedy = match nearest(word, schemes.into_iter()) {
        Some("file") => "did you mean file, or file:/path?".to_owned(),
        Some("memory") => "did you mean memory?".to_owned(),
        Some(scheme) => format!("did you mean {scheme}://host?"),
        None => FORMS.to_owned(),
    };
    TextError::new("this is no store that is known", remedy)
}

/// The URL with everything hidden that can be a password: what stands before the last `@`, after a
/// user's name if there is one, and what a query says.
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
