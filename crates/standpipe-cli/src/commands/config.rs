//! `config`: the configuration file.

mod init;

use serde_json::{Map, Value, json};
use standpipe::config::ConfigError;
use standpipe_server::{Checked, Log};

use super::CommandResult;
use crate::args::{Check, ConfigCommand, Show};
use crate::context::{Context, files};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::show::amount::counted;

pub(super) fn run(act: ConfigCommand, context: &Context, printer: &Printer) -> CommandResult {
    match act {
        ConfigCommand::Init(args) => init::run(&args, context, printer),
        ConfigCommand::Check(args) => check(&args, context, printer),
        ConfigCommand::Show(args) => show(&args, context, printer),
        ConfigCommand::Schema => {
            printer.data(&format!("{:#}\n", standpipe::Settings::schema()))?;
            Ok(Exit::Ok)
        }
    }
}

fn check(args: &Check, context: &Context, printer: &Printer) -> CommandResult {
    let found = context.config_at(args.file.as_deref())?;
    let file = found.origin.as_ref().map(|file| file.display().to_string());
    let pools = found.pools.len();
    let Checked { errors, warnings, .. } =
        standpipe_server::check(&context.daemon(None, Log::default()), &found);
    if !errors.is_empty() {
        return Err(ConfigError { problems: errors }.into());
    }
    let without = found.without_pools().map(|(what, remedy)| format!("{what}; {remedy}"));
    // A file that is named is the only one of interest.
    let unread = files::unread(found.origin.as_deref()).filter(|_| args.file.is_none());
    let has_unread = unread.is_some();
    let warnings = unread.iter().chain(&warnings).map(ToString::to_string);
    let warnings: Vec<String> = without.into_iter().chain(warnings).collect();
    if printer.json {
        let mut object = Map::new();
        object.insert("file".to_owned(), json!(file));
        object.insert("ok".to_owned(), json!(true));
        object.insert("pools".to_owned(), json!(pools));
        object.insert("warnings".to_owned(), json!(warnings));
        printer.object(object)?;
    } else {
        let text = match file {
            Some(file) => format!("{file}: fine, {}", counted(pools, "pool")),
            None if has_unread => "no configuration file is in force".to_owned(),
            None => "there is no configuration file, and none is needed; \
                     `standpipe config init` writes one"
                .to_owned(),
        };
        printer.line(&text)?;
    }
    for warning in warnings {
        printer.note(&format!("warning: {warning}"));
    }
    Ok(Exit::Ok)
}

fn show(args: &Show, context: &Context, printer: &Printer) -> CommandResult {
    let found = context.config()?;
    if printer.json {
        let object = match found.describe() {
            Value::Object(object) => object,
            other => Map::from_iter([("context".to_owned(), other)]),
        };
        printer.object(object)?;
    } else {
        printer.data(&found.to_toml(args.origin))?;
    }
    Ok(Exit::Ok)
}
