//! The HTTP API is what its document says: schemathesis reads `/openapi.json` of a real daemon and
//! asks it all that can be asked, rightly and wrongly.
//!
//! Bounded in examples, and with one seed: the same run every time. What is kept out of it (long
//! waits, streams) is in `tests/api`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::context::Context;
use crate::install::python;
use crate::report::{Report, last_lines};

/// Where its settings are.
const TESTS: &str = "tests/api";
/// One version, so that nobody's new rule breaks an old commit.
const PACKAGES: [&str; 1] = ["schemathesis==4.32.5"];
/// It ends by itself long before; this one ends a run that hangs.
const BOUND: Duration = Duration::from_secs(600);

/// Where its Python environment is.
fn environment(context: &Context) -> PathBuf {
    context.target.join("api-tools/python")
}

/// Whether schemathesis is here.
pub(crate) fn is_here(context: &Context) -> bool {
    python::is_here(&environment(context), &PACKAGES)
}

/// Installs schemathesis.
pub(crate) fn install(context: &Context) -> Result<(), String> {
    python::environment(context, &environment(context), &PACKAGES).map(drop)
}

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let daemon = Daemon::start(context)?;
    let junit = daemon.home.join("report.xml");
    let mut command = context.program(environment(context).join("bin/schemathesis"));
    // What it remembers of a run is not there in the next one.
    command.current_dir(settings(context, &daemon.home)?);
    command.env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONDONTWRITEBYTECODE", "1");
    command.args(["run", &format!("{}/openapi.json", daemon.url), "--no-color"]);
    command.arg("--report-junit-path").arg(&junit);
    if context.long {
        command.args(["--max-examples", "500"]);
    }
    let finished = context.run(&mut command, BOUND)?;
    let results = fs::read_to_string(&junit).unwrap_or_default();
    let mut report = report(finished.ok, &results, &finished.output);
    match daemon.lives() {
        true => report.pass(),
        false => report.fail("daemon", "the daemon ended during the run", REPEAT),
    }
    Ok(report)
}

const REPEAT: &str = "cargo xtask test api";

/// A copy of the settings, to be run in.
fn settings<'a>(context: &Context, home: &'a Path) -> Result<&'a Path, String> {
    for name in ["hooks.py", "schemathesis.toml"] {
        fs::copy(context.root.join(TESTS).join(name), home.join(name))
            .map_err(|error| format!("cannot copy {TESTS}/{name}: {error}"))?;
    }
    Ok(home)
}

/// A daemon with a home of its own, killed when dropped.
struct Daemon {
    child: std::cell::RefCell<Child>,
    home: PathBuf,
    url: String,
}

impl Daemon {
    fn start(context: &Context) -> Result<Self, String> {
        let home = context.target.join("api-home");
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).map_err(|error| format!("cannot make a home: {error}"))?;
        let config = context.root.join(TESTS).join("standpipe.toml");
        let mut command = context.program(context.standpipe());
        command.arg("--json").arg("--config").arg(config);
        command.args(["up", "--listen", "127.0.0.1:0"]).env("STANDPIPE_HOME", home.join("state"));
        let log = fs::File::create(home.join("log")).map_err(|error| error.to_string())?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child =
            command.spawn().map_err(|error| format!("the daemon cannot be started: {error}"))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            let _nothing_if_it_ended = BufReader::new(out).read_line(&mut line);
        }
        let url = line.split_once("\"url\":\"").and_then(|(_, rest)| rest.split_once('"'));
        let Some((url, _)) = url else {
            let _gone = child.kill();
            let _gone = child.wait();
            let log = fs::read_to_string(home.join("log")).unwrap_or_default();
            return Err(format!("the daemon was never ready: {line}{log}"));
        };
        let url = url.to_owned();
        Ok(Self { child: child.into(), home, url })
    }

    fn lives(&self) -> bool {
        matches!(self.child.borrow_mut().try_wait(), Ok(None))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        // It may have ended already.
        let _gone = child.kill();
        let _gone = child.wait();
    }
}

/// Each operation is one test. The run is seeded, so repeating the suite repeats the failure.
fn report(ok: bool, junit: &str, output: &str) -> Report {
    let all = attribute(junit, "tests");
    let mut failed = attribute(junit, "failures") + attribute(junit, "errors");
    if failed == 0 && (!ok || all == 0) {
        failed = 1;
    }
    let mut report = Report { passed: all.saturating_sub(failed), ..Report::default() };
    for number in 1..=failed {
        // One output tells of all of them.
        let output = if number == 1 { last_lines(output, 120) } else { String::new() };
        report.fail(&format!("api, failure {number} of {failed}"), output, REPEAT);
    }
    report
}

/// A figure of the whole run.
fn attribute(junit: &str, name: &str) -> u64 {
    let head = junit.split_once("<testsuites").map_or("", |(_, rest)| rest);
    let head = head.split_once('>').map_or("", |(head, _)| head);
    let value = head.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
    value.and_then(|(number, _)| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted() {
        let junit = "<?xml?><testsuites disabled=\"0\" errors=\"1\" failures=\"2\" tests=\"18\">";
        let report = report(false, junit, "");
        assert_eq!((report.passed, report.failed()), (15, 3));
    }

    #[test]
    fn a_run_that_found_nothing_to_test_is_a_failure() {
        for (ok, junit) in [(true, ""), (true, "<testsuites tests=\"0\">"), (false, "")] {
            assert_eq!(report(ok, junit, "").failed(), 1, "{junit}");
        }
    }
}
