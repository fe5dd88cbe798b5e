//! The servers of the comparison: the backend, nginx, Standpipe and `LiteLLM`.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::hold::built;
use crate::scratch::Scratch;
use crate::worker::ourselves;

/// A process that ends when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The backend.
pub(super) struct Backend {
    _process: Running,
    address: SocketAddr,
    pinned: bool,
}

impl Backend {
    pub(super) fn start(pinned: bool) -> Result<Self, String> {
        if pinned {
            // This process and the backend, which inherits it. Proxies get the other core.
            let mut first = rustix::thread::CpuSet::new();
            first.set(0);
            rustix::thread::sched_setaffinity(None, &first).map_err(|error| error.to_string())?;
        }
        let (process, line) = first_line(&mut ourselves("proxy-backend", "-")?)?;
        let address = line.trim().parse().map_err(|_| format!("the backend printed `{line}`"))?;
        Ok(Self { _process: process, address, pinned })
    }

    /// The command of a proxy.
    fn proxy(&self, program: impl AsRef<OsStr>) -> Command {
        if !self.pinned {
            return Command::new(program);
        }
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", "1"]).arg(program);
        command
    }
}

/// A way to the backend.
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    pub(super) path: &'static str,
    process: Option<Running>,
    _scratch: Option<Scratch>,
}

impl Server {
    pub(super) const fn is_proxy(&self) -> bool {
        self.process.is_some()
    }

    pub(super) const fn direct(backend: &Backend) -> Self {
        let (name, path) = ("direct", "/v1/chat/completions");
        Self { name, address: backend.address, path, process: None, _scratch: None }
    }

    pub(super) fn nginx(backend: &Backend) -> Result<Self, String> {
        let (scratch, port) = (Scratch::new()?, free_port()?);
        let config = scratch.path().join("nginx.conf");
        let home = scratch.path().display();
        let text = format!(
            "daemon off; worker_processes auto; pid {home}/pid; error_log {home}/errors;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; client_body_temp_path {home}/body; \
             proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; \
             scgi_temp_path {home}/s; keepalive_requests 1000000;\n\
             upstream backend {{ server {}; keepalive 64; keepalive_requests 1000000; }}\n\
             server {{ listen 127.0.0.1:{port}; client_max_body_size 64m; \
             client_body_buffer_size 1m; location / {{ proxy_pass http://backend; \
             proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }} }}\n",
            backend.address
        );
        std::fs::write(&config, text).map_err(|error| error.to_string())?;
        let mut command = backend.proxy("nginx");
        command.arg("-e").arg(scratch.path().join("errors")).arg("-c").arg(&config);
        let cannot = |error| format!("no nginx: {error}; as root: apt-get install -y nginx-light");
        let process = Running(command.spawn().map_err(cannot)?);
        Self::ready("nginx", port, "/v1/chat/completions", process, scratch)
    }

    pub(super) fn standpipe(backend: &Backend) -> Result<Self, String> {
        let scratch = Scratch::new()?;
        let config = scratch.path().join("standpipe.toml");
        let text = format!(
            "[provider.openai]\nupstream = \"http://{}\"\n[pool.\"openai/gpt-4o\"]\n\
             models = [\"gpt-4o\"]\nrequests = \"10M/min\"\ntokens = \"100G/min\"\n\
             parallel = 4000\n",
            backend.address
        );
        std::fs::write(&config, text).map_err(|error| error.to_string())?;
        let (process, line) =
            first_line(&mut standpipe_command(backend, &built()?, scratch.path()))?;
        let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(['"', '/']).next());
        let port = port.and_then(|port| port.parse().ok()).ok_or("the daemon did not begin")?;
        let path = "/as/bench/openai/v1/chat/completions";
        Self::ready("Standpipe", port, path, process, scratch)
    }

    /// A proxy on the daemon's HTTP stack that only forwards.
    pub(super) fn plain(backend: &Backend) -> Result<Self, String> {
        let own = ourselves("proxy-plain", &backend.address.to_string())?;
        let mut command = backend.proxy(own.get_program());
        let (process, line) = first_line(command.args(own.get_args()))?;
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.ok_or_else(|| format!("the plain proxy printed `{line}`"))?;
        Self::ready(
            "hyper, only forwarding",
            port,
            "/v1/chat/completions",
            process,
            Scratch::new()?,
        )
    }

    /// `LiteLLM`'s proxy, if `LITELLM` names its program.
    pub(super) fn lite_llm(backend: &Backend) -> Result<Option<Self>, String> {
        let Some(program) = std::env::var_os("LITELLM") else { return Ok(None) };
        let (scratch, port) = (Scratch::new()?, free_port()?);
        let config = scratch.path().join("config.yaml");
        let text = format!(
            "model_list:\n- model_name: gpt-4o\n  litellm_params:\n    model: openai/gpt-4o\n    \
             api_base: http://{}/v1\n    api_key: k\nlitellm_settings:\n  telemetry: false\n",
            backend.address
        );
        std::fs::write(&config, text).map_err(|error| error.to_string())?;
        let mut command = backend.proxy(program);
        command.arg("--config").arg(&config).args(["--host", "127.0.0.1", "--port"]);
        command.arg(port.to_string()).args(["--num_workers", "1"]);
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_LOG", "ERROR");
        // It listens on this machine only, for the length of the run.
        command.env("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "true");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let spawned = command.spawn().map_err(|error| format!("no LiteLLM: {error}"))?;
        Self::ready("LiteLLM", port, "/v1/chat/completions", Running(spawned), scratch).map(Some)
    }

    fn ready(
        name: &'static str,
        port: u16,
        path: &'static str,
        process: Running,
        scratch: Scratch,
    ) -> Result<Self, String> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > Duration::from_secs(180) {
                return Err(format!("{name} did not begin in three minutes"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { name, address, path, process: Some(process), _scratch: Some(scratch) })
    }

    /// The processor time of its processes so far.
    pub(super) fn processor_seconds(&self) -> f64 {
        let pids = self.process.as_ref().map(|process| family(process.0.id())).unwrap_or_default();
        pids.into_iter().map(seconds).sum::<f64>()
    }

    /// Resident, in megabytes.
    pub(super) fn memory(&self) -> Result<f64, String> {
        let pid = self.process.as_ref().ok_or("it has no process")?.0.id();
        let text = std::fs::read_to_string(format!("/proc/{pid}/status"));
        let text = text.map_err(|error| error.to_string())?;
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
        let kilobytes = line.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
        kilobytes.map(|kilobytes| kilobytes / 1024.0).ok_or_else(|| "no figure".to_owned())
    }
}

fn standpipe_command(backend: &Backend, program: &Path, home: &Path) -> Command {
    let mut command = backend.proxy(program);
    command
        .args(["--json", "--quiet", "up", "--listen", "127.0.0.1:0", "--config"])
        .arg(home.join("standpipe.toml"))
        .env("STANDPIPE_HOME", home.join("state"));
    command
}

/// Starts a process and returns the first line that it prints.
fn first_line(command: &mut Command) -> Result<(Running, String), String> {
    let spawned = command.stdout(Stdio::piped()).spawn();
    let mut process = Running(spawned.map_err(|error| format!("{command:?}: {error}"))?);
    let mut line = String::new();
    if let Some(out) = process.0.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
    }
    Ok((process, line))
}

/// A process and its children.
fn family(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let mut all = vec![pid];
    for child in children.split_whitespace().filter_map(|word| word.parse().ok()) {
        all.extend(family(child));
    }
    all
}

/// The processor time of all threads of a process, also of those that have ended, in ticks of 10 ms
/// (proc(5), `utime` and `stime`).
fn seconds(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program may contain spaces.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

fn free_port() -> Result<u16, String> {
    let bound = TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr());
    bound.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}
