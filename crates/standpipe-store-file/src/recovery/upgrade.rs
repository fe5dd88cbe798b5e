//! A file of other semantics: its events mean something else to this version.
//!
//! A newer pool is refused and left untouched. An older one is refused while its processes live;
//! with none alive it is renamed, and a new file starts with full limits and the old configuration.

use std::fs;

use standpipe_core::{Action, SEMANTICS};
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
        head: Head,
    ) -> Result<Option<Head>, StoreError> {
        let (theirs, pool) = (head.semantics, self.pool.clone());
        reject_newer(&pool, theirs)?;
        let living = self.store.sessions.living_pids();
        if !living.is_empty() {
            let pids: Vec<String> = living.iter().map(ToString::to_string).collect();
            return Err(StoreError::incompatible(format!(
                "`{pool}` is used by an older Standpipe (semantics {theirs}, this one \
                 {SEMANTICS}); end these processes or update them first: {}",
                pids.join(", ")
            )));
        }
        let kept = self.quarantine_name("older");
        let config = self.salvage_config(file);
        fs::rename(&self.path, &kept).map_err(|error| fs_error("rename", &self.path, error))?;
        self.retire(file);
        self.store.warn(format!(
            "`{pool}` was last used by an older Standpipe; its ledger is kept as {}, its limits \
             count as full and return over one period",
            kept.display()
        ));
        let configured = config.map(|configure| Action::Configure(Box::new(configure)));
        let events: Vec<Action> = configured.into_iter().chain([Action::Forgotten]).collect();
        self.create(&events)?;
        Ok(None)
    }
}
