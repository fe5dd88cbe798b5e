//! File systems: which one a directory is on, whether it is remote, how much space is left.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

/// Returns the name of the network file system a directory is on, or `None` if it is local.
pub(crate) fn network_file_system(directory: &Path) -> io::Result<Option<&'static str>> {
    #[cfg(target_os = "linux")]
    {
        let kind = rustix::fs::statfs(directory)?.f_type;
        let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Ok(network_kind(kind.cast_unsigned() & 0xffff_ffff, directory, &mounts))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = directory;
        Ok(None)
    }
}

/// Returns the type of the file system a directory is on, as `mountinfo` names it.
pub(crate) fn file_system(directory: &Path) -> Option<String> {
    mount_type(directory, &fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// Returns how many bytes this user may still write to the file system.
pub(crate) fn free_bytes(directory: &Path) -> io::Result<u64> {
    let room = rustix::fs::statvfs(directory)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// Classifies a file system by the kernel's magic number. All FUSE file systems share one number,
/// so those are classified by their mount type.
fn network_kind(magic: u64, directory: &Path, mounts: &dyn Fn() -> String) -> Option<&'static str> {
    const KINDS: &[(u64, &str)] = &[
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB"),
        (0x5346_414f, "AFS"),
        (0x7375_7245, "Coda"),
        (0x0102_1997, "9P"),
        (0x00c3_6400, "Ceph"),
        (0x0bd0_0bd0, "Lustre"),
        (0x4750_4653, "GPFS"),
        (0x7461_636f, "OCFS2"),
        (0x0116_1970, "GFS2"),
        (0x1983_0326, "BeeGFS"),
        (0x786f_4256, "a shared folder of VirtualBox"),
    ];
    const FUSE: u64 = 0x6573_5546;
    const REMOTE: &[(&str, &str)] = &[
        ("fuse.sshfs", "SSHFS"),
        ("fuse.glusterfs", "GlusterFS"),
        ("fuse.ceph", "Ceph"),
        ("fuse.s3fs", "S3"),
        ("fuse.goofys", "S3"),
        ("fuse.mount-s3", "S3"),
        ("fuse.gcsfuse", "Google Cloud Storage"),
        ("fuse.rclone", "rclone"),
        ("fuse.davfs", "WebDAV"),
        ("fuse.curlftpfs", "FTP"),
        ("fuse.juicefs", "JuiceFS"),
    ];
    if magic == FUSE {
        let kind = mount_type(directory, &mounts())?;
        return REMOTE.iter().find(|(name, _)| *name == kind).map(|(_, shown)| *shown);
    }
    KINDS.iter().find(|(number, _)| *number == magic).map(|(_, name)| *name)
}

/// Returns the type of the mount a directory is on: that of the longest matching mount point.
fn mount_type(directory: &Path, mounts: &str) -> Option<String> {
    let mount = |line: &str| -> Option<(usize, String)> {
        let point = line.split(' ').nth(4)?.replace("\\040", " ");
        let kind = line.split_once(" - ")?.1.split(' ').next()?;
        let leads = directory.starts_with(Path::new(OsStr::new(&point)));
        leads.then(|| (point.len(), kind.to_owned()))
    };
    mounts.lines().filter_map(mount).max().map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b51_network_file_systems_are_recognised() {
        let here = Path::new("/mnt/far/standpipe");
        let none = || String::new();
        assert_eq!(network_kind(0x6969, here, &none), Some("NFS"));
        assert_eq!(network_kind(0xff53_4d42, here, &none), Some("CIFS"));
        // ext4, tmpfs, overlay, btrfs, xfs
        for local in [0xef53, 0x0102_1994, 0x794c_7630, 0x9123_683e, 0x5846_5342] {
            assert_eq!(network_kind(local, here, &none), None);
        }
        let mounts = || {
            "22 1 0:21 / / rw - ext4 /dev/vda rw\n\
             36 22 0:40 / /mnt rw - fuse.local local rw\n\
             37 36 0:41 / /mnt/far rw - fuse.sshfs me@host: rw\n"
                .to_owned()
        };
        assert_eq!(network_kind(0x6573_5546, here, &mounts), Some("SSHFS"));
        assert_eq!(network_kind(0x6573_5546, Path::new("/mnt/near"), &mounts), None);
    }
}
