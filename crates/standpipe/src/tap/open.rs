//! Chooses the engine of a tap.
//!
//! Two taps with the same [`Found::key`] share one session in a process. `client/registry.rs` opens
//! what is found here.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant as Local;

use standpipe_core::{Instant, Span, bounds};
use standpipe_store::{MemoryStore, Store};
use standpipe_store_file::{Audience, FileStore, Options};

use crate::client::engine::Engine;
use crate::client::registry::Opener;
use crate::config::{Settings, StoreSettings, StoreUrl};
use crate::error::Error;
use crate::home::state_directory;

/// A store that can be opened.
pub(crate) struct Found {
    /// Equal for the same store within a process.
    pub(crate) key: String,
    pub(crate) open: Opener,
    /// The directory of its files, if it has one.
    pub(crate) directory: Option<PathBuf>,
}

/// Returns a store that is already open. Its address is the key, because two stores may have the
/// same location.
pub(super) fn on(store: Arc<dyn Store>) -> Found {
    let key = format!("on {:p}", Arc::as_ptr(&store).cast::<()>());
    let open: Opener = Arc::new(move || Ok(Engine::Other(Arc::clone(&store))));
    Found { key, open, directory: None }
}

/// Returns this store. Its keys have the lines of the settings. The default is the file store in
/// the user's state directory.
pub(super) fn by_settings(
    store: &StoreSettings,
    settings: &Settings,
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
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => {
            crate::client::engine::redis::found(url, store, settings, users(), env)
        }
        other => Err(Error::invalid(
            format!("this build has no engine for the store {other}"),
            "use `file`, `memory` or, with the feature `redis`, `redis://…`",
        )),
    }
}

/// Returns a file store. A configured directory is open to its group, the default one to its user.
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

/// Opens another store that pools can be moved to.
pub(crate) fn target(url: &StoreUrl, settings: &Settings) -> Result<Engine, Error> {
    if matches!(url, StoreUrl::Memory | StoreUrl::File(None)) {
        return Err(Error::invalid(
            format!("pools cannot be moved to {url}"),
            "name a directory, file:/var/lib/standpipe, or a server, redis://host",
        ));
    }
    let store = settings.store.clone().unwrap_or_default().at(url.clone());
    let found = by_settings(&store, settings, None, &|name| std::env::var(name).ok())?;
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
