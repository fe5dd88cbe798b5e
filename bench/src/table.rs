//! Timing loops and the lines of a table.

use std::time::Instant;

/// The best of a few runs, in nanoseconds per step: the one least disturbed by the machine's other
/// work.
pub(crate) fn nanos_per_step(steps: u64, mut run: impl FnMut(u64)) -> f64 {
    let rounds = (0..5).map(|_| {
        let begun = Instant::now();
        run(steps);
        begun.elapsed().as_secs_f64() * 1e9 / steps as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// The processor and the versions of this run.
pub(crate) fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown processor", |line| line.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{model}, {cores} cores; Standpipe {}, semantics {}.",
        env!("CARGO_PKG_VERSION"),
        standpipe_core::SEMANTICS
    )
}

/// A line of a table of aims.
pub(crate) fn aim(text: &str, found: Option<String>, met: Option<bool>) {
    let found = found.unwrap_or_else(|| "not measured".to_owned());
    let met = match met {
        Some(true) => "reached",
        Some(false) => "**missed**",
        None => "",
    };
    println!("| {text} | {found} | {met} |");
}

/// How many times.
pub(crate) fn reached(times: f64) -> String {
    if times < 10.0 { format!("{times:.2} ×") } else { format!("{times:.0} ×") }
}
