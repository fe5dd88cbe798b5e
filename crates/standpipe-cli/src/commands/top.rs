//! `top`: the live view. This file chooses its source; `top/` does the rest.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use standpipe::{StoreUrl, state_directory};

use super::CommandResult;
use crate::args::Top;
use crate::context::Context;
use crate::daemon::{Address, DaemonClient, pid};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::top;
use crate::top::source::Source;
use crate::top::source::daemon::DaemonSource;
use crate::top::source::ledger::LedgerSource;

pub(super) fn run(args: Top, context: &Context, printer: &Printer) -> CommandResult {
    if printer.json {
        return Err(Failure::usage("`top` prints no data", "use `status --json`"));
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let remedy = "`standpipe status` prints the same once, without a terminal";
        return Err(Failure::usage("`top` needs a terminal for input and output", remedy));
    }
    if std::env::var("TERM").is_ok_and(|kind| kind == "dumb") {
        let remedy = "`standpipe status` prints the same once";
        return Err(Failure::usage("a dumb terminal cannot be drawn on", remedy));
    }
    let interval = args.interval;
    let source = source(args, context, printer)?;
    let end = top::run(source, printer.style, interval)?;
    for line in end.messages {
        printer.note(&line);
    }
    Ok(end.exit)
}

/// Chooses the ledger, unless a daemon is named or the ledger is in a daemon's memory.
fn source(args: Top, context: &Context, printer: &Printer) -> Result<Box<dyn Source>, Failure> {
    let found = context.settings_of_ledger(printer)?;
    let in_memory = context.store(&found) == StoreUrl::Memory;
    if args.daemon.is_none() && !in_memory {
        if args.token_file.is_some() {
            let remedy = "add --daemon, or remove --token-file";
            return Err(Failure::usage(
                "--token-file is for a daemon, but the ledger is read directly",
                remedy,
            ));
        }
        return ledger(args, &found, context);
    }
    let address = args.daemon.unwrap_or_else(|| default_address(&found));
    let file = args.token_file.or(found.server.token_file);
    let daemon = DaemonClient::with_token_file(address, file.as_deref())?;
    Ok(Box::new(DaemonSource::new(daemon, args.pool)))
}

fn ledger(
    args: Top,
    found: &standpipe::Settings,
    context: &Context,
) -> Result<Box<dyn Source>, Failure> {
    // The file has been noted already.
    let tap = context.open_with(found.clone())?;
    if let Some(pool) = &args.pool {
        match context.existing_pool(&tap, pool) {
            // An unavailable store may become available while the view is open.
            Err(failure) if failure.exit == Exit::Store => {}
            known => drop(known?),
        }
    }
    // Without a daemon only the calls through its proxy are missing.
    let token = found.server.token_file.as_deref();
    let daemon = DaemonClient::with_token_file(default_address(found), token).ok();
    Ok(Box::new(LedgerSource::new(tap, args.pool, daemon, pid(context))))
}

/// Returns the address of the configured daemon: its socket if there is one, else its port.
fn default_address(found: &standpipe::Settings) -> Address {
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
