//! `config`: the configuration file.

mod init;

use serde_json::{Map, Value, json};

use super::Ended;
use crate::args::{Check, ConfigAct, Show};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(super) fn run(act: ConfigAct, settings: &Settings, printer: &Printer) -> Ended {
    match act {
        ConfigAct::Init(args) => init::run(&args, settings, printer),
        ConfigAct::Check(args) => check(&args, settings, printer),
        ConfigAct::Show(args) => show(&args, settings, printer),
        ConfigAct::Schema => {
            printer.data(&format!("{:#}\n", standpipe::Settings::schema()))?;
            Ok(Exit::Ok)
        }
    }
}

fn check(args: &Check, settings: &Settings, printer: &Printer) -> Ended {
    let found = settings.found_at(args.file.as_deref())?;
    let file = found.origin.as_ref().map(|file| file.display().to_string());
    let pools = found.pools.len();
    if printer.json {
        let mut object = Map::new();
        object.insert("file".to_owned(), json!(file));
        object.insert("ok".to_owned(), json!(true));
        object.insert("pools".to_owned(), json!(pools));
        printer.object(object)?;
    } else {
        let said = match file {
            Some(file) => format!("{file}: fine, {pools} pool(s)"),
            None => "there is no configuration file, and none is needed; \
                     `standpipe config init` writes one"
                .to_owned(),
        };
        printer.line(&said)?;
    }
    Ok(Exit::Ok)
}

fn show(args: &Show, settings: &Settings, printer: &Printer) -> Ended {
    let found = settings.found()?;
    if printer.json {
        let object = match found.describe() {
            Value::Object(object) => object,
            other => Map::from_iter([("settings".to_owned(), other)]),
        };
        printer.object(object)?;
    } else {
        printer.data(&found.to_toml(args.origin))?;
    }
    Ok(Exit::Ok)
}
