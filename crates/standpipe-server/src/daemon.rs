//! The life of the daemon: it claims its directory, listens, serves, and stops in good order.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use standpipe::config::StoreSettings;
use standpipe::{Builder, Settings, Standpipe, StoreUrl, state_directory};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::claim::{Claim, Running, is_for_group};
use crate::doors::{self, Doors, Listeners};
use crate::failure::Failure;
use crate::house::House;
use crate::log::Log;
use crate::token::Token;
use crate::{api, counting, guard, listen, reload, ui, watching};

/// How the daemon is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The configuration file, when it is not looked for.
    pub config: Option<PathBuf>,
    /// The store, whatever the configuration says.
    pub store: Option<StoreUrl>,
    /// The address, whatever the configuration says.
    pub listen: Option<SocketAddr>,
    /// How it speaks.
    pub log: Log,
}

/// A daemon that has begun.
#[derive(Debug)]
pub struct Begun {
    /// Where it can be reached.
    pub running: Running,
    /// What a person would call the store.
    pub store: String,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// A pool of it, where calls may use no others.
    pub pool: Option<String>,
}

impl Options {
    /// The directory whose daemon this is: the store's own where that is one, else the user's.
    ///
    /// # Errors
    /// When there is none, or the configuration cannot be used.
    pub fn directory(&self) -> Result<PathBuf, Failure> {
        directory(&self.stored(&reload::find(self)?))
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

    /// Whether others than this machine can reach it.
    pub(crate) fn needs_token(&self, settings: &Settings) -> bool {
        !address(self, settings).ip().is_loopback()
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

pub(crate) fn no_token(address: SocketAddr) -> Failure {
    Failure::config(
        format!("others than this machine can reach {address}, and there is no token"),
        "make one (openssl rand -hex 32 > token; chmod 600 token) and name it in standpipe.toml: \
         [server] token_file = \"token\"; or listen on 127.0.0.1",
    )
}

/// Runs the daemon until it is told to stop. `begun` is told where it listens.
///
/// # Errors
/// When it cannot begin: another one runs, the address is taken, the configuration is wrong.
pub fn run(options: &Options, begun: impl FnOnce(&Begun)) -> Result<(), Failure> {
    let settings = reload::find(options)?;
    let version = reload::version(settings.origin.as_deref());
    let token = settings.server.token_file.as_deref().map(Token::read).transpose();
    let token = token.map_err(|what| Failure::config(what, "mend it, and start again"))?;
    let wanted = address(options, &settings);
    if options.needs_token(&settings) && token.is_none() {
        return Err(no_token(wanted));
    }
    let directory = directory(&options.stored(&settings))?;
    let claim = Claim::take(&directory)?;
    let tcp = listen::tcp(wanted)?;
    let socket = socket(&settings).cloned().unwrap_or_else(|| directory.join("standpipe.sock"));
    let unix = listen::unix(&socket, is_for_group(&directory))?;
    let at = tcp.local_addr().unwrap_or(wanted);
    listen::raise_file_limit();
    let tap = options.builder(settings).open()?;
    let (store, config) = (tap.store_place(), tap.settings().origin.clone());
    let pool = tap.settings().pools.keys().next().map(ToString::to_string);
    let pool = pool.filter(|_| !tap.settings().open_pools);
    let needs_token = token.is_some();
    let house = Arc::new(House::new(tap, token, options.log)?);
    let running = Running {
        pid: std::process::id(),
        address: at,
        socket: Some(socket.clone()),
        token: needs_token,
    };
    let runtime = doors::runtime()?;
    let served = runtime.block_on(async {
        // From here on signals are heard, so that whoever is told that it is ready can send one.
        let signals = Signals::listen()?;
        let helpers = start_helpers(&house, options, signals, version);
        let doors = Doors::open(&house, &app(&house), &Listeners { tcp, unix })?;
        claim.announce(&running)?;
        let up = format!("up: http://{}, process {}", running.address, running.pid);
        begun(&Begun { running, store, config, pool });
        house.log.info(&up);
        let shared = Arc::clone(&house);
        tokio::task::spawn_blocking(move || look_around(&shared));
        doors.closed().await;
        helpers.into_iter().for_each(|helper| helper.abort());
        Ok(())
    });
    let _left_as_it_is = std::fs::remove_file(&socket);
    // Tasks that end with the runtime may hold the last handle, which would write it otherwise.
    house.tap().flush_journal();
    // Whatever a thread still waits for, nobody waits for that.
    runtime.shutdown_background();
    drop(claim);
    served
}

/// Everything that is answered.
fn app(house: &Arc<House>) -> Router {
    let routes = api::or_else(api::router().merge(ui::router()));
    routes.layer(from_fn_with_state(Arc::clone(house), guard::check)).with_state(Arc::clone(house))
}

/// The signals that tell it something.
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

/// What goes on beside the answering.
fn start_helpers(
    house: &Arc<House>,
    options: &Options,
    signals: Signals,
    version: reload::Version,
) -> Vec<tokio::task::JoinHandle<()>> {
    let Signals { hangup, term, interrupt } = signals;
    vec![
        tokio::spawn(watching::keep_looking(Arc::clone(house))),
        tokio::spawn(counting::keep_counting(Arc::clone(house))),
        tokio::spawn(reload::keep_reading(Arc::clone(house), options.clone(), hangup, version)),
        tokio::spawn(stop_when_told(Arc::clone(house), term, interrupt)),
    ]
}

/// Looks whether the store is there, and tells pools what the file says of them.
fn look_around(house: &House) {
    let tap = house.tap();
    if let Err(error) = tap.ping() {
        house.log.warn(&format!("{error}; until it answers, calls are told 503"));
    }
    for name in tap.settings().pools.keys() {
        reload::tell(house, &tap, name.as_str());
    }
}

/// Ends the daemon in good order when it is told to, and at once when it is told twice.
async fn stop_when_told(house: Arc<House>, mut term: Signal, mut interrupt: Signal) {
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    house.log.info("stopping: nobody new is let in, those who wait are sent away to come back");
    house.stopping.send_replace(true);
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    house.log.warn("told twice: ending at once");
    house.at_once.send_replace(true);
}
