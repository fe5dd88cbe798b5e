//! What each command does: one file each. They print through the printer and answer how it ended.

mod admission;
mod audit;
mod cancel;
mod commit;
mod completions;
mod config;
mod doctor;
mod down;
mod events;
mod explain;
mod heartbeat;
mod hold;
mod leases;
mod man;
mod observe;
mod pause;
mod reply;
mod reserve;
mod resume;
mod status;
mod store;
mod throttle;
mod top;
mod units;
mod up;

use crate::args::Command;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// How a command ended, or why it could not do what it was asked.
pub(crate) type Ended = Result<Exit, Failure>;

pub(crate) fn run(command: Command, settings: &Settings, printer: &Printer) -> Ended {
    match command {
        Command::Up(args) => up::run(&args, settings, printer),
        Command::Down(_) => down::run(settings, printer),
        Command::Hold(args) => hold::run(args, settings, printer),
        Command::Reserve(args) => reserve::run(args, settings, printer),
        Command::Commit(args) => commit::run(&args, settings, printer),
        Command::Cancel(args) => cancel::run(&args, settings, printer),
        Command::Heartbeat(args) => heartbeat::run(&args, settings, printer),
        Command::Throttle(args) => throttle::run(args, settings, printer),
        Command::Observe(args) => observe::run(&args, settings, printer),
        Command::Pause(args) => pause::run(&args, settings, printer),
        Command::Resume(args) => resume::run(&args, settings, printer),
        Command::Status(args) => status::run(&args, settings, printer),
        Command::Top(args) => top::run(args, settings, printer),
        Command::Explain(args) => explain::run(&args, settings, printer),
        Command::Events(args) => events::run(&args, settings, printer),
        Command::Audit(args) => audit::run(&args, settings, printer),
        Command::Doctor(_) => doctor::run(settings, printer),
        Command::Store(args) => store::run(args.act, settings, printer),
        Command::Config(args) => config::run(args.act, settings, printer),
        Command::Completions(args) => completions::run(args.shell, printer),
        Command::Man => man::run(printer),
    }
}
