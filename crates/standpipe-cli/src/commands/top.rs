//! `top`: the live view. Which source it looks at is decided here; all else is in `top/`.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use standpipe::{StoreUrl, state_directory};

use super::Ended;
use crate::args::Top;
use crate::daemon::{Address, Daemon};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;
use crate::top;
use crate::top::source::Source;
use crate::top::source::daemon::OverHttp;
use crate::top::source::ledger::Ledger;

pub(super) fn run(args: Top, settings: &Settings, printer: &Printer) -> Ended {
    if printer.json {
        return Err(Failure::usage("`top` draws, it prints no data", "use `status --json`"));
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let remedy = "`standpipe status` prints the same once, anywhere";
        return Err(Failure::usage("`top` needs a terminal to draw on and to hear keys", remedy));
    }
    if std::env::var("TERM").is_ok_and(|kind| kind == "dumb") {
        let remedy = "`standpipe status` prints the same once";
        return Err(Failure::usage("a dumb terminal cannot be drawn on", remedy));
    }
    let interval = args.interval;
    let source = source(args, settings)?;
    let over = top::run(source, printer.style, interval)?;
    for line in over.said {
        printer.talk(&line);
    }
    Ok(over.exit)
}

/// The ledger, unless a daemon is named or only a daemon can know.
fn source(args: Top, settings: &Settings) -> Result<Box<dyn Source>, Failure> {
    let found = settings.found()?;
    let in_memory = settings.store(&found) == StoreUrl::Memory;
    if args.daemon.is_none() && !in_memory {
        if args.token_file.is_some() {
            let remedy = "say which with --daemon, or leave --token-file out";
            return Err(Failure::usage("a token is for a daemon, and the ledger is asked", remedy));
        }
        return ledger(args, settings);
    }
    let address = args.daemon.unwrap_or_else(|| usual(&found));
    let file = args.token_file.or(found.server.token_file);
    let daemon = Daemon::with_token_file(address, file.as_deref())?;
    Ok(Box::new(OverHttp::new(daemon, args.pool)))
}

fn ledger(args: Top, settings: &Settings) -> Result<Box<dyn Source>, Failure> {
    let tap = settings.open()?;
    if let Some(pool) = &args.pool {
        match settings.known(&tap, pool) {
            // A store that is away may come back while somebody looks.
            Err(failure) if failure.exit == Exit::Store => {}
            known => drop(known?),
        }
    }
    Ok(Box::new(Ledger::new(tap, args.pool)))
}

/// Where the daemon of these settings listens: its socket if there is one, else its port.
fn usual(found: &standpipe::Settings) -> Address {
    let beside = state_directory(&|name| std::env::var(name).ok()).ok();
    let beside = beside.map(|state| state.join("standpipe.sock"));
    let socket = found.server.socket.clone().or(beside).filter(|socket| socket.exists());
    let listens = found.listen.unwrap_or(standpipe::Settings::LISTEN);
    let here = match listens.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ip => ip,
    };
    socket.map_or_else(|| Address::Tcp(SocketAddr::new(here, listens.port())), Address::Unix)
}
