//! `up`: runs the daemon, in the foreground or detached.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use standpipe::escape;
use standpipe_server::{Begun, Log, Options, Running, logging, no_links};

use super::CommandResult;
use crate::args::{LogFormat, LogLevel, Up};
use crate::context::Context;
use crate::daemon::store_outage;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation;
use crate::printer::Printer;

/// A larger log of a detached daemon is rotated at the next start.
const MAX_LOG: u64 = 1 << 20;

/// How long a daemon that another process starts may take to become ready.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// After this time the next attempt to start a daemon is made.
const RETRY_START: Duration = Duration::from_millis(500);

pub(super) fn run(args: &Up, context: &Context, printer: &Printer) -> CommandResult {
    let json = args.log_format.map_or(printer.json, |format| format == LogFormat::Json);
    let log = Log { json, quiet: context.is_quiet() };
    let options = context.daemon(args.listen, log);
    if args.detach {
        return detach(&options, context, printer);
    }
    let format = if json { logging::LogFormat::Json } else { logging::LogFormat::Human };
    logging::init(format, level(args.log_level, context.is_quiet()));
    if args.detached {
        // A session of its own, so that signals of the terminal do not reach it.
        let _is_leader_already = rustix::process::setsid();
    }
    let mut announced = Ok(());
    standpipe_server::run(&options, |begun| {
        // The parent returns when it reads the announcement, so the log must be open before.
        let log = args.detached.then(|| open_log(&options)).flatten();
        announced = announce(begun, printer, args.detached);
        if let Some(log) = log {
            let _not_redirected = rustix::stdio::dup2_stdout(&log);
            let _not_redirected = rustix::stdio::dup2_stderr(&log);
        }
    })?;
    announced.map(|()| Exit::Ok)
}

/// The level of the log; `--quiet` hides what is not a warning.
const fn level(level: LogLevel, quiet: bool) -> logging::LogLevel {
    match level {
        LogLevel::Error => logging::LogLevel::Error,
        LogLevel::Warn => logging::LogLevel::Warn,
        LogLevel::Info if quiet => logging::LogLevel::Warn,
        LogLevel::Info => logging::LogLevel::Info,
        LogLevel::Debug => logging::LogLevel::Debug,
        LogLevel::Trace => logging::LogLevel::Trace,
    }
}

/// Prints where the daemon listens and what to do next.
fn announce(begun: &Begun, printer: &Printer, detached: bool) -> Result<(), Failure> {
    if printer.json || detached {
        return Ok(printer.object(object(begun))?);
    }
    Ok(printer.data(&welcome(begun, false))?)
}

fn object(begun: &Begun) -> Map<String, Value> {
    let Running { pid, address, socket, token } = &begun.running;
    let mut object = Map::new();
    object.insert("pid".to_owned(), json!(pid));
    object.insert("url".to_owned(), json!(format!("http://{address}")));
    object.insert("socket".to_owned(), json!(socket));
    object.insert("token".to_owned(), json!(token));
    object.insert("store".to_owned(), json!(begun.store));
    object.insert("config".to_owned(), json!(begun.config));
    object.insert("pool".to_owned(), json!(begun.pool));
    object.insert("warnings".to_owned(), json!(begun.warnings));
    object
}

fn welcome(begun: &Begun, detached: bool) -> String {
    let Running { socket, token, .. } = &begun.running;
    let address = begun.running.address_here();
    let config = match &begun.config {
        Some(file) => escape::text(&file.display().to_string()).into_owned(),
        None => "none; `standpipe config init` writes one".to_owned(),
    };
    let socket = socket.as_ref().map(|path| path.display().to_string());
    let socket = socket.map(|path| format!("  unix:{}", escape::text(&path)));
    let header = if *token { " \\\n     -H \"authorization: Bearer $TOKEN\"" } else { "" };
    let (ask, hold) = match &begun.pool {
        Some(pool) => (format!("{{\"pool\":\"{pool}\",\"ttl_ms\":60000}}"), pool.clone()),
        None => (
            r#"{"pool":"demo/slots","limits":{"parallel":2},"ttl_ms":60000}"#.to_owned(),
            "demo/slots --limit parallel=2".to_owned(),
        ),
    };
    let end = if detached { "`standpipe down` stops it." } else { "Ctrl-C stops it." };
    format!(
        "standpipe {version} is up.\n\n  \
           dashboard  http://{address}/\n  \
           API        http://{address}/v1{socket}\n  \
           ledger     {store}\n  \
           config     {config}\n\n\
         {program}\
         Reserve a call before it is sent, commit it afterwards:\n\n  \
           lease=$(curl -s http://{address}/v1/leases{header} \\\n     \
           -H content-type:application/json -d '{ask}' |\n     \
           python3 -c 'import json, sys; print(json.load(sys.stdin)[\"lease\"])')\n  \
           curl -s http://{address}/v1/leases/$lease/commit{header} \\\n     \
           -H content-type:application/json -d '{{}}'\n\n\
         Or from a shell:\n\n  standpipe hold {hold} -- sleep 10\n\n{end}\n",
        version = env!("CARGO_PKG_VERSION"),
        socket = socket.unwrap_or_default(),
        store = escape::text(&begun.store),
        program = through_the_proxy(&begun.running),
    )
}

/// How a program uses the proxy. `standpipe run` cannot make SDKs send a token.
fn through_the_proxy(running: &Running) -> String {
    if !running.token {
        return "Send a program through it, with no change to the program:\n\n  \
                standpipe run -- python3 my_agent.py\n\n"
            .to_owned();
    }
    format!(
        "$TOKEN is the token in token_file. Send a program through the daemon with its base URL \
         and\nthe token in a header, for example:\n\n  \
         Anthropic(base_url=\"http://{}/anthropic\",\n            \
         default_headers={{\"x-standpipe-token\": os.environ[\"TOKEN\"]}})\n\n",
        running.address_here()
    )
}

/// Returns the daemon that runs. Its clients must need no token, which no SDK can send.
pub(super) fn running(context: &Context) -> Result<Running, Failure> {
    let directory = context.daemon(None, Log::default()).directory()?;
    match standpipe_server::running(&directory) {
        Some(running) => without_token(running),
        None => Err(Failure::new(
            Exit::Store,
            "no_daemon",
            &format!("no daemon runs on {}", directory.display()),
            "start one: standpipe up --detach",
        )),
    }
}

fn without_token(running: Running) -> Result<Running, Failure> {
    if !running.token {
        return Ok(running);
    }
    Err(Failure::new(
        Exit::Config,
        "daemon",
        "the daemon requires a token, and no variable makes a program send it",
        "set the header x-standpipe-token in the program, as `standpipe up` shows, or remove \
         [server] token_file and listen on 127.0.0.1",
    ))
}

/// Returns the daemon that runs, and starts one if none does.
///
/// Of several programs that start at once one starts the daemon. The others are refused, because
/// it has the lock already, and wait until it is ready. They try to start one again in between:
/// the first one may fail, and then the next attempt reports why.
pub(super) fn running_or_start(context: &Context, printer: &Printer) -> Result<Running, Failure> {
    let options = context.daemon(None, Log::default());
    let directory = options.directory()?;
    let began = Instant::now();
    let mut running = standpipe_server::running(&directory);
    while running.is_none() {
        match start_detached(daemon_words(&options)) {
            Ok(output) => {
                let url = output.get("url").and_then(Value::as_str).unwrap_or_default();
                printer.note(&format!("started a daemon: {url} (`standpipe down` stops it)"));
                note_warnings(&warnings(&output), printer);
                return self::running(context);
            }
            Err(failure) if !is_already_running(&failure) => return Err(by_file(failure)),
            Err(failure) if began.elapsed() > READY_TIMEOUT => {
                let what = format!("{}, but it is not ready", failure.detail());
                let hint = "end that process, or set STANDPIPE_HOME to another directory";
                return Err(Failure::new(Exit::Store, "daemon", &what, hint));
            }
            Err(_) => running = wait_until_ready(&directory),
        }
    }
    running.map_or_else(|| self::running(context), without_token)
}

/// The command line of a daemon with the flags of this command.
fn daemon_words(options: &Options) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(file) = &options.config {
        words.extend(["--config".into(), file.into()]);
    }
    if let Some(url) = &options.store {
        words.extend(["--store".into(), url.to_string().into()]);
    }
    words.extend(["up".into(), "--detached".into()]);
    words
}

/// Names the file in a hint that names a flag of `up`, which `run` does not have.
fn by_file(failure: Failure) -> Failure {
    failure.map_hint(|hint| hint.replace("--listen", "`listen =` in standpipe.toml"))
}

/// Whether a daemon could not start because another one has the state directory.
fn is_already_running(failure: &Failure) -> bool {
    failure.detail().starts_with("a daemon is already running")
}

/// Waits for the addresses of a daemon that another process starts, until the next attempt is due.
fn wait_until_ready(directory: &Path) -> Option<Running> {
    let began = Instant::now();
    loop {
        let running = standpipe_server::running(directory);
        if running.is_some() || began.elapsed() > RETRY_START {
            return running;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts the daemon in the background and waits until it is ready or has failed.
fn detach(options: &Options, context: &Context, printer: &Printer) -> CommandResult {
    // The same arguments, so that every flag applies to the daemon.
    let words = invocation::words().into_iter();
    let words = words.map(|word| if word == "--detach" { "--detached".into() } else { word });
    let output = start_detached(words.collect())?;
    let begun = options.directory().ok().and_then(|directory| begun(&directory, &output));
    let warnings = warnings(&output);
    match begun {
        _ if printer.json => {
            printer.object(output.into_iter().filter(|(key, _)| key != "schema").collect())?;
        }
        Some(begun) => printer.data(&welcome(&begun, true))?,
        None => printer.note("the daemon is up; `standpipe down` stops it"),
    }
    note_warnings(&warnings, printer);
    note_outage(context, printer);
    Ok(Exit::Ok)
}

/// Returns what a daemon announced that will fail.
fn warnings(output: &Map<String, Value>) -> Vec<String> {
    let warnings = output.get("warnings").and_then(Value::as_array).into_iter().flatten();
    warnings.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

fn note_warnings(warnings: &[String], printer: &Printer) {
    for warning in warnings {
        printer.note(&format!("warning: {warning}"));
    }
}

/// Notes that the daemon that was started cannot reach its store.
fn note_outage(context: &Context, printer: &Printer) {
    if let Some(why) = store_outage(context) {
        printer.note(&format!(
            "{why}; the daemon retries until the store answers, and calls get 503 meanwhile"
        ));
    }
}

/// Starts a daemon with these arguments. Returns what it announces when it is ready.
fn start_detached(words: Vec<OsString>) -> Result<Map<String, Value>, Failure> {
    let (program, before) = invocation::program()
        .map_err(|error| Failure::system("cannot find the path of this program", &error))?;
    let mut command = Command::new(program);
    command.args(before).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| Failure::system("cannot start the daemon in the background", &error))?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        // One line when it is ready; none if it fails.
        let _closed_without = BufReader::new(out).read_line(&mut line);
    }
    match serde_json::from_str::<Value>(&line) {
        Ok(Value::Object(output)) => Ok(output),
        _ => Err(startup_failure(child)),
    }
}

fn begun(directory: &Path, output: &Map<String, Value>) -> Option<Begun> {
    let running = standpipe_server::running(directory)?;
    let config = output.get("config").and_then(Value::as_str).map(PathBuf::from);
    let pool = output.get("pool").and_then(Value::as_str).map(ToOwned::to_owned);
    let store = output.get("store")?.as_str()?.to_owned();
    Some(Begun { running, store, config, pool, warnings: warnings(output) })
}

/// The failure of a daemon that ended before it was ready: its last error.
fn startup_failure(mut child: std::process::Child) -> Failure {
    let mut output = String::new();
    if let Some(err) = child.stderr.take() {
        let _until_it_ends = err.take(64 * 1024).read_to_string(&mut output);
    }
    let code = child.wait().ok().and_then(|status| status.code());
    let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(Exit::Internal.number());
    let last = |prefix: &str| output.lines().rev().find_map(|line| line.strip_prefix(prefix));
    let what = last("error: ").or_else(|| output.lines().last());
    let what = what.unwrap_or("the daemon ended before it was ready");
    Failure::new(Exit::Code(code), "daemon", what, last("hint: ").unwrap_or_default())
}

/// Opens the log of a detached daemon, or `/dev/null` if it cannot be opened.
fn open_log(options: &Options) -> Option<File> {
    let directory = options.directory().ok()?;
    let path = directory.join("daemon.log");
    if std::fs::metadata(&path).is_ok_and(|log| log.len() > MAX_LOG) {
        let _kept_as_it_is = std::fs::rename(&path, directory.join("daemon.1.log"));
    }
    let mut open = OpenOptions::new();
    let log = open.append(true).create(true).mode(0o600).custom_flags(no_links()).open(&path);
    log.or_else(|_| File::options().write(true).open("/dev/null")).ok()
}

impl From<standpipe_server::Failure> for Failure {
    fn from(failure: standpipe_server::Failure) -> Self {
        use standpipe_server::Failure as Cause;
        match failure {
            Cause::Place { what, remedy } => Self::new(Exit::Store, "daemon", &what, &remedy)
                .with("title", json!("the daemon cannot begin")),
            Cause::Config { what, remedy } => Self::new(Exit::Config, "config", &what, &remedy),
            Cause::Tap(error) => error.into(),
        }
    }
}
