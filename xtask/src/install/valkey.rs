//! Valkey, which a Debian of 2023 has only among its backports.
//!
//! Those are looked at once, with lists in a directory of their own: the machine's sources stay as
//! they are, and nothing else comes from there.

use std::path::Path;

use crate::context::Context;
use crate::tools::VALKEY;

use super::{apt, scratch, sources};

/// Installs it from wherever this machine can have it.
pub(super) fn install(context: &Context) -> Result<(), String> {
    if !apt::is_root(context) {
        let command = format!("apt-get install --yes {VALKEY}");
        return Err(format!("install it as root, if need be from Debian's backports: {command}"));
    }
    apt::install(context, &[VALKEY]).or_else(|_| from_backports(context))
}

fn from_backports(context: &Context) -> Result<(), String> {
    let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let release = sources::release(&system).ok_or("this system has no name for its release")?;
    let all = sources::read(Path::new("/etc/apt"));
    let source = all.iter().find_map(|text| sources::backports(text, &release));
    let source = source.ok_or("no source of packages here serves this system's own release")?;
    let scratch = scratch(context, "backports")?;
    let list = scratch.0.join(source.file);
    let lists = scratch.0.join("lists");
    std::fs::write(&list, source.text)
        .and_then(|()| std::fs::create_dir_all(lists.join("partial")))
        .map_err(|error| format!("cannot write {}: {error}", list.display()))?;
    let settings = [
        format!("Dir::Etc::sourcelist={}", list.display()),
        "Dir::Etc::sourceparts=-".into(),
        format!("Dir::State::lists={}", lists.display()),
        // The machine's own index of packages is not replaced by this small one.
        "Dir::Cache::pkgcache=".into(),
        "Dir::Cache::srcpkgcache=".into(),
        // The user it downloads as may not see our directory.
        "APT::Sandbox::User=root".into(),
    ];
    let apart = |arguments: &[&str]| {
        let mut command = apt::apt_get(context, arguments);
        command.args(settings.iter().flat_map(|setting| ["-o", setting])).current_dir(&scratch.0);
        command
    };
    apt::run(context, &mut apart(&["update"]))?;
    apt::run(context, &mut apart(&["download", VALKEY]))?;
    let files = std::fs::read_dir(&scratch.0).into_iter().flatten().flatten();
    let mut packages = files.map(|entry| entry.path());
    let package = packages
        .find(|path| path.extension().is_some_and(|end| end == "deb"))
        .ok_or_else(|| format!("the backports of {release} have no {VALKEY}"))?;
    // What it depends on comes from the machine's own sources.
    apt::install(context, &[&package.display().to_string()])
}
