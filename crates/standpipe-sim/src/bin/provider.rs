//! The enforcing provider as a program, for shells, Python and curl:
//!
//! ```console
//! $ cargo run -p standpipe-sim --bin provider -- --requests 10/s --parallel 3
//! http://127.0.0.1:41873
//! ```
//!
//! It prints its address and serves until it is killed or, with `--stdin`, until its standard input
//! is closed. `GET /log` shows what it saw.

use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use standpipe_sim::{Cap, ProviderServer, Rule, ServerOptions, Shape, Unit};

const USAGE: &str = "\
usage: provider [OPTIONS]
  --requests RATE     calls, for example 10/s, 600/min or 5000/h; also --tokens, --input, --output
  --parallel N        calls in flight
  --kind KIND         of the rates behind it: window (default), bucket or fixed
  --burst N           what the buckets behind it hold (default: the amount of the rate)
  --shape SHAPE       anthropic, openai, azure, gemini, mistral, github or plain (default)
  --service-ms N      how long a call takes (default 0)
  --spent             refuses every call, because the month's money is spent
  --lenient           admits what is over a limit, and says so in the log
  --port N            on 127.0.0.1 (default: chosen by the system)
  --stdin             ends when standard input is closed
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let failed = match wanted(&words) {
        Ok(wanted) => match serve(wanted) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => format!("error: {error}\n"),
        },
        Err(error) => format!("error: {error}\n{USAGE}"),
    };
    // Without standard error the code has to say it.
    let _told = std::io::stderr().write_all(failed.as_bytes());
    ExitCode::from(2)
}

/// Nothing may be spent for thirty days.
const SPENT: Rule = Rule::SpendCap { amount: 0, resets: 30 * 86_400_000_000, cap: Cap::Enforced };

struct PlannedCall {
    options: ServerOptions,
    stdin: bool,
}

fn serve(wanted: PlannedCall) -> std::io::Result<()> {
    let server = ProviderServer::start(wanted.options)?;
    let mut out = std::io::stdout();
    writeln!(out, "http://{}", server.address())?;
    out.flush()?;
    if wanted.stdin {
        std::io::stdin().read_to_end(&mut Vec::new())?;
        server.stop();
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}

fn wanted(words: &[String]) -> Result<PlannedCall, String> {
    let mut wanted =
        PlannedCall { options: ServerOptions::new(Shape::Plain, Vec::new()), stdin: false };
    let (mut kind, mut burst) = ("window".to_owned(), None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let options = &mut wanted.options;
        match word.as_str() {
            "--lenient" => options.options.lenient = true,
            "--stdin" => wanted.stdin = true,
            "--spent" => options.rules.push(SPENT),
            "--kind" => kind.clone_from(value()?),
            "--burst" => burst = Some(number(value()?)?),
            "--parallel" => {
                options.rules.push(Rule::Concurrency { amount: number(value()?)? });
            }
            "--service-ms" => options.service = Duration::from_millis(number(value()?)?),
            "--port" => options.port = value()?.parse().map_err(|_| "no such port".to_owned())?,
            "--shape" => {
                let lenient = options.options.lenient;
                let shaped = ServerOptions::new(shape(value()?)?, Vec::new());
                (options.shape, options.options) = (shaped.shape, shaped.options);
                options.options.lenient = lenient;
            }
            other => options.rules.push(rate(unit(other)?, value()?, &kind, burst)?),
        }
    }
    Ok(wanted)
}

fn unit(word: &str) -> Result<Unit, String> {
    match word {
        "--requests" => Ok(Unit::Requests),
        "--tokens" => Ok(Unit::Tokens),
        "--input" => Ok(Unit::Input),
        "--output" => Ok(Unit::Output),
        other => Err(format!("there is no option {other}")),
    }
}

fn shape(word: &str) -> Result<Shape, String> {
    match word {
        "anthropic" => Ok(Shape::Anthropic),
        "openai" => Ok(Shape::OpenAi),
        "azure" => Ok(Shape::Azure),
        "gemini" => Ok(Shape::Gemini),
        "mistral" => Ok(Shape::Mistral),
        "github" => Ok(Shape::GitHub),
        "plain" => Ok(Shape::Plain),
        other => Err(format!("there is no shape {other}")),
    }
}

/// `10/s`, `30/2s`, `600/min`.
fn rate(unit: Unit, text: &str, kind: &str, burst: Option<u64>) -> Result<Rule, String> {
    let wrong = || format!("{text} is no rate; write for example 10/s or 600/min");
    let (amount, period) = text.split_once('/').ok_or_else(wrong)?;
    let letters = period.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (many, name) = period.split_at(letters);
    let many = if many.is_empty() { 1 } else { number(many)? };
    let one: u64 = match name {
        "ms" => 1_000,
        "s" => 1_000_000,
        "min" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(wrong()),
    };
    let (amount, period) = (number(amount)?, many.saturating_mul(one));
    match kind {
        "window" => Ok(Rule::Rolling { unit, amount, period }),
        "bucket" => Ok(Rule::Bucket { unit, amount, period, burst: burst.unwrap_or(amount) }),
        "fixed" => Ok(Rule::FixedWindow { unit, amount, period, offset: 0 }),
        other => Err(format!("there is no kind {other}; use window, bucket or fixed")),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no whole number"))
}
