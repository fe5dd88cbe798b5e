//! The command `pairs`: `cargo run -p standpipe-pairs --release -- --store file --pairs 200`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]

use std::process::ExitCode;

use standpipe_pairs::drive::{self, Pair, Verdict};
use standpipe_pairs::fault::{Fault, Place};
use standpipe_pairs::{client, daemon, fault, lanes, simulated, worker};

const USAGE: &str = "usage: pairs [--store file|redis|daemon] [--on-failure closed|share|open|all]
             [--seed N] [--pairs N] [--only A+B] [--lanes N] [--times N] [--list] [--virtual]
             [--real-time]";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let first = words.next().unwrap_or_default();
    let part = match first.as_str() {
        "worker" => Some(worker::run(&worker::Args::read(words))),
        "configure" => Some(worker::configure(&worker::Args::read(words))),
        "client" => Some(client::run(&worker::Args::read(words))),
        "daemon" => Some(daemon::run(&worker::Args::read(words))),
        "reloaded" => Some(daemon::reloaded(&worker::Args::read(words))),
        "probe" => Some(worker::probe(&worker::Args::read(words))),
        _ => None,
    };
    let done = match part {
        Some(done) => done,
        None => Asked::read(std::env::args().skip(1)).and_then(|asked| by_hand(&asked)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

struct Asked {
    place: Place,
    on_failure: &'static [&'static str],
    seed: u64,
    pairs: usize,
    only: Option<String>,
    lanes: usize,
    times: u64,
    list: bool,
    virtually: bool,
    real_time: bool,
}

impl Asked {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut asked = Self {
            place: Place::File,
            on_failure: &["closed"],
            seed: 1,
            pairs: 100,
            only: None,
            lanes: 8,
            times: 1,
            list: false,
            virtually: false,
            real_time: false,
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--list" => asked.list = true,
                "--virtual" => asked.virtually = true,
                "--real-time" => asked.real_time = true,
                _ => {}
            }
            if matches!(word.as_str(), "--list" | "--virtual" | "--real-time") {
                continue;
            }
            let value = words.next().ok_or(USAGE)?;
            let number = || value.parse::<u64>().map_err(|error| format!("{value}: {error}"));
            match (word.as_str(), value.as_str()) {
                ("--store", "file") => asked.place = Place::File,
                ("--store", "redis") => asked.place = Place::Redis,
                ("--store", "daemon") => asked.place = Place::Daemon,
                ("--on-failure", "closed") => asked.on_failure = &["closed"],
                ("--on-failure", "share") => asked.on_failure = &["share"],
                ("--on-failure", "open") => asked.on_failure = &["open"],
                ("--on-failure", "all") => asked.on_failure = &["closed", "share", "open"],
                ("--seed", _) => asked.seed = number()?,
                ("--pairs", _) => asked.pairs = usize::try_from(number()?).unwrap_or(usize::MAX),
                ("--lanes", _) => asked.lanes = usize::try_from(number()?).unwrap_or(1),
                ("--times", _) => asked.times = number()?,
                ("--only", _) => asked.only = Some(value),
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(asked)
    }

    /// The pairs to run: the one that is named, so often, or a draw without repetition.
    fn chosen(&self) -> Result<Vec<Pair>, String> {
        if let Some(only) = &self.only {
            let faults = fault::all(self.place);
            let (a, b) = only.split_once('+').ok_or(USAGE)?;
            let find = |name: &str| -> Result<Fault, String> {
                let found = faults.iter().find(|fault| fault.name == name).cloned();
                found.ok_or(format!("there is no fault `{name}`; --list names all"))
            };
            let pair = |seed, on_failure| -> Result<Pair, String> {
                Ok(Pair { a: find(a)?, b: find(b)?, place: self.place, seed, on_failure })
            };
            let seeds = self.seed..self.seed + self.times;
            let settings = |seed| self.on_failure.iter().map(move |setting| pair(seed, setting));
            return seeds.flat_map(settings).collect();
        }
        let share = self.pairs.div_ceil(self.on_failure.len());
        let drawn = self.on_failure.iter().zip(self.seed..);
        Ok(drawn
            .flat_map(|(setting, seed)| drive::draw(self.place, setting, seed, share))
            .collect())
    }
}

fn by_hand(asked: &Asked) -> Result<(), String> {
    if asked.list {
        fault::all(asked.place).iter().for_each(|fault| println!("{}", fault.name));
        return Ok(());
    }
    if asked.virtually {
        return in_virtual_time(asked);
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let pairs = asked.chosen()?;
    let count = pairs.len();
    let verdicts = lanes::run(&pairs, asked.lanes, &program, &|done, pair, verdict| {
        eprint!("\r{done} of {count}  ");
        report(pair, verdict);
        for late in verdict.late.iter().filter(|_| asked.real_time) {
            println!("\n{}+{}: {late}\n  {pair}", pair.a.name, pair.b.name);
        }
    });
    eprintln!();
    table(&verdicts);
    let is_broken = |verdict: &Verdict| {
        !verdict.broken.is_empty() || asked.real_time && !verdict.late.is_empty()
    };
    let broken = verdicts.iter().filter(|(_, verdict)| is_broken(verdict)).count();
    if broken > 0 { Err(format!("{broken} of {count} pairs broke a guarantee")) } else { Ok(()) }
}

/// Every pair that can run in virtual time, so many times.
fn in_virtual_time(asked: &Asked) -> Result<(), String> {
    let faults = simulated::all();
    let (mut count, mut broken) = (0, 0);
    for seed in asked.seed..asked.seed + asked.times {
        for (a, first) in &faults {
            for (b, second) in &faults {
                let name = format!("{a}+{b}");
                if asked.only.as_ref().is_some_and(|only| *only != name) {
                    continue;
                }
                let verdict = simulated::run(*first, *second, seed);
                count += 1;
                broken += usize::from(!verdict.broken.is_empty());
                for text in verdict.broken {
                    println!("{name}: {text}\n  pairs --virtual --seed {seed} --only {name}");
                }
            }
        }
    }
    println!("pairs in virtual time {count}, broken {broken}");
    if broken > 0 { Err("a guarantee was broken".to_owned()) } else { Ok(()) }
}

/// Prints what was broken, with the command that replays it.
fn report(pair: &Pair, verdict: &Verdict) {
    for broken in &verdict.broken {
        println!("\n{}+{}: {broken}\n  {pair}", pair.a.name, pair.b.name);
    }
    if let Some(trouble) = &verdict.trouble {
        println!("\n{}+{} was not complete: {trouble}\n  {pair}", pair.a.name, pair.b.name);
    }
}

fn table(verdicts: &[(Pair, Verdict)]) {
    let sum = |of: fn(&Verdict) -> usize| verdicts.iter().map(|(_, v)| of(v)).sum::<usize>();
    println!("pairs     {}", verdicts.len());
    println!("asks      {}", sum(|verdict| verdict.asked));
    println!("grants    {}", sum(|verdict| verdict.granted));
    println!("seen      {}", sum(|verdict| verdict.seen));
    println!("over      {}", sum(|verdict| verdict.over));
    println!("partial   {}", sum(|verdict| usize::from(verdict.trouble.is_some())));
    println!("broken    {}", sum(|verdict| usize::from(!verdict.broken.is_empty())));
}
