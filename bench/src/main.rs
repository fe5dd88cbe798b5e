//! Speed of Standpipe, measured: `cargo xtask bench`.
//!
//! Prints tables in Markdown; `bench/RESULTS.md` keeps a run with its machine and versions. Timing
//! lives here and never in a test.

#![expect(
    clippy::print_stdout,
    clippy::float_arithmetic,
    reason = "a bench divides seconds and prints what it finds"
)]

mod core_events;
mod pool;
mod table;

fn main() {
    println!("# Speed\n");
    println!("{}\n", table::machine());
    core_events::run();
}
