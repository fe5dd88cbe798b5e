//! The one place where it is decided which engine a tap runs on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant as Local;

use standpipe_core::{Instant, Span, bounds};
use standpipe_store::{MemoryStore, Store};
use standpipe_store_file::{FileStore, For, Options};

use crate::config::StoreUrl;
use crate::error::Error;
use crate::home::state_directory;
use crate::registry::{Opened, Opener};

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
    let open: Opener = Arc::new(move || Ok(Opened { store: Arc::clone(&store), file: None }));
    Found { key, open, directory: None }
}

/// The store that is meant; nothing said is the file store in the user's state directory.
pub(super) fn by_url(
    url: Option<&StoreUrl>,
    home: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Found, Error> {
    let directory = match url {
        Some(StoreUrl::Memory) => return Ok(memory()),
        Some(other @ (StoreUrl::Redis(_) | StoreUrl::Etcd(_))) => {
            return Err(Error::invalid(
                format!("this build has no engine for the store {other}"),
                "use `file` or `memory`",
            ));
        }
        Some(StoreUrl::File(Some(directory))) => return Ok(file(directory.clone(), For::Group)),
        Some(StoreUrl::File(None)) | None => match home {
            Some(home) => home.to_path_buf(),
            None => state_directory(env)?,
        },
    };
    Ok(file(directory, For::User))
}

/// A directory that is named is for everybody of its group, the default one for its user.
fn file(directory: PathBuf, whom: For) -> Found {
    let absolute = std::path::absolute(&directory).unwrap_or(directory);
    let real = absolute.canonicalize().unwrap_or_else(|_| absolute.clone());
    let opened = absolute.clone();
    let open: Opener = Arc::new(move || {
        let store = FileStore::open_with(&opened, Options { whom, ..Options::default() })?;
        Ok(Opened { store: Arc::new(store.clone()), file: Some(store) })
    });
    Found { key: format!("file {}", real.display()), open, directory: Some(absolute) }
}

/// Another directory that pools can be moved to.
pub(crate) fn target(url: &StoreUrl) -> Result<FileStore, Error> {
    let StoreUrl::File(Some(directory)) = url else {
        return Err(Error::invalid(
            format!("pools cannot be moved to {url}"),
            "name a directory: file:/var/lib/standpipe",
        ));
    };
    let options = Options { whom: For::Group, ..Options::default() };
    Ok(FileStore::open_with(directory, options)?)
}

fn memory() -> Found {
    let open: Opener = Arc::new(|| {
        let began = Local::now();
        let clock = Arc::new(move || {
            let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            Instant(bounds::SPAN.0) + Span(micros)
        });
        Ok(Opened { store: Arc::new(MemoryStore::new(clock)), file: None })
    });
    Found { key: "memory".to_owned(), open, directory: None }
}
