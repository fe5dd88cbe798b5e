//! The one place where it is decided which engine a tap runs on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant as Local;

use standpipe_core::{Instant, Span, bounds};
use standpipe_store::{MemoryStore, Store};
use standpipe_store_file::{Audience, FileStore, Options};
use standpipe_store_redis::{Address, InvalidAddress, RedisStore, SessionRegistry};

use crate::config::{Settings, StoreSettings, StoreUrl};
use crate::engine::{Engine, LocalSessions};
use crate::error::Error;
use crate::home::state_directory;
use crate::registry::Opener;

/// A store that can be opened.
pub(super) struct Found {
    /// The same for the same store, in one process.
    pub(super) key: String,
    pub(super) open: Opener,
    /// Where it keeps its files, if it does.
    pub(super) directory: Option<PathBuf>,
}

/// A store that is open already. Each is its own: two may have the same place in words.
pub(super) fn on(store: Arc<dyn Store>) -> Found {
    let key = format!("on {:p}", Arc::as_ptr(&store).cast::<()>());
    let open: Opener = Arc::new(move || Ok(Engine::Other(Arc::clone(&store))));
    Found { key, open, directory: None }
}

/// The store that is meant; nothing said is the file store in the user's state directory.
pub(super) fn by_settings(
    store: &StoreSettings,
    home: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Found, Error> {
    let users = || match home {
        Some(home) => Ok(home.to_path_buf()),
        None => state_directory(env),
    };
    match &store.url {
        StoreUrl::Memory => Ok(memory()),
        StoreUrl::File(Some(directory)) => Ok(file(directory.clone(), Audience::Group)),
        StoreUrl::File(None) => Ok(file(users()?, Audience::User)),
        StoreUrl::Redis(url) => redis(url, store, users(), env),
        other @ StoreUrl::Etcd(_) => Err(Error::invalid(
            format!("this build has no engine for the store {other}"),
            "use `file`, `memory` or `redis://…`",
        )),
    }
}

/// A directory that is named is for everybody of its group, the default one for its user.
fn file(directory: PathBuf, audience: Audience) -> Found {
    let absolute = std::path::absolute(&directory).unwrap_or(directory);
    let real = absolute.canonicalize().unwrap_or_else(|_| absolute.clone());
    let opened = absolute.clone();
    let open: Opener = Arc::new(move || {
        let options = Options { audience, ..Options::default() };
        Ok(Engine::File(FileStore::open_with(&opened, options)?))
    });
    Found { key: format!("file {}", real.display()), open, directory: Some(absolute) }
}

/// A server. What this machine remembers of its pools, and which sessions live here, is in its
/// user's state directory. Without one everything works, and a warning says what is missing.
fn redis(
    url: &str,
    store: &StoreSettings,
    directory: Result<PathBuf, Error>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Found, Error> {
    let mut address: Address =
        url.parse().map_err(|wrong: InvalidAddress| Error::invalid(wrong.what, wrong.remedy))?;
    if let Some(password) = password(store, env)? {
        address = address.with_password(password);
    }
    if let Some(path) = &store.ca {
        address = address.with_authority(read(path, "`ca`")?);
    }
    let key = format!("redis {address} {} {}", store.prefix, store.wait_replicas);
    let (prefix, wait_replicas) = (store.prefix.clone(), store.wait_replicas);
    let home = directory.map_err(|error| error.to_string());
    let directory = home.clone().ok();
    let marker_dir = directory.as_ref().map(|directory| directory.join("known"));
    let open: Opener = Arc::new(move || {
        let local = home.clone().and_then(|home| {
            FileStore::open(&home).map(LocalSessions).map_err(|error| error.to_string())
        });
        let warning = local.as_ref().err().map(|error| without_local_sessions(error));
        let local_sessions = local.ok().map(|local| Arc::new(local) as Arc<dyn SessionRegistry>);
        let options = standpipe_store_redis::Options {
            prefix: prefix.clone(),
            wait_replicas,
            marker_dir: marker_dir.clone(),
            local_sessions,
            quarantine_damaged: true,
        };
        let store = RedisStore::new(address.clone(), options);
        if let Some(warning) = warning {
            store.report(warning);
        }
        Ok(Engine::Redis(store))
    });
    Ok(Found { key, open, directory })
}

/// The state directory cannot be used.
fn without_local_sessions(error: &str) -> String {
    format!(
        "processes of this machine that are killed keep their slots until they were silent for 2 \
         min, because the state directory cannot be used: {error}"
    )
}

/// The password that does not stand in the URL.
fn password(
    store: &StoreSettings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, Error> {
    if let Some(name) = &store.password_env {
        let missing = || {
            let what = format!("the store's password is not in ${name}");
            Error::invalid(what, "set the variable, or change `password_env` in [store]")
        };
        return env(name).filter(|value| !value.is_empty()).map(Some).ok_or_else(missing);
    }
    let Some(path) = &store.password_file else { return Ok(None) };
    let text = String::from_utf8_lossy(&read(path, "`password_file`")?).into_owned();
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

fn read(path: &Path, key: &str) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| {
        let what = format!("{key} of [store] names {}: {error}", path.display());
        Error::invalid(what, "see that the file is there and may be read")
    })
}

/// Another store that pools can be moved to.
pub(crate) fn target(url: &StoreUrl, settings: &Settings) -> Result<Engine, Error> {
    if matches!(url, StoreUrl::Memory | StoreUrl::File(None)) {
        return Err(Error::invalid(
            format!("pools cannot be moved to {url}"),
            "name a directory, file:/var/lib/standpipe, or a server, redis://host",
        ));
    }
    let store = settings.store.clone().unwrap_or_default().at(url.clone());
    let found = by_settings(&store, None, &|name| std::env::var(name).ok())?;
    Ok((found.open)()?)
}

fn memory() -> Found {
    let open: Opener = Arc::new(|| {
        let began = Local::now();
        let clock = Arc::new(move || {
            let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            Instant(bounds::SPAN.0) + Span(micros)
        });
        Ok(Engine::Other(Arc::new(MemoryStore::new(clock))))
    });
    Found { key: "memory".to_owned(), open, directory: None }
}
