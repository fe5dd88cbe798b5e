//! A child process that the kernel kills when its parent ends.
//!
//! Only a process itself can ask for this (`PR_SET_PDEATHSIG`), after the fork that makes it. The
//! request survives the `exec` that follows, so the program that is started does not take part.

use std::process::Command;

/// Makes the kernel send SIGKILL to the process of `command` when its parent ends, on Linux.
/// Elsewhere this does nothing.
///
/// The parent is the *thread* that calls `spawn`, so spawn from a thread that lives as long as the
/// child should. The kernel drops the request if the program is setuid, setgid or has file
/// capabilities; the program's own children are not covered.
pub fn die_with_parent(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt;
        let parent = std::process::id();
        // SAFETY: the closure runs between fork and exec. It makes two async-signal-safe system
        // calls and allocates nothing: an error of the system is a plain number.
        unsafe {
            command.pre_exec(move || request_death_signal(parent));
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

#[cfg(target_os = "linux")]
fn request_death_signal(parent: u32) -> std::io::Result<()> {
    // SAFETY: `prctl` with these arguments only sets an attribute of the calling process, and
    // `getppid` has no arguments and cannot fail.
    let (requested, current) =
        unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
    if requested != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // A parent that ended before the request sends no signal, so the command must not start.
    if u32::try_from(current) != Ok(parent) {
        return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::tests::ONE_AT_A_TIME;
    use std::os::unix::process::ExitStatusExt;
    use std::sync::PoisonError;

    #[test]
    fn the_kernel_kills_a_child_whose_starter_ended() -> std::io::Result<()> {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let starter = std::thread::spawn(|| {
            // Without the request it ends by itself, with code 0, and the test fails.
            let mut command = Command::new("sleep");
            command.arg("20");
            die_with_parent(&mut command);
            command.spawn()
        });
        let child = starter.join().unwrap_or_else(|_| Err(std::io::Error::other("it panicked")));
        assert_eq!(child?.wait()?.signal(), Some(libc::SIGKILL));
        Ok(())
    }

    #[test]
    fn a_program_that_does_not_exist_is_reported_to_the_parent() {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut command = Command::new("no-such-program-here");
        die_with_parent(&mut command);
        let error = command.spawn().map(drop).map_err(|error| error.kind());
        assert_eq!(error, Err(std::io::ErrorKind::NotFound));
    }
}
