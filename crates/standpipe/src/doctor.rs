//! What `doctor` checks, gathered from a store that is opened for it.
//!
//! Apart from one heartbeat for the round trip it changes nothing. The findings are in
//! `standpipe-observe`.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use standpipe_core::Action;
pub(crate) use standpipe_observe::doctor::Diagnosis;
use standpipe_observe::doctor::{OpenStore, Pools, RoundTrip, Scene, Survey};
use standpipe_observe::status::PoolOverview;
use standpipe_store::{PoolName, Replica};
use standpipe_store_file::FileStore;

use crate::client::store_client::StoreClient;
use crate::config::{ConfigError, Settings};
use crate::error::Error;
use crate::moment::Timestamp;
use crate::tap::Standpipe;

/// How far back the journal is read.
const WEEK: Duration = Duration::from_secs(7 * 86_400);

/// Gathers what the findings are computed from. `assumed` means that the configuration is broken
/// and could have named another store.
pub(crate) fn scene(
    settings: Result<Settings, ConfigError>,
    assumed: bool,
    agent: Option<String>,
    directory: Option<PathBuf>,
    tap: &Result<Standpipe, Error>,
) -> Scene {
    let week_ago = SystemTime::now().checked_sub(WEEK);
    let now = Timestamp::now();
    let journal = tap.as_ref().ok().map(Standpipe::journal);
    // Read first: the round trip adds an event.
    let week = journal.into_iter().flat_map(|journal| journal.events(week_ago, None));
    let week = week.filter(|event| !event.is_internal()).collect();
    Scene {
        now,
        settings,
        assumed,
        agent,
        survey: directory.and_then(survey),
        store: tap.as_ref().map_err(ToString::to_string).and_then(open_store),
        week,
    }
}

fn open_store(tap: &Standpipe) -> Result<OpenStore, String> {
    let handle = tap.store_handle().map_err(|error| error.to_string())?;
    let store_client = handle.store_client();
    let lost = tap.lost_ledgers().map_err(|error| error.to_string())?;
    let pools = pools(tap);
    let round_trip =
        round_trip(pools.as_ref().ok(), store_client).map_err(|error| error.to_string());
    let engine = store_client.engine();
    let server = engine.server_info().map(|info| info.map_err(|error| error.to_string()));
    Ok(OpenStore {
        place: tap.store_location(),
        pools: pools.map_err(|error| error.to_string()),
        journal: tap.journal().directory().map(ToOwned::to_owned),
        unwritable: tap.journal().unwritable_files(),
        round_trip,
        messages: store_client.take_messages(),
        quarantined: engine.file().map(FileStore::quarantined_files).unwrap_or_default(),
        lost,
        server,
    })
}

fn pools(tap: &Standpipe) -> Result<Pools, Error> {
    let handle = tap.store_handle()?;
    let overview = |name: PoolName| {
        let seen = handle.store_client().overview(&name).map_err(|error| error.to_string());
        (name, seen)
    };
    Ok(tap.pools_in_store()?.into_iter().map(overview).collect())
}

/// Checks that an event that is written can be read by others.
fn round_trip(
    pools: Option<&Pools>,
    store_client: &std::sync::Arc<StoreClient>,
) -> Result<RoundTrip, Error> {
    let file = store_client.engine().file();
    file.map_or(Ok(()), FileStore::check_writable)?;
    // A heartbeat to the pool that was used last changes no usage there.
    let idle = |pool: &PoolOverview| pool.unused_ms.unwrap_or(u64::MAX);
    let readable =
        pools.into_iter().flatten().filter_map(|(name, seen)| Some((name, seen.as_ref().ok()?)));
    let Some((pool, _)) = readable.min_by_key(|(_, seen)| idle(seen)) else {
        return Ok(if file.is_some() { RoundTrip::Marker } else { RoundTrip::NoPool });
    };
    let client = store_client.client(pool)?;
    store_client.settle(&client, vec![Action::Heartbeat { lease: None, ttl: None }])?;
    let written = client.dispatcher().participant.replica().position();
    let mut reader = Replica::new();
    reader.catch_up(&mut store_client.store().log(pool)?, |_, _, _| ())?;
    if reader.position().number >= written.number {
        return Ok(RoundTrip::Event(pool.clone()));
    }
    let what = format!("an event of `{pool}` was written and cannot be read");
    Err(Error::invalid(what, "check the disk"))
}

/// Surveys a directory without opening the store in it; `None` if that fails, because then the
/// store cannot open it either.
fn survey(directory: PathBuf) -> Option<Survey> {
    let seen = standpipe_store_file::Survey::of(&directory).ok()?;
    Some(Survey {
        path: seen.path,
        exists: seen.exists,
        mode: seen.mode,
        owner: seen.owner,
        user: seen.user,
        file_system: seen.file_system,
        network: seen.network.map(ToOwned::to_owned),
        free: seen.free,
    })
}
