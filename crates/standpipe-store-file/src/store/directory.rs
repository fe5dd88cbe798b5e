//! The state directory: who may use it, which permissions its files get, how they are named.
//!
//! Whoever can replace files in it can take quota from others, so a directory that strangers can
//! write to is refused; so is one on a network file system, where locks do not hold.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use standpipe_store::{PoolName, StoreError, hash, plain_io};

use crate::sys;

/// A state directory that passed all checks.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// A group shares it.
    shared: bool,
    /// The user and the group of new files when root uses the directory of another user: that user
    /// could not open files of root.
    owner: Option<(u32, u32)>,
}

/// Who may use a directory that has to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// This user alone.
    User,
    /// All members of its group.
    Group,
}

impl Directory {
    /// Opens the directory at `path` and creates it if it is missing.
    pub(crate) fn open(path: &Path, audience: Audience) -> Result<Self, StoreError> {
        if !path.exists() {
            create_directory(path, audience)
                .map_err(|error| fs_error("create the state directory", path, error))?;
        }
        let meta = fs::metadata(path).map_err(|error| fs_error("read", path, error))?;
        if !meta.is_dir() {
            let shown = path.display();
            return Err(StoreError::unusable(format!(
                "{shown} is a file, not a directory; choose another directory for the ledger \
                 (STANDPIPE_HOME, or --store file:/path)"
            )));
        }
        let shared = meta.mode() & 0o020 != 0;
        check_access(path, &meta, shared)?;
        let network = sys::mounts::network_file_system(path);
        if let Some(kind) = network.map_err(|error| fs_error("read", path, error))? {
            return Err(StoreError::unusable(format!(
                "{} is on {kind}, a network file system, where locks do not hold; point \
                 STANDPIPE_HOME to a local directory, or use Redis for several machines",
                path.display()
            )));
        }
        let foreign = rustix::process::geteuid().is_root() && meta.uid() != 0;
        let owner = foreign.then(|| (meta.uid(), meta.gid()));
        Ok(Self { path: path.to_owned(), shared, owner })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the permissions of its files.
    pub(crate) const fn mode(&self) -> u32 {
        if self.shared { 0o660 } else { 0o600 }
    }

    /// Returns the path of a directory in it, and creates that directory if it is missing.
    pub(crate) fn subdirectory(&self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.path.join(name);
        if !path.is_dir() {
            let mode = if self.shared { 0o2770 } else { 0o700 };
            let made = match DirBuilder::new().mode(mode).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                Ok(()) => self.give_to_owner_with_mode(&path, mode),
                other => other,
            };
            made.map_err(|error| fs_error("create", &path, error))?;
        }
        Ok(path)
    }

    /// Creates a file; fails if it exists.
    pub(crate) fn create(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(self.mode()).open(path)?;
        if self.shared {
            file.set_permissions(Permissions::from_mode(self.mode()))?;
        }
        self.give_to_owner(&file)?;
        Ok(file)
    }

    /// Creates a named pipe and opens it.
    pub(crate) fn create_fifo(&self, path: &Path) -> io::Result<File> {
        let pipe = sys::fifo::create(path, self.mode())?;
        self.give_to_owner(&pipe)?;
        Ok(pipe)
    }

    /// Changes the owner of a new file to the directory's, if root creates it.
    fn give_to_owner(&self, file: &File) -> io::Result<()> {
        let Some((user, group)) = self.owner else { return Ok(()) };
        std::os::unix::fs::fchown(file, Some(user), Some(group))
    }

    fn give_to_owner_with_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        let folder = File::open(path)?;
        self.give_to_owner(&folder)?;
        // The umask removed bits from the mode at creation; a group needs all of them.
        if self.shared { folder.set_permissions(Permissions::from_mode(mode)) } else { Ok(()) }
    }
}

/// Returns the name of a pool's file.
///
/// Slashes become a character that no pool name has, so no name leads out of the directory. A name
/// too long for a file is cut and made unique by its hash.
pub(crate) fn file_name(pool: &PoolName) -> String {
    let plain = pool.as_str().replace('/', "+");
    if plain.len() <= 200 {
        return format!("{plain}.pool");
    }
    format!("{}+{:016x}.pool", &plain[..KEPT_OF_LONG_NAME], hash(0, plain.as_bytes()))
}

/// How many bytes of a too long name are kept.
const KEPT_OF_LONG_NAME: usize = 180;

/// Returns the pool whose file has that name; `None` if the name was cut or is not a pool's.
pub(crate) fn pool_of_file(file: &str) -> Option<PoolName> {
    let plain = file.strip_suffix(".pool").filter(|plain| plain.len() != KEPT_OF_LONG_NAME + 17)?;
    plain.replace('+', "/").parse().ok()
}

/// Turns an error of the file system into one that says what to do about it.
pub(crate) fn fs_error(what: &str, path: &Path, error: io::Error) -> StoreError {
    let shown = path.display();
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => permission_remedy(path),
        io::ErrorKind::ReadOnlyFilesystem => {
            "the file system is read-only; point STANDPIPE_HOME elsewhere".to_owned()
        }
        _ if is_full(&error) && path.extension().is_some_and(|end| end == "pool") => {
            "the disk is full; free at least 6 MB for each new pool".to_owned()
        }
        _ if is_full(&error) => "the disk is full; free some room on it".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory; move it away".to_owned(),
        // A directory that exists was opened, not created.
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            format!("a part of the path is a file; {ELSEWHERE}")
        }
        io::ErrorKind::NotFound if path.parent().is_some_and(Path::exists) => {
            format!("its file system takes no new directories; {ELSEWHERE}")
        }
        _ => format!("{}; {ELSEWHERE}", plain_io(&error)),
    };
    StoreError::unusable(format!("cannot {what} {shown}: {remedy}")).caused_by(error)
}

/// Whether the disk, or the user's part of it, is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

const ELSEWHERE: &str =
    "choose another directory for the ledger (STANDPIPE_HOME, or --store file:/path)";

fn permission_remedy(path: &Path) -> String {
    let existing = path.ancestors().find_map(|path| Some((path, fs::metadata(path).ok()?)));
    let Some((existing, meta)) = existing else { return "permission denied".to_owned() };
    let needed = if meta.is_dir() { 0o700 } else { 0o600 };
    if meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & needed != needed {
        let mode = meta.mode() & 0o7777;
        return format!(
            "permission denied (mode {mode:o}); chmod {needed:o} {}",
            existing.display()
        );
    }
    format!(
        "permission denied; {} belongs to user {} and has mode {:o}. Use a directory of your own, \
         or share one by group: mode 2770, files 0660",
        existing.display(),
        meta.uid(),
        meta.mode() & 0o7777
    )
}

fn create_directory(path: &Path, audience: Audience) -> io::Result<()> {
    let mode = if audience == Audience::Group { 0o2770 } else { 0o700 };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    if audience == Audience::Group {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    // Backup programs skip a directory with this tag.
    let mut tag = File::create(path.join("CACHEDIR.TAG"))?;
    tag.write_all(b"Signature: 8a477f597d28d172789f06886806bc55\n# The ledgers of Standpipe.\n")
}

/// Rejects a directory of another user, or one that every user can write to.
fn check_access(path: &Path, meta: &fs::Metadata, shared: bool) -> Result<(), StoreError> {
    let (shown, mode) = (path.display(), meta.mode() & 0o7777);
    let user = rustix::process::geteuid().as_raw();
    let owner = meta.uid();
    if mode & 0o002 != 0 {
        // Others need a directory such as /tmp as it is.
        let remedy = match mode & 0o1000 == 0 && owner == user && has_only_files_of(user, path) {
            true => format!("run chmod 700 {shown}, or chmod 2770 {shown} for a group"),
            false => {
                let own = path.join("standpipe");
                let own = own.display();
                format!(
                    "use a directory of your own in it: STANDPIPE_HOME={own} (or --store \
                     file:{own})"
                )
            }
        };
        return Err(StoreError::unusable(format!(
            "every user can write to {shown} (mode {mode:o}); {remedy}"
        )));
    }
    if !shared && owner != user && user != 0 {
        return Err(StoreError::unusable(format!(
            "{shown} belongs to user {owner} and you are {user}; use a directory of your own, or \
             share one by group (mode 2770)"
        )));
    }
    Ok(())
}

/// Whether everything in a directory belongs to one user. What cannot be read may be anybody's.
fn has_only_files_of(user: u32, path: &Path) -> bool {
    let is_own = |entry: io::Result<fs::DirEntry>| {
        entry.and_then(|entry| entry.metadata()).is_ok_and(|meta| meta.uid() == user)
    };
    fs::read_dir(path).is_ok_and(|mut entries| entries.all(is_own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_ones_own_that_denies_access_needs_its_mode() {
        let path = std::env::temp_dir().join(format!("standpipe-mode-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let mut remedies = Vec::new();
        for mode in [0o000, 0o600] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            remedies.push(permission_remedy(&path));
        }
        fs::remove_file(&path).unwrap();
        let own = format!("permission denied (mode 0); chmod 600 {}", path.display());
        assert_eq!(remedies[0], own);
        assert!(remedies[1].contains("Use a directory of your own"), "{remedies:?}");
    }

    #[test]
    fn no_name_leads_out_of_the_directory_and_all_differ() {
        let name = |text: &str| file_name(&text.parse().unwrap());
        assert_eq!(name("anthropic/sonnet"), "anthropic+sonnet.pool");
        assert_eq!(name("..a/.b"), "..a+.b.pool");
        assert_ne!(name("a/b/c"), name("a/b.c"));
        let long = |last: char| format!("{}/{b}/{b}{last}", "a".repeat(60), b = "b".repeat(127));
        assert_ne!(name(&long('x')), name(&long('y')));
        assert!(name(&long('x')).len() <= 210);
        for pool in ["anthropic/sonnet", "a/b/c"].map(|pool| pool.parse().unwrap()) {
            assert_eq!(pool_of_file(&file_name(&pool)), Some(pool));
        }
        for stranger in ["junk.pool", "a+b.txt", &name(&long('x'))] {
            assert_eq!(pool_of_file(stranger), None);
        }
    }
}
