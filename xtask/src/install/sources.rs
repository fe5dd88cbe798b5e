//! The machine's own list of package sources, and the suite of backports that goes with it.
//!
//! Where packages come from is the machine's business: a mirror of its own, perhaps. So the source
//! of backports is the one it has for its release, with another suite.

use std::path::{Path, PathBuf};

/// All source files of the machine, each with its text.
pub(super) fn read(apt: &Path) -> Vec<String> {
    let parts = std::fs::read_dir(apt.join("sources.list.d")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = parts.map(|entry| entry.path()).collect();
    paths.push(apt.join("sources.list"));
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

/// The source of backports for a release, as a stanza or a line: the same form as the release's.
pub(super) fn backports(text: &str, release: &str) -> Option<Source> {
    stanza(text, release).or_else(|| line(text, release))
}

/// A list of sources in one of the two forms, which apt tells apart by the end of the file's name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) file: &'static str,
    pub(super) text: String,
}

fn stanza(text: &str, release: &str) -> Option<Source> {
    text.split("\n\n").find_map(|stanza| {
        // Lines that begin with a space belong to the field before, as a key in full does.
        let mut fields: Vec<(&str, String)> = Vec::new();
        for line in stanza.lines().filter(|line| !line.starts_with('#')) {
            match (line.starts_with([' ', '\t']), fields.last_mut(), line.split_once(':')) {
                (true, Some((_, value)), _) => *value += &format!("\n{line}"),
                (false, _, Some((name, value))) => fields.push((name, value.trim().to_owned())),
                _ => {}
            }
        }
        let field = |wanted: &str| {
            let found = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.as_str())
        };
        let is_on = field("Enabled") != Some("no");
        let serves = |name, word| field(name).is_some_and(|all| words(all).any(|one| one == word));
        if !is_on || !serves("Suites", release) || !serves("Components", "main") {
            return None;
        }
        if !serves("Types", "deb") {
            return None;
        }
        let mut text = format!(
            "Types: deb\nURIs: {}\nSuites: {release}-backports\nComponents: main\n",
            field("URIs")?
        );
        if let Some(key) = field("Signed-By") {
            text += &format!("Signed-By: {key}\n");
        }
        Some(Source { file: "backports.sources", text })
    })
}

fn line(text: &str, release: &str) -> Option<Source> {
    let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix("deb "));
    lines.find_map(|line| {
        // The address and suite come after options, which may have spaces between their brackets.
        let (options, rest) = match line.trim().strip_prefix('[') {
            Some(rest) => rest.split_once(']').map(|(options, rest)| (Some(options), rest))?,
            None => (None, line),
        };
        let mut rest = words(rest);
        let (address, suite) = (rest.next()?, rest.next()?);
        if suite != release || !rest.any(|component| component == "main") {
            return None;
        }
        let options = options.map(|options| format!("[{options}] ")).unwrap_or_default();
        let text = format!("deb {options}{address} {release}-backports main\n");
        Some(Source { file: "backports.list", text })
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

/// The release's name in `/etc/os-release`.
pub(super) fn release(text: &str) -> Option<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(name.trim_matches('"').to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stanza_keeps_its_address_and_key() {
        let text = "Types: deb\nURIs: http://mirror.invalid/security\nSuites: r-security\n\
                    Components: main\n\nTypes: deb deb-src\n# a remark\n\
                    URIs: http://mirror.invalid/debian\nSuites: r r-updates\n\
                    Components: main contrib\nSigned-By: /keys/archive.gpg\n";
        let expected = "Types: deb\nURIs: http://mirror.invalid/debian\nSuites: r-backports\n\
                        Components: main\nSigned-By: /keys/archive.gpg\n";
        let found = backports(text, "r").unwrap();
        assert_eq!((found.file, found.text.as_str()), ("backports.sources", expected));
    }

    #[test]
    fn a_key_in_full_stays_in_full() {
        let text = "Types: deb\nURIs: http://mirror.invalid/\nSuites: r\nComponents: main\n\
                    Signed-By:\n -----BEGIN\n .\n key: x\n";
        let found = backports(text, "r").unwrap();
        assert!(found.text.ends_with("Signed-By: \n -----BEGIN\n .\n key: x\n"), "{}", found.text);
    }

    #[test]
    fn a_line_keeps_its_address_and_options() {
        let text = "# deb http://mirror.invalid/off r main\n\
                    deb-src http://mirror.invalid/debian r main\n\
                    deb http://mirror.invalid/security r-security main\n\
                    deb [ arch=some signed-by=/key ] http://mirror.invalid/debian r main more\n";
        let expected =
            "deb [ arch=some signed-by=/key ] http://mirror.invalid/debian r-backports main\n";
        let found = backports(text, "r").unwrap();
        assert_eq!((found.file, found.text.as_str()), ("backports.list", expected));
        let plain = backports("deb http://mirror.invalid/debian r main\n", "r").unwrap();
        assert_eq!(plain.text, "deb http://mirror.invalid/debian r-backports main\n");
    }

    #[test]
    fn what_serves_another_release_or_is_off_is_no_source() {
        let line = "deb http://mirror.invalid/tools any stable\n";
        assert_eq!(backports(line, "r"), None);
        let off = "Types: deb\nURIs: x\nSuites: r\nComponents: main\nEnabled: no\n";
        assert_eq!(backports(off, "r"), None);
        assert_eq!(backports("", "r"), None);
    }

    #[test]
    fn the_release_is_read() {
        assert_eq!(release("ID=debian\nVERSION_CODENAME=some\n").as_deref(), Some("some"));
        assert_eq!(release("ID=other\nVERSION_CODENAME=\n"), None);
    }
}
