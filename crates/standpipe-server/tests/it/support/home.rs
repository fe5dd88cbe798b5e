//! A directory for one test, and the library on the pools in it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use standpipe::config::text;
use standpipe::{LeaseHandle, Request, Settings, Standpipe, StoreUrl};

/// A directory with a state directory and a configuration directory, removed at the end.
pub(crate) struct Home {
    pub(crate) path: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-server-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(path.join("config")).unwrap();
        Self { path }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path.join("state")
    }

    /// Writes the configuration where the daemon finds it.
    pub(crate) fn configure(&self, text: &str) -> PathBuf {
        let directory = self.path.join("config").join("standpipe");
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("standpipe.toml");
        std::fs::write(&file, text).unwrap();
        file
    }

    /// The library in this process, on the pools of the home.
    pub(crate) fn library(&self) -> Standpipe {
        let tap = Standpipe::builder().settings(Settings::default()).home(self.state());
        tap.agent("library").store(StoreUrl::File(Some(self.state()))).open().unwrap()
    }

    /// A pool as the library of this process sees it.
    pub(crate) fn status(&self, pool: &str) -> Value {
        let tap = self.library();
        let pool = tap.existing_pool(&pool.parse().unwrap());
        let snapshot = tap.snapshot(&[pool]).blocking().unwrap();
        serde_json::to_value(&snapshot.pools[0]).unwrap()
    }

    /// Reserves by the library a lease that lives for an hour. Returns its id.
    pub(crate) fn reserve(&self, pool: &str, limit: &str) -> String {
        let tap = self.library();
        let pool = tap.pool(pool).unwrap();
        pool.limit(vec![text::limit(limit).unwrap()]).blocking().unwrap();
        let request = Request::new().ttl(Duration::from_secs(3_600)).timeout(Duration::ZERO);
        pool.reserve(request).blocking().unwrap().into_id().to_string()
    }

    /// A lease by its id, to settle it by the library.
    pub(crate) fn lease(&self, id: &str) -> LeaseHandle {
        self.library().lease(&id.parse().unwrap()).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // The daemon of a test that failed may still write here.
        let _left = std::fs::remove_dir_all(&self.path);
    }
}
