//! Which of our crates may depend on which: arrows only point down.
//!
//! What only tests need, `[dev-dependencies]`, is free: it is in nobody's build.

use crate::tree::{TextFile, Tree};

/// A package and what it may depend on. A new crate is entered here when it comes into being.
const ALLOWED: &[(&str, &[&str])] = &[
    ("standpipe-core", &[]),
    ("standpipe-dialect", &[]),
    ("standpipe-store", &["standpipe-core"]),
    ("standpipe-store-file", &["standpipe-core", "standpipe-store", "standpipe-sys"]),
    ("standpipe-store-redis", &["standpipe-core", "standpipe-store"]),
    (
        "standpipe-config",
        &["standpipe-core", "standpipe-dialect", "standpipe-store", "standpipe-store-redis"],
    ),
    ("standpipe-observe", &["standpipe-config", "standpipe-core", "standpipe-store"]),
    (
        "standpipe",
        &[
            "standpipe-config",
            "standpipe-core",
            "standpipe-dialect",
            "standpipe-observe",
            "standpipe-store",
            "standpipe-store-file",
            "standpipe-store-redis",
        ],
    ),
    ("standpipe-server", &["standpipe"]),
    ("standpipe-cli", &["standpipe", "standpipe-server", "standpipe-sys"]),
    ("standpipe-python", &["standpipe", "standpipe-cli", "standpipe-core", "standpipe-server"]),
    ("standpipe-sys", &[]),
    ("standpipe-forks", &["standpipe", "standpipe-store-file"]),
    ("standpipe-servers", &[]),
    (
        "standpipe-pairs",
        &[
            "standpipe",
            "standpipe-core",
            "standpipe-forks",
            "standpipe-server",
            "standpipe-servers",
            "standpipe-sim",
            "standpipe-store",
            "standpipe-store-file",
        ],
    ),
    ("standpipe-sim", &["standpipe-core", "standpipe-dialect", "standpipe-store"]),
    (
        "standpipe-bench",
        &[
            "standpipe",
            "standpipe-core",
            "standpipe-servers",
            "standpipe-store",
            "standpipe-store-file",
            "standpipe-store-redis",
        ],
    ),
    ("standpipe-fuzz", &["standpipe-core", "standpipe-dialect", "standpipe-store"]),
    ("xtask", &[]),
];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let manifests = tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    manifests.flat_map(wrong).collect()
}

fn wrong(manifest: &TextFile) -> Vec<String> {
    let path = &manifest.path;
    let Some(name) = package(&manifest.text) else { return Vec::new() };
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{path}: enter `{name}` and what it may use in tidy's `edges.rs`")];
    };
    let used = dependencies(&manifest.text).into_iter().filter(|used| ours(used));
    used.filter(|used| !allowed.contains(&used.as_str()))
        .map(|used| format!("{path}: `{name}` may not depend on `{used}`"))
        .collect()
}

fn ours(name: &str) -> bool {
    name == "xtask" || name == "standpipe" || name.starts_with("standpipe-")
}

/// The name in `[package]`; none for a manifest that is only a workspace.
fn package(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("[package]")?;
    let name = rest.lines().find_map(|line| line.strip_prefix("name"))?;
    name.split('"').nth(1).map(str::to_owned)
}

/// What the package is built with: names, and the real names of renamed ones.
fn dependencies(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            let (kind, name) = match section.rsplit_once("dependencies.") {
                Some((kind, name)) => (kind, Some(name)),
                None => (section.strip_suffix("dependencies").unwrap_or("workspace."), None),
            };
            inside = !kind.ends_with("dev-") && !kind.ends_with("workspace.");
            found.extend(name.filter(|_| inside).map(str::to_owned));
        } else if inside && !line.starts_with('#') {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            found.extend(Some(name.trim_matches('"').to_owned()).filter(|name| !name.is_empty()));
            let real = line.split_once("package").and_then(|(_, rest)| rest.split('"').nth(1));
            found.extend(real.map(str::to_owned));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn check_text(text: &str) -> Vec<String> {
        check(&tree(&[("crates/x/Cargo.toml", text)]))
    }

    #[test]
    fn an_upward_edge_is_found_however_it_is_written() {
        for edge in [
            "[dependencies]\nstandpipe-store.workspace = true\n",
            "[dependencies]\nstandpipe-store = { path = \"../s\" }\n",
            "[dependencies]\nstore = { package = \"standpipe-store\", path = \"../s\" }\n",
            "[dependencies.standpipe-store]\npath = \"../s\"\n",
            "[build-dependencies]\nstandpipe-store.workspace = true\n",
            "[target.'cfg(unix)'.dependencies]\nstandpipe-store.workspace = true\n",
        ] {
            let found = check_text(&format!("[package]\nname = \"standpipe-core\"\n\n{edge}"));
            assert_eq!(found.len(), 1, "{edge}");
            assert!(found[0].contains("`standpipe-core` may not depend on `standpipe-store`"));
        }
    }

    #[test]
    fn an_unknown_package_is_found() {
        assert_eq!(check_text("[package]\nname = \"standpipe-new\"\n").len(), 1);
    }

    #[test]
    fn downward_edges_tests_and_the_workspace_are_free() {
        let store = "[package]\nname = \"standpipe-store\"\n\n[dependencies]\n# why\n\
                     standpipe-core.workspace = true\ncrc32fast.workspace = true\n\n\
                     [dev-dependencies]\nxtask = \"1\"\n\n[lints]\nworkspace = true\n";
        assert_eq!(check_text(store), [""; 0]);
        let workspace =
            "[workspace]\n\n[workspace.dependencies]\nstandpipe-core = { path = \"c\" }\n";
        assert_eq!(check_text(workspace), [""; 0]);
    }
}
