//! Who asks when nobody says: the name of the program that called us.

/// `$STANDPIPE_AGENT`, else the calling program's name, with every character that no agent's name
/// has turned into `-`.
pub(crate) fn agent() -> String {
    let said = std::env::var("STANDPIPE_AGENT").ok().filter(|name| !name.is_empty());
    said.unwrap_or_else(|| plain(&parent().unwrap_or_default()))
}

/// The name the kernel shows for our parent.
fn parent() -> Option<String> {
    let parent = rustix::process::getppid()?.as_raw_nonzero();
    std::fs::read_to_string(format!("/proc/{parent}/comm")).ok()
}

fn plain(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._@-".contains(c);
    let name = name.trim().chars().map(|c| if allowed(c) { c } else { '-' }).take(64);
    let name: String = name.collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_name_becomes_an_agents() {
        assert_eq!(plain("bash\n"), "bash");
        assert_eq!(plain("my script.sh"), "my-script.sh");
        assert_eq!(plain("(sd🚰pam)"), "-sd-pam-");
        assert_eq!(plain(" \n"), "unnamed");
        assert_eq!(plain(&"x".repeat(70)).len(), 64);
    }
}
