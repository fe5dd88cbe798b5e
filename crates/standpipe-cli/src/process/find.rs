//! Whether a command can be run at all, asked before anything is reserved for it.

use std::ffi::OsStr;
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Looks the command up as a shell would.
///
/// # Errors
/// `NotFound`, or `PermissionDenied` when it is there and cannot be executed.
pub(crate) fn check(command: &OsStr, path: Option<&OsStr>) -> Result<(), Error> {
    if command.as_bytes().contains(&b'/') {
        return check_file(Path::new(command));
    }
    let mut worst = Error::from(ErrorKind::NotFound);
    if command.is_empty() {
        return Err(worst);
    }
    for directory in std::env::split_paths(path.unwrap_or(OsStr::new("/usr/bin:/bin"))) {
        let directory =
            if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
        let file = directory.join(command);
        match check_file(&file) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied && !file.is_dir() => {
                worst = error;
            }
            Err(_) => {}
        }
    }
    Err(worst)
}

fn check_file(file: &Path) -> Result<(), Error> {
    let about = std::fs::metadata(file)?;
    let executable = about.is_file() && about.permissions().mode() & 0o111 != 0;
    if executable { Ok(()) } else { Err(Error::from(ErrorKind::PermissionDenied)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(command: &str) -> Option<ErrorKind> {
        check(OsStr::new(command), Some(OsStr::new("/usr/bin:/bin"))).err().map(|e| e.kind())
    }

    #[test]
    fn commands_are_found_as_a_shell_finds_them() {
        assert_eq!(kind("sh"), None);
        assert_eq!(kind("/bin/sh"), None);
        assert_eq!(kind("no-such-command-here"), Some(ErrorKind::NotFound));
        assert_eq!(kind("/bin/no-such-command-here"), Some(ErrorKind::NotFound));
        assert_eq!(kind("/etc/passwd"), Some(ErrorKind::PermissionDenied));
        assert_eq!(kind(""), Some(ErrorKind::NotFound));
        assert_eq!(kind("/etc"), Some(ErrorKind::PermissionDenied));
    }
}
