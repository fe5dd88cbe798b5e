//! A file of another version: its events mean something else to this one, or its bytes do.
//!
//! A newer pool is refused and left untouched. An older one is refused while its processes live;
//! with none alive it is renamed, and a new file starts with full limits and the old configuration.

use std::fs;
use std::sync::Arc;

use standpipe_core::{Action, Configure, SEMANTICS};
use standpipe_store::StoreError;
use standpipe_store::engine::semantics::reject_newer;

use crate::file::head::Head;
use crate::file::pool_file::PoolFile;
use crate::log::FileLog;
use crate::store::directory::fs_error;

impl FileLog {
    /// Refuses or upgrades a file of other semantics. `Ok(None)` means that a new file is in its
    /// place.
    pub(crate) fn handle_other_semantics(
        &mut self,
        file: &PoolFile,
        head: &Head,
    ) -> Result<Option<Arc<Head>>, StoreError> {
        reject_newer(&self.pool, head.semantics)?;
        let theirs = format!("semantics {}, this one {SEMANTICS}", head.semantics);
        self.replace_older(file, &theirs, self.salvage_config(file))?;
        Ok(None)
    }

    /// Renames the file of an older version, unless a process still uses it, and creates a new one
    /// with full limits and this configuration.
    pub(crate) fn replace_older(
        &self,
        file: &PoolFile,
        theirs: &str,
        config: Option<Configure>,
    ) -> Result<(), StoreError> {
        let pool = &self.pool;
        let living = self.store.sessions.living_pids();
        if !living.is_empty() {
            let pids: Vec<String> = living.iter().map(ToString::to_string).collect();
            return Err(StoreError::incompatible(format!(
                "`{pool}` is used by an older Standpipe ({theirs}); end these processes or update \
                 them first: {}",
                pids.join(", ")
            )));
        }
        let kept = self.quarantine_name("older");
        fs::rename(&self.path, &kept).map_err(|error| fs_error("rename", &self.path, error))?;
        self.retire(file);
        self.store.warn(Some(pool), format!(
            "`{pool}` was last used by an older Standpipe; its ledger is kept as {}; rates count \
             as full and recover over one period, slots after `lease_ttl`",
            kept.display()
        ));
        let configured = config.map(|configure| Action::Configure(Box::new(configure)));
        let events: Vec<Action> = configured.into_iter().chain([Action::Forgotten]).collect();
        self.create(&events)
    }
}
