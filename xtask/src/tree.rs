//! The project's files as text: everything git tracks or would track.

use std::path::Path;

use crate::context::Context;
use crate::process::BUILD;

/// The project's text files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// In the order of their paths.
    pub(crate) files: Vec<TextFile>,
}

/// A text file.
#[derive(Clone, Debug)]
pub(crate) struct TextFile {
    /// From the project's root, with `/`.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

impl Tree {
    /// Reads what is there now. Files that are not text are left out.
    pub(crate) fn read(context: &Context) -> Result<Self, String> {
        let mut files = Vec::new();
        for path in paths(context)? {
            if let Ok(text) = std::fs::read_to_string(context.root.join(&path)) {
                files.push(TextFile { path, text });
            }
        }
        Ok(Self { files })
    }

    /// The file of that path.
    pub(crate) fn file(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.is("rs"))
    }

    /// The Rust files that are part of a crate rather than of its tests, benches or examples.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &TextFile> {
        self.rust().filter(|file| file.crate_directory().is_some())
    }
}

impl TextFile {
    /// Whether it has that extension.
    pub(crate) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// Whether the caps on functions and files hold for it.
    pub(crate) fn is_capped(&self) -> bool {
        ["bindings/", "crates/", "xtask/"].iter().any(|part| self.path.starts_with(part))
    }

    /// Whether all of it is tests, moved out of the file they test.
    pub(crate) fn is_tests(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// The directory of the crate whose `src` this is in: `crates/NAME`, `xtask` and so on.
    pub(crate) fn crate_directory(&self) -> Option<&str> {
        let (directory, _) = self.path.split_once("/src/")?;
        let depth = directory.split('/').count();
        let known = match directory.split('/').next()? {
            "bindings" | "crates" => depth == 2,
            "xtask" | "bench" | "fuzz" => depth == 1,
            _ => false,
        };
        known.then_some(directory)
    }
}

/// The paths of all files that git tracks or would track, in order.
pub(crate) fn paths(context: &Context) -> Result<Vec<String>, String> {
    let mut git = context.user_program("git");
    git.args(["-c", "core.quotePath=off", "ls-files", "-co", "--exclude-standard"]);
    let listed = context.run_apart(&mut git, BUILD)?;
    if !listed.ok {
        return Err(format!("`git ls-files` failed; is this a checkout?\n{}", listed.output));
    }
    let mut paths: Vec<String> = listed.data.lines().map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    // A file that is tracked and has just been removed is still listed.
    paths.retain(|path| context.root.join(path).is_file());
    Ok(paths)
}

#[cfg(test)]
pub(crate) fn tree(files: &[(&str, &str)]) -> Tree {
    let file =
        |(path, text): &(&str, &str)| TextFile { path: (*path).into(), text: (*text).into() };
    Tree { files: files.iter().map(file).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_what_lies_in_the_src_of_a_crate() {
        let tree = tree(&[
            ("crates/a/src/lib.rs", ""),
            ("crates/a/tests/src/it.rs", ""),
            ("crates/a/tests/it.rs", ""),
            ("docs/src/page.rs", ""),
            ("xtask/src/main.rs", ""),
        ]);
        let found: Vec<_> = tree.sources().filter_map(TextFile::crate_directory).collect();
        assert_eq!(found, ["crates/a", "xtask"]);
    }
}
