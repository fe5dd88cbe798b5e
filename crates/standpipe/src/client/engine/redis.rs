//! The Redis engine of a tap.

use std::path::PathBuf;
use std::sync::Arc;

use standpipe_core::bounds;
use standpipe_observe::doctor::ServerInfo;
use standpipe_store::{Liveness, PoolName, Process, Replica, Store, StoreError};
use standpipe_store_file::FileStore;
use standpipe_store_redis::{Address, InvalidAddress, Options, RedisStore, SessionRegistry};

use super::Engine;
use crate::client::registry::Opener;
use crate::config::{ConfigError, Settings, StoreSettings, TextError};
use crate::error::Error;
use crate::tap::open::Found;

/// Returns how a server is opened. The markers of its pools and the sessions of this machine are in
/// the user's state directory. Without one everything works, and a warning names what is missing.
pub(crate) fn found(
    url: &str,
    store: &StoreSettings,
    settings: &Settings,
    directory: Result<PathBuf, Error>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Found, Error> {
    let mut address: Address =
        url.parse().map_err(|wrong: InvalidAddress| Error::invalid(wrong.what, wrong.remedy))?;
    let unreadable = |(key, TextError { what, remedy })| {
        Error::from(ConfigError::from(settings.problem_at(&["store", key], what, remedy)))
    };
    if let Some(password) = store.read_password(env).map_err(unreadable)? {
        address = address.with_password(password);
    }
    if let Some(pem) = store.read_authority().map_err(unreadable)? {
        address = address.with_authority(pem);
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
        let options = Options {
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

/// The warning when the state directory cannot be used.
fn without_local_sessions(error: &str) -> String {
    format!(
        "processes of this machine that are killed keep their slots until they were silent for 2 \
         min, because the state directory cannot be used: {error}"
    )
}

pub(super) fn server_info(store: &RedisStore) -> Result<ServerInfo, StoreError> {
    let info = store.server_info()?;
    Ok(ServerInfo {
        version: info.version,
        eviction: info.eviction,
        append_only_file: info.append_only_file,
        replicas: info.replicas,
        is_master: info.is_master,
        is_private: info.is_private,
        has_password: info.has_password,
    })
}

/// Rejects a pool that was used lately. Processes of other machines cannot be tested; that they are
/// silent can.
pub(super) fn check_silent(pool: &PoolName, replica: &Replica) -> Result<(), Error> {
    let living = replica.state().facts().sessions.values().filter(|session| !session.ended);
    let Some(last) = living.map(|session| session.last_seen).max() else { return Ok(()) };
    let silent = replica.now().since(last);
    if silent >= bounds::SILENCE {
        return Ok(());
    }
    let what = format!("`{pool}` was used {} s ago and cannot move", silent.0 / 1_000_000);
    Err(Error::invalid(what, "stop its users and wait until it was silent for 2 min"))
}

/// The sessions of this machine, in its state directory although the ledger is elsewhere. So other
/// processes of the machine see at once that a session's process was killed.
#[derive(Debug)]
struct LocalSessions(FileStore);

impl SessionRegistry for LocalSessions {
    fn begin(&self) -> Result<u64, StoreError> {
        self.0.begin_session()
    }

    fn end(&self, session: u64) {
        self.0.end_session(session);
    }

    fn renew(&self, session: u64) {
        self.0.renew_session(session);
    }

    fn liveness(&self, session: u64) -> Liveness {
        self.0.liveness(session)
    }

    fn process_of(&self, session: u64) -> Option<Process> {
        self.0.process_of(session)
    }
}
