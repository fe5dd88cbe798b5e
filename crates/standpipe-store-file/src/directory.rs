//! The state directory: where it is, who may use it, and how its files are named.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use standpipe_store::{PoolName, StoreError, hash};

use crate::sys;

/// A state directory that may be used.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// It is shared by a group.
    shared: bool,
}

/// Whom a directory is for when it has to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// This user alone.
    User,
    /// Everybody of its group.
    Group,
}

impl Directory {
    /// The directory at `path`, made if it is not there.
    pub(crate) fn open(path: &Path, whom: For) -> Result<Self, StoreError> {
        if !path.exists() {
            make(path, whom).map_err(|error| cannot("make the state directory", path, error))?;
        }
        let meta = fs::metadata(path).map_err(|error| cannot("look at", path, error))?;
        if !meta.is_dir() {
            let shown = path.display();
            return Err(StoreError::unusable(format!(
                "{shown} is a file, not a directory; choose another directory for the ledger \
                 (STANDPIPE_HOME, or --store file:/path)"
            )));
        }
        let shared = meta.mode() & 0o020 != 0;
        refuse_strangers(path, &meta, shared)?;
        let network = sys::network_file_system(path);
        if let Some(kind) = network.map_err(|error| cannot("look at", path, error))? {
            return Err(StoreError::unusable(format!(
                "{} lies on {kind}, a network file system, where locks do not hold; point \
                 STANDPIPE_HOME to a local directory, or use Redis for several machines",
                path.display()
            )));
        }
        Ok(Self { path: path.to_owned(), shared })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The permissions its files have.
    pub(crate) const fn mode(&self) -> u32 {
        if self.shared { 0o660 } else { 0o600 }
    }

    /// A directory in it, made if it is not there.
    pub(crate) fn inner(&self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.path.join(name);
        if !path.is_dir() {
            let mode = if self.shared { 0o2770 } else { 0o700 };
            let made = match DirBuilder::new().mode(mode).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                // What is asked for is lessened by the process's mask; a group needs all of it.
                Ok(()) if self.shared => fs::set_permissions(&path, Permissions::from_mode(mode)),
                other => other,
            };
            made.map_err(|error| cannot("make", &path, error))?;
        }
        Ok(path)
    }

    /// Creates a file that is not there.
    pub(crate) fn create(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(self.mode()).open(path)?;
        if self.shared {
            file.set_permissions(Permissions::from_mode(self.mode()))?;
        }
        Ok(file)
    }
}

/// The name of a pool's file. Slashes become a character that no name has, so no name leads out of
/// the directory; a name too long for a file is cut and told apart by its hash.
pub(crate) fn file_name(pool: &PoolName) -> String {
    let plain = pool.as_str().replace('/', "+");
    if plain.len() <= 200 {
        return format!("{plain}.pool");
    }
    format!("{}+{:016x}.pool", &plain[..CUT], hash(0, plain.as_bytes()))
}

/// How much of a name that is too long is kept.
const CUT: usize = 180;

/// The pool whose file has that name, unless the name was cut.
pub(crate) fn pool_of(file: &str) -> Option<PoolName> {
    let plain = file.strip_suffix(".pool").filter(|plain| plain.len() != CUT + 17)?;
    plain.replace('+', "/").parse().ok()
}

/// An error of the file system, in words that help.
pub(crate) fn cannot(what: &str, path: &Path, error: io::Error) -> StoreError {
    let shown = path.display();
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => permission_remedy(path),
        io::ErrorKind::ReadOnlyFilesystem => {
            "the file system is read-only; point STANDPIPE_HOME elsewhere".to_owned()
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full; a pool needs 4 MB".to_owned()
        }
        io::ErrorKind::IsADirectory => "it is a directory; move it away".to_owned(),
        io::ErrorKind::NotADirectory => "part of the path is a file".to_owned(),
        _ => format!("{error}"),
    };
    StoreError::unusable(format!("cannot {what} {shown}: {remedy}")).caused_by(error)
}

fn permission_remedy(path: &Path) -> String {
    let existing = path.ancestors().find_map(|path| Some((path, fs::metadata(path).ok()?)));
    let Some((existing, meta)) = existing else { return "permission denied".to_owned() };
    format!(
        "permission denied; {} belongs to user {} and has mode {:o}. Use a directory of your own, \
         or share one by group: mode 2770, files 0660",
        existing.display(),
        meta.uid(),
        meta.mode() & 0o7777
    )
}

fn make(path: &Path, whom: For) -> io::Result<()> {
    let mode = if whom == For::Group { 0o2770 } else { 0o700 };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    if whom == For::Group {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    // Back-up programs know by it that nothing here is worth keeping.
    let mut tag = File::create(path.join("CACHEDIR.TAG"))?;
    tag.write_all(b"Signature: 8a477f597d28d172789f06886806bc55\n# The ledgers of Standpipe.\n")
}

/// Whoever can replace files in the directory can take quota; so it must be nobody else's.
fn refuse_strangers(path: &Path, meta: &fs::Metadata, shared: bool) -> Result<(), StoreError> {
    let (shown, mode) = (path.display(), meta.mode() & 0o7777);
    if mode & 0o002 != 0 {
        return Err(StoreError::unusable(format!(
            "everybody may write to {shown} (mode {mode:o}); chmod it to 700, or 2770 for a group"
        )));
    }
    let me = rustix::process::geteuid().as_raw();
    let owner = meta.uid();
    if !shared && owner != me && me != 0 {
        return Err(StoreError::unusable(format!(
            "{shown} belongs to user {owner} and you are {me}; use a directory of your own, or \
             share one by group (mode 2770)"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_directory_and_all_differ() {
        let name = |text: &str| file_name(&text.parse().unwrap());
        assert_eq!(name("anthropic/sonnet"), "anthropic+sonnet.pool");
        assert_eq!(name("../.."), "..+...pool");
        assert_ne!(name("a/b/c"), name("a/b.c"));
        let long = |last: char| format!("{}/{b}/{b}{last}", "a".repeat(60), b = "b".repeat(127));
        assert_ne!(name(&long('x')), name(&long('y')));
        assert!(name(&long('x')).len() <= 210);
        for pool in ["anthropic/sonnet", "a/b/c"].map(|pool| pool.parse().unwrap()) {
            assert_eq!(pool_of(&file_name(&pool)), Some(pool));
        }
        for stranger in ["junk.pool", "a+b.txt", &name(&long('x'))] {
            assert_eq!(pool_of(stranger), None);
        }
    }
}
