//! The commands, one file each. They print through the printer and return an exit code or a
//! failure.

mod admission;
mod audit;
mod cancel;
mod commit;
mod completions;
mod config;
mod doctor;
mod down;
mod env;
mod events;
mod explain;
mod heartbeat;
mod help;
mod hold;
mod leases;
mod man;
mod observe;
mod pause;
mod reply;
mod reserve;
mod resume;
mod run;
mod status;
mod store;
mod throttle;
mod top;
mod units;
mod up;

use crate::args::Command;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;

/// The exit code of a command, or why it failed.
pub(crate) type CommandResult = Result<Exit, Failure>;

pub(crate) fn run(command: Command, context: &Context, printer: &Printer) -> CommandResult {
    match command {
        Command::Up(args) => up::run(&args, context, printer),
        Command::Down(_) => down::run(context, printer),
        Command::Run(args) => run::run(&args, context, printer),
        Command::Env(args) => env::run(&args, context, printer),
        Command::Hold(args) => hold::run(&args, context, printer),
        Command::Reserve(args) => reserve::run(&args, context, printer),
        Command::Commit(args) => commit::run(&args, context, printer),
        Command::Cancel(args) => cancel::run(&args, context, printer),
        Command::Heartbeat(args) => heartbeat::run(&args, context, printer),
        Command::Throttle(args) => throttle::run(args, context, printer),
        Command::Observe(args) => observe::run(&args, context, printer),
        Command::Pause(args) => pause::run(&args, context, printer),
        Command::Resume(args) => resume::run(&args, context, printer),
        Command::Status(args) => status::run(&args, context, printer),
        Command::Top(args) => top::run(args, context, printer),
        Command::Explain(args) => explain::run(&args, context, printer),
        Command::Events(args) => events::run(&args, context, printer),
        Command::Audit(args) => audit::run(&args, context, printer),
        Command::Doctor(_) => doctor::run(context, printer),
        Command::Store(args) => store::run(args.act, context, printer),
        Command::Config(args) => config::run(args.act, context, printer),
        Command::Completions(args) => completions::run(args.shell, printer),
        Command::Man => man::run(printer),
        Command::Help(args) => help::run(&args.topic, printer),
    }
}
