//! The life of the daemon: lock the directory, listen, serve, stop.
//!
//! A daemon that could not start leaves no socket and no address file behind. See `reload` for what
//! a change of the configuration does.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use standpipe::config::StoreSettings;
use standpipe::{Builder, Settings, Standpipe, StoreUrl, state_directory};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;
use crate::http::acceptors::{self, Acceptors, Listeners};
use crate::http::service::HttpService;
use crate::instance::{InstanceLock, Running, is_for_group};
use crate::logging::Log;
use crate::state::AppState;
use crate::watch::{journal, snapshots};
use crate::{api, check, listen, reload, ui};

/// How the daemon is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The configuration file; without it the usual places are searched.
    pub config: Option<PathBuf>,
    /// The store, instead of the configured one.
    pub store: Option<StoreUrl>,
    /// The address, instead of the configured one.
    pub listen: Option<SocketAddr>,
    /// How the daemon logs.
    pub log: Log,
}

/// A daemon that is ready.
#[derive(Debug)]
pub struct Begun {
    /// Its process and addresses.
    pub running: Running,
    /// The store's path, or its address without secrets.
    pub store: String,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// A configured pool, if calls may use no others.
    pub pool: Option<String>,
    /// What will fail although the configuration can be used. The log gets it next.
    pub warnings: Vec<String>,
}

impl Options {
    /// The daemon's state directory: that of a file store, else the user's. Of the configuration
    /// only the store matters, so that a daemon can be found and stopped while its file is invalid.
    ///
    /// # Errors
    /// If there is no such directory.
    pub fn directory(&self) -> Result<PathBuf, Failure> {
        let env = |name: &str| std::env::var(name).ok();
        let found = Settings::find_store(self.config.as_deref(), &env);
        directory(&self.stored(&found.map(|(settings, _)| settings).unwrap_or_default()))
    }

    pub(crate) fn builder(&self, settings: Settings) -> Builder {
        let mut builder = Standpipe::builder();
        if let Ok(directory) = directory(&self.stored(&settings)) {
            builder = builder.home(directory);
        }
        if let Some(url) = &self.store {
            builder = builder.store(url.clone());
        }
        builder.settings(settings)
    }

    pub(crate) fn stored(&self, settings: &Settings) -> StoreSettings {
        let store = settings.store.clone().unwrap_or_default();
        match &self.store {
            Some(url) => store.at(url.clone()),
            None => store,
        }
    }
}

fn directory(store: &StoreSettings) -> Result<PathBuf, Failure> {
    match &store.url {
        StoreUrl::File(Some(directory)) => Ok(directory.clone()),
        _ => Ok(state_directory(&|name| std::env::var(name).ok())?),
    }
}

pub(crate) fn address(options: &Options, settings: &Settings) -> SocketAddr {
    options.listen.or(settings.listen).unwrap_or(Settings::LISTEN)
}

/// The Unix socket that the configuration names.
pub(crate) fn socket(settings: &Settings) -> Option<&PathBuf> {
    settings.server.socket.as_ref()
}

/// Runs the daemon until a signal stops it. Calls `begun` when it is ready.
///
/// # Errors
/// If it cannot start: another daemon runs, an address is in use, the configuration is invalid.
pub fn run(options: &Options, begun: impl FnOnce(&Begun)) -> Result<(), Failure> {
    options.log.init();
    let settings = reload::find(options)?;
    let version = reload::version(settings.origin.as_deref());
    let (token, warnings) = check::usable(options, &settings)?;
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let wanted = address(options, &settings);
    let directory = directory(&options.stored(&settings))?;
    let instance = InstanceLock::acquire(&directory)?;
    let tcp = listen::tcp(wanted)?;
    let socket = socket(&settings).cloned().unwrap_or_else(|| directory.join("standpipe.sock"));
    let unix = listen::unix(&socket, is_for_group(&directory))?;
    let at = tcp.local_addr().unwrap_or(wanted);
    listen::raise_file_limit();
    let tap = options.builder(settings).open()?;
    let (store, config) = (tap.store_location(), tap.settings().origin.clone());
    let pool = tap.settings().pools.keys().next().map(ToString::to_string);
    let pool = pool.filter(|_| !tap.settings().has_open_pools());
    let needs_token = token.is_some();
    let state = Arc::new(AppState::new(tap, token, &directory)?);
    let running = Running {
        pid: std::process::id(),
        address: at,
        socket: Some(socket.clone()),
        token: needs_token,
    };
    let runtime = acceptors::runtime()?;
    let served = runtime.block_on(async {
        // Before `begun` reports readiness, so that a signal sent right after it is not lost.
        let signals = Signals::listen()?;
        let tasks = start_tasks(&state, options, signals, version);
        let acceptors = Acceptors::start(&state, &service(&state), &Listeners { tcp, unix })?;
        instance.announce(&running)?;
        let (address, pid) = (running.address, running.pid);
        let begun_with = Begun { running, store, config, pool, warnings };
        begun(&begun_with);
        tracing::info!("up: http://{address}, process {pid}");
        // Only now does a detached daemon write to its log.
        for warning in begun_with.warnings {
            tracing::warn!("{warning}");
        }
        let shared = Arc::clone(&state);
        tokio::task::spawn_blocking(move || check_store(&shared));
        acceptors.ended().await;
        tasks.into_iter().for_each(|task| task.abort());
        Ok(())
    });
    let _already_gone = std::fs::remove_file(&socket);
    // Tasks that end with the runtime may hold the last library handle, whose drop would flush.
    state.tap().flush_journal();
    // A blocking step may still run; the daemon does not wait for it.
    runtime.shutdown_background();
    drop(instance);
    served
}

/// What answers requests: API and dashboard, and the proxy for all other paths.
fn service(state: &Arc<AppState>) -> HttpService {
    let router = api::with_fallbacks(api::router().merge(ui::router()));
    HttpService::new(Arc::clone(state), router.with_state(Arc::clone(state)))
}

/// The signals the daemon handles.
struct Signals {
    hangup: Signal,
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let cannot =
            |error| Failure::new(format!("cannot listen for signals: {error}"), "try again");
        Ok(Self {
            hangup: signal(SignalKind::hangup()).map_err(cannot)?,
            term: signal(SignalKind::terminate()).map_err(cannot)?,
            interrupt: signal(SignalKind::interrupt()).map_err(cannot)?,
        })
    }
}

/// Starts the background tasks.
fn start_tasks(
    state: &Arc<AppState>,
    options: &Options,
    signals: Signals,
    version: reload::Version,
) -> Vec<tokio::task::JoinHandle<()>> {
    let Signals { hangup, term, interrupt } = signals;
    vec![
        tokio::spawn(snapshots::run(Arc::clone(state))),
        tokio::spawn(journal::run(Arc::clone(state))),
        tokio::spawn(reload::run(Arc::clone(state), options.clone(), hangup, version)),
        tokio::spawn(stop_on_signal(Arc::clone(state), term, interrupt)),
    ]
}

/// Checks that the store answers, and sends each configured pool its configuration.
fn check_store(state: &AppState) {
    let tap = state.tap();
    if let Err(error) = tap.ping().blocking() {
        tracing::warn!("{error}; calls get 503 until the store answers");
    }
    for name in tap.settings().pools.keys() {
        reload::configure(&tap, name.as_str());
    }
}

/// Stops gracefully at the first signal and immediately at the second.
async fn stop_on_signal(state: Arc<AppState>, mut term: Signal, mut interrupt: Signal) {
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: new connections are refused, waiting requests get 503");
    state.stopping.send_replace(true);
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::warn!("second signal: stopping immediately");
    state.stop_now.send_replace(true);
}
