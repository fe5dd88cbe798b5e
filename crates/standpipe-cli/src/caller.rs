//! The default agent: the name of the program that called us.

use standpipe::named_after;

/// Returns `$STANDPIPE_AGENT`, else the calling program's name with every invalid character
/// replaced by `-`.
pub(crate) fn agent() -> String {
    let set = std::env::var("STANDPIPE_AGENT").ok().filter(|name| !name.is_empty());
    set.unwrap_or_else(|| named_after(&parent().unwrap_or_default()))
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

fn name_of(pid: i32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()
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
    fn a_programs_name_becomes_an_agents() {
        assert_eq!(named_after("bash\n"), "bash");
        assert_eq!(named_after("my script.sh"), "my-script.sh");
        assert_eq!(named_after("(sd🚰pam)"), "-sd-pam-");
        assert_eq!(named_after(" \n"), "unnamed");
        assert_eq!(named_after(&"x".repeat(70)).len(), 64);
    }
}
