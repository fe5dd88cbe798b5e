//! A daemon in a process of its own, which is this test program once more.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use standpipe_server::logging::{self, LogFormat};
use standpipe_server::{Options, Running};

use super::{Daemon, Home};

/// How a daemon is started, beside its home.
#[derive(Clone, Copy, Default)]
pub(crate) struct Start<'a> {
    pub(crate) listen: Option<&'a str>,
    pub(crate) store: Option<&'a str>,
    pub(crate) config: Option<&'a Path>,
    /// The level of a log in JSON.
    pub(crate) level: Option<&'a str>,
}

const LISTEN: &str = "STANDPIPE_TEST_LISTEN";
const STORE: &str = "STANDPIPE_TEST_STORE";
const CONFIG: &str = "STANDPIPE_TEST_CONFIG";
const LEVEL: &str = "STANDPIPE_TEST_LEVEL";
const PLAY: &str = "STANDPIPE_TEST_DAEMON";

/// The daemon's process: [`Daemon::start`] runs this test in a process of its own. Among the other
/// tests it does nothing.
#[test]
fn daemon_process() {
    let given = |name: &str| std::env::var(name).ok();
    if given(PLAY).is_none() {
        return;
    }
    if let Some(level) = given(LEVEL) {
        assert!(logging::init(LogFormat::Json, level.parse().unwrap()));
    }
    let options = Options {
        config: given(CONFIG).map(PathBuf::from),
        store: given(STORE).map(|url| url.parse().unwrap()),
        listen: given(LISTEN).map(|address| address.parse().unwrap()),
        ..Options::default()
    };
    let done = standpipe_server::run(&options, |begun| {
        let Running { pid, address, socket, token } = &begun.running;
        let url = format!("http://{address}");
        let ready = json!({"pid": pid, "url": url, "socket": socket, "token": token});
        // On a line of its own: the harness has written the name of the test without ending it.
        let _closed = writeln!(std::io::stdout(), "\n{ready}");
    });
    done.unwrap_or_else(|failure| panic!("{failure}"));
}

impl Daemon {
    /// One on a free port.
    #[track_caller]
    pub(crate) fn up(home: &Home) -> Self {
        Self::start(home, Start { listen: Some("127.0.0.1:0"), ..Start::default() })
    }

    /// One that is started otherwise.
    #[track_caller]
    pub(crate) fn start(home: &Home, start: Start<'_>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = "support::running::daemon_process";
        command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
        for variable in ["STANDPIPE_CONFIG", "STANDPIPE_AGENT"] {
            command.env_remove(variable);
        }
        command
            .env("HOME", &home.path)
            .env("XDG_CONFIG_HOME", home.path.join("config"))
            .env("STANDPIPE_HOME", home.state())
            .env(PLAY, "1")
            .envs(start.listen.map(|listen| (LISTEN, listen)))
            .envs(start.store.map(|store| (STORE, store)))
            .envs(start.config.map(|config| (CONFIG, config)))
            .envs(start.level.map(|level| (LEVEL, level)))
            .current_dir(&home.path);
        Self::ready(command)
    }
}
