//! Lookup of a command in `$PATH`, before anything is reserved for it.
//!
//! Not the `which` crate: it does not distinguish a command that does not exist (exit code 127)
//! from one that may not be executed (126).

use std::ffi::OsStr;
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Finds the file of a command as a shell does.
///
/// # Errors
/// `NotFound`, or `PermissionDenied` when it is there and cannot be executed.
pub(crate) fn find(command: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Error> {
    if command.as_bytes().contains(&b'/') {
        return check_file(Path::new(command)).map(|()| PathBuf::from(command));
    }
    let mut failure = Error::from(ErrorKind::NotFound);
    if command.is_empty() {
        return Err(failure);
    }
    for directory in std::env::split_paths(path.unwrap_or(OsStr::new("/usr/bin:/bin"))) {
        let directory =
            if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
        let file = directory.join(command);
        match check_file(&file) {
            Ok(()) => return Ok(file),
            Err(error) if error.kind() == ErrorKind::PermissionDenied && !file.is_dir() => {
                failure = error;
            }
            Err(_) => {}
        }
    }
    Err(failure)
}

fn check_file(file: &Path) -> Result<(), Error> {
    let metadata = std::fs::metadata(file)?;
    let executable = metadata.is_file() && access(file, Access::EXEC_OK).is_ok();
    if executable { Ok(()) } else { Err(Error::from(ErrorKind::PermissionDenied)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(command: &str) -> Option<ErrorKind> {
        find(OsStr::new(command), Some(OsStr::new("/usr/bin:/bin"))).err().map(|e| e.kind())
    }

    #[test]
    fn commands_are_found_as_a_shell_finds_them() {
        let sh = find(OsStr::new("sh"), Some(OsStr::new("/nowhere::/bin")));
        assert_eq!(sh.unwrap(), Path::new("/bin/sh"));
        assert_eq!(kind("sh"), None);
        assert_eq!(kind("/bin/sh"), None);
        assert_eq!(kind("no-such-command-here"), Some(ErrorKind::NotFound));
        assert_eq!(kind("/bin/no-such-command-here"), Some(ErrorKind::NotFound));
        assert_eq!(kind("/etc/passwd"), Some(ErrorKind::PermissionDenied));
        assert_eq!(kind(""), Some(ErrorKind::NotFound));
        assert_eq!(kind("/etc"), Some(ErrorKind::PermissionDenied));
    }
}
