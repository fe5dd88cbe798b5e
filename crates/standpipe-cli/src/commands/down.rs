//! `down`: stops the daemon of a state directory and waits for its end.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use standpipe_server::{Log, Running, running};

use super::CommandResult;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;

/// A little longer than the daemon waits for open requests.
const TIMEOUT: Duration = Duration::from_secs(15);

pub(super) fn run(context: &Context, printer: &Printer) -> CommandResult {
    let directory = context.daemon(None, Log::default()).directory()?;
    let Some(Running { pid, address, .. }) = running(&directory) else {
        let what = format!("no daemon runs on {}", directory.display());
        let hint = match context.has_certain_store() {
            true => "`standpipe up` starts one; another one may have another STANDPIPE_HOME",
            false => {
                "the configuration file is invalid and may name another directory: give it \
                      with --store file:/path"
            }
        };
        return Err(Failure::new(Exit::Store, "no_daemon", &what, hint));
    };
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let sent = raw.map(|raw| kill_process(raw, Signal::TERM));
    if let Some(Err(error)) = sent {
        let error = std::io::Error::from(error);
        return Err(Failure::system(&format!("cannot stop process {pid}"), &error));
    }
    let began = Instant::now();
    while running(&directory).is_some_and(|there| there.pid == pid) {
        if began.elapsed() > TIMEOUT {
            let what = format!("process {pid} got SIGTERM and has not ended yet");
            let hint = format!("wait, or end it at once: kill -9 {pid}");
            return Err(Failure::new(Exit::NotInTime, "daemon", &what, &hint));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let object = json!({ "pid": pid, "url": format!("http://{address}"), "stopped": true });
    printer.done(&format!("the daemon on http://{address} has stopped"), object)?;
    Ok(Exit::Ok)
}
