//! Faults of the store's directories.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::{run, words};
use crate::record::now;
use crate::scene::Scene;

/// The store's directory is deleted with everything in it, and made again.
pub(super) fn delete(scene: &mut Scene) -> Result<(), String> {
    scene.permitted.wiped.push(now());
    scene.permitted.slow_reclaim = true;
    let store = scene.store();
    // Living processes make files meanwhile.
    for _ in 0..100 {
        let entries = fs::read_dir(&store).into_iter().flatten().flatten();
        let deleted = entries.map(|entry| {
            let path = entry.path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
        });
        let deleted = deleted.fold(Ok(()), Result::and);
        if deleted.is_ok() && (!scene.mounts.is_empty() || fs::remove_dir(&store).is_ok()) {
            break;
        }
    }
    fs::create_dir_all(&store).map_err(words)?;
    fs::set_permissions(&store, fs::Permissions::from_mode(0o2770)).map_err(words)?;
    scene.permitted.wiped.push(now());
    Ok(())
}

/// No process can make or renew the file of its session. Root may write everywhere, so the
/// directory is mounted on itself, read-only. It becomes read-only elsewhere first: that is not
/// possible once a process has opened a file there.
pub(super) fn lock_sessions(scene: &mut Scene) -> Result<(), String> {
    let sessions = scene.store().join("sessions");
    let aside = scene.base.join("control/sessions");
    for path in [&sessions, &aside] {
        fs::create_dir_all(path).map_err(words)?;
    }
    run(Command::new("mount").arg("--bind").args([&sessions, &aside]))?;
    scene.mounts.push(aside.clone());
    run(Command::new("mount").args(["-o", "remount,bind,ro"]).arg(&aside))?;
    run(Command::new("mount").arg("--bind").args([&aside, &sessions]))?;
    scene.mounts.push(sessions);
    Ok(())
}

/// They are as before.
pub(super) fn unlock_sessions(scene: &mut Scene) {
    for mount in [scene.store().join("sessions"), scene.base.join("control/sessions")] {
        let _ = Command::new("umount").arg("-l").arg(&mount).stderr(Stdio::null()).status();
        scene.mounts.retain(|kept| *kept != mount);
    }
}
