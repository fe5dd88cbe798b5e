//! The default agent: the name of the program that called us.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use standpipe::named_after;

/// Returns `$STANDPIPE_AGENT`, if it is set.
pub(crate) fn configured() -> Option<String> {
    std::env::var("STANDPIPE_AGENT").ok().filter(|name| !name.is_empty())
}

/// Returns the calling program's name with every invalid character replaced by `-`.
pub(crate) fn agent() -> String {
    named_after(&parent().unwrap_or_default())
}

/// Returns the agent of a command that is run: the calling program, unless that is only a shell at
/// a terminal or what starts programs by the clock. Then it is the command itself.
pub(crate) fn agent_running(command: &[OsString]) -> String {
    match parent().filter(|name| !is_only_a_starter(name)) {
        Some(program) => named_after(&program),
        None => started(command),
    }
}

/// Programs that start any others, so that their name says nothing about a call. A shell that runs
/// a script has the script's name.
const STARTERS: &[&str] = &[
    "bash",
    "sh",
    "dash",
    "zsh",
    "fish",
    "ksh",
    "mksh",
    "csh",
    "tcsh",
    "ash",
    "busybox",
    "nu",
    "elvish",
    "pwsh",
    "cron",
    "crond",
    "anacron",
    "atd",
    "systemd",
    "init",
    "tmux",
    "screen",
    "login",
    "su",
    "sudo",
    "doas",
    "sshd",
    "sshd-session",
    "runuser",
    "script",
    "tini",
    "dumb-init",
];

/// Whether a program, as `/proc` names it, is one of [`STARTERS`]: `tmux: server`, `-bash`.
fn is_only_a_starter(name: &str) -> bool {
    let name = name.trim().trim_start_matches('-');
    let name = name.split(':').next().unwrap_or_default().to_ascii_lowercase();
    STARTERS.contains(&name.as_str())
}

/// Returns who works at this terminal: `$STANDPIPE_AGENT`, else the user. The calling program is
/// often only a shell or a multiplexer.
pub(crate) fn user() -> String {
    let user = || ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let user = || user().filter(|user| !user.is_empty()).map(|user| named_after(&user));
    configured().or_else(user).unwrap_or_else(agent)
}

/// Returns the name of a program that is started: its own, or of the script it interprets.
pub(crate) fn started(command: &[OsString]) -> String {
    let mut words = command.iter().map(Path::new).skip_while(|word| {
        let name = word.file_name().and_then(OsStr::to_str).unwrap_or_default();
        // `env A=b python x.py` runs `python`.
        WRAPPERS.contains(&name) || (word.to_str().is_some_and(|word| word.contains('=')))
    });
    let Some(program) = words.next() else { return named_after("") };
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let script = words.next().filter(|_| is_interpreter(program));
    match script.filter(|script| !script.to_string_lossy().starts_with('-')) {
        Some(script) => named_after(&stem(script)),
        None => named_after(&program.file_name().unwrap_or_default().to_string_lossy()),
    }
}

/// Programs whose first argument is the program that matters.
const INTERPRETERS: &[&str] =
    &["python", "pypy", "node", "bun", "deno", "ruby", "perl", "php", "tsx", "sh", "bash", "zsh"];

/// Whether a program runs a script; `python3.12` does.
fn is_interpreter(program: &Path) -> bool {
    let name = program.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name)
}

/// Programs that only run others. Their own caller is used instead.
const WRAPPERS: &[&str] =
    &["timeout", "nice", "nohup", "env", "sudo", "setsid", "xargs", "time", "stdbuf", "ionice"];
/// The most wrappers that are skipped.
const DEPTH: usize = 8;

/// Returns the name of our parent, or of its first ancestor that is no wrapper.
fn parent() -> Option<String> {
    let mut pid = rustix::process::getppid()?.as_raw_nonzero().get();
    let first = name_of(pid)?;
    let mut name = first.clone();
    for _ in 0..DEPTH {
        if !WRAPPERS.contains(&name.trim()) {
            return Some(name);
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        let above = stat.and_then(|stat| parent_in(&stat)).filter(|above| *above > 0);
        let Some((above, its)) = above.and_then(|above| Some((above, name_of(above)?))) else {
            break;
        };
        (pid, name) = (above, its);
    }
    Some(first)
}

/// Returns the name of a running program: that of the script which it interprets, else its own.
fn name_of(pid: i32) -> Option<String> {
    let own = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&OsStr> = words.split(|byte| *byte == 0).map(OsStr::from_bytes).collect();
    Some(named_by(&own, &words))
}

/// The longest name that the kernel keeps. A longer one is cut.
const LONGEST_OWN: usize = 15;

/// A script that is run by its path has its own name already, perhaps cut; `bash script.sh` and
/// `python3 job.py` have that of the interpreter.
fn named_by(own: &str, words: &[&OsStr]) -> String {
    let file = |word: &OsStr| Some(Path::new(word).file_name()?.to_string_lossy().into_owned());
    let own = own.trim_end();
    let script = words.split_first().and_then(|(program, rest)| script_of(program, rest));
    if let Some(script) = script.and_then(file) {
        return script;
    }
    let is_cut = own.len() == LONGEST_OWN;
    let whole = words.first().copied().and_then(file);
    whole.filter(|name| is_cut && name.starts_with(own)).unwrap_or_else(|| own.to_owned())
}

/// Returns the script among the words of an interpreter. The options of shells and of Python that
/// take no script are skipped.
fn script_of<'a>(program: &OsStr, words: &[&'a OsStr]) -> Option<&'a OsStr> {
    let name = program.to_str()?.trim_start_matches('-');
    if !is_interpreter(Path::new(name)) {
        return None;
    }
    let has_short_options = name.ends_with("sh") || name.contains("py");
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.to_str()? {
            "-o" | "-W" | "-X" if has_short_options => drop(words.next()),
            // Options such as -e and -u; -c and -m run no script.
            option if option.starts_with('-') => {
                let is_plain = has_short_options && !option.contains(['c', 'm', '=']);
                if !is_plain || option.len() < 2 || option.starts_with("--") {
                    return None;
                }
            }
            // A pipe has no name.
            pipe if pipe.is_empty() || pipe.starts_with("/dev/") || pipe.starts_with("/proc/") => {
                return None;
            }
            _ => return Some(word),
        }
    }
    None
}

/// Returns the parent's pid: the second field after the name, which is in parentheses and may
/// contain any character.
fn parent_in(stat: &str) -> Option<i32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_whatever_the_program_is_called() {
        for name in ["sh", "a b", "x) S 9 (y"] {
            assert_eq!(parent_in(&format!("42 ({name}) S 17 3 4")), Some(17), "{name}");
        }
        assert_eq!(parent_in("42 (sh"), None);
    }

    #[test]
    fn a_started_program_is_named_after_itself_or_its_script() {
        let named = |line: &str| started(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(named("claude -p hello"), "claude");
        assert_eq!(named("python3 my_agent.py --fast"), "my_agent");
        assert_eq!(named("/usr/bin/python3.12 jobs/digest.py"), "digest");
        assert_eq!(named("python -m digest"), "python");
        assert_eq!(named("env A=1 nice node ./bin/agent.js"), "agent");
        assert_eq!(named("bash"), "bash");
        assert_eq!(started(&[]), "unnamed");
    }

    #[test]
    fn a_calling_interpreter_is_named_after_its_script() {
        let named = |own: &str, line: &str| {
            let words: Vec<&OsStr> = line.split(' ').map(OsStr::new).collect();
            named_by(own, &words)
        };
        for (own, line, expected) in [
            ("nightly.sh\n", "/bin/sh ./nightly.sh --fast", "nightly.sh"),
            ("bash\n", "bash nightly.sh", "nightly.sh"),
            ("bash\n", "bash -eu -o pipefail jobs/nightly.sh", "nightly.sh"),
            ("python3\n", "/usr/bin/python3.12 -u -W error job.py", "job.py"),
            ("node\n", "node job.js", "job.js"),
            ("bash\n", "-bash", "bash"),
            ("bash\n", "bash /dev/fd/63", "bash"),
            ("sh\n", "sh -c standpipe status", "sh"),
            ("python3\n", "python3 -m jobs.nightly", "python3"),
            ("perl\n", "perl -e 1", "perl"),
            (
                "nightly-report-\n",
                "/bin/sh /opt/nightly-report-of-all.sh",
                "nightly-report-of-all.sh",
            ),
            ("a-long-program-\n", "/opt/a-long-program-name x", "a-long-program-name"),
            ("make\n", "make all", "make"),
        ] {
            assert_eq!(named(own, line), expected, "{line}");
        }
    }

    #[test]
    fn a_shell_or_a_scheduler_is_no_agent() {
        for name in ["bash\n", "-zsh", "sh", "CRON", "tmux: server", "systemd", "SCREEN", "sshd"] {
            assert!(is_only_a_starter(name), "{name}");
        }
        for name in ["nightly.sh", "python3", "make", "shell-agent", "cron-job", ""] {
            assert!(!is_only_a_starter(name), "{name}");
        }
    }

    #[test]
    fn a_programs_name_becomes_an_agents() {
        assert_eq!(named_after("bash\n"), "bash");
        assert_eq!(named_after("my script.sh"), "my-script.sh");
        assert_eq!(named_after("(sd🚰pam)"), "-sd-pam-");
        assert_eq!(named_after(" \n"), "unnamed");
        assert_eq!(named_after(&"x".repeat(70)).len(), 64);
    }
}
