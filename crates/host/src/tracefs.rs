//! Finding tracefs, and what it takes to use it.
//!
//! Where it is not mounted, a recorder mounts it for itself: a mount that is attached nowhere, which only its file
//! descriptor reaches. Nobody else sees it, started commands neither (the descriptor closes when they are executed),
//! and it is gone with the process, however that ends. A mount namespace of the recorder's own would do the same, but
//! commands would have to leave it again, with the working and root directories that they had.

use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where tracefs usually is; the first one that is a tracefs is used. Below debugfs since 4.1, and the only place of
/// older kernels.
pub(crate) const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// What stands in the way of tracing, and the suggested fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What is the matter.
    pub what: String,
    /// A command, or a sentence if no command helps.
    pub fix: String,
    /// The kernel has tracefs, but it is mounted nowhere.
    pub unmounted: bool,
}

/// A tracefs that can be used, mounted as long as this lives.
#[derive(Debug)]
pub struct Tracefs {
    path: PathBuf,
    mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Where it is, for this process.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// It is mounted for this process alone.
    pub fn is_private(&self) -> bool {
        self.mount.is_some()
    }
}

/// tracefs, mounted for this process alone where it is not mounted.
pub fn open() -> Result<Tracefs, Obstacle> {
    let obstacle = match find() {
        Ok(path) => return Ok(Tracefs { path, mount: None }),
        Err(obstacle) if !obstacle.unmounted => return Err(obstacle),
        Err(obstacle) => obstacle,
    };
    match mount() {
        Ok(mount) => {
            let path = format!("/proc/self/fd/{}", mount.as_raw_fd()).into();
            Ok(Tracefs { path, mount: Some(mount) })
        }
        Err(e) => {
            let why = match e {
                Errno::PERM | Errno::ACCESS => "takes CAP_SYS_ADMIN".to_string(),
                Errno::NOSYS => "takes Linux 5.2".to_string(),
                other => format!("is refused ({other})"),
            };
            let what = format!("{}, and to mount it for this recording alone {why}", obstacle.what);
            // Root without the right is in a container: the mount is to be made outside of it.
            let is_root = rustix::process::geteuid().is_root();
            let fix = if is_root { obstacle.fix } else { RECORD_AS_ROOT.into() };
            Err(Obstacle { what, fix, unmounted: true })
        }
    }
}

/// A mount that is attached nowhere (Linux 5.2 and later).
fn mount() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes =
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// The directory of tracefs, if this process can make an instance there.
pub fn find() -> Result<PathBuf, Obstacle> {
    let user = rustix::process::geteuid().as_raw();
    find_in(&PLACES.map(Path::new), user)
}

fn find_in(places: &[&Path], user: u32) -> Result<PathBuf, Obstacle> {
    for place in places {
        match fs::metadata(place.join("available_events")) {
            Ok(_) if writable(&place.join("instances")) => return Ok(place.to_path_buf()),
            Ok(_) => return Err(denied(place, user)),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Err(denied(place, user)),
            Err(_) => {}
        }
    }
    let known = fs::read_to_string("/proc/filesystems").is_ok_and(|t| t.lines().any(|l| l.ends_with("\ttracefs")));
    Err(if known {
        let mounted = format!("sudo mount -t tracefs tracefs {}", PLACES[0]);
        let fix = if user == 0 { mounted } else { format!("{mounted}; then {RECORD_AS_ROOT}") };
        Obstacle { what: "tracefs is not mounted".into(), fix, unmounted: true }
    } else {
        Obstacle {
            what: "this kernel has no tracefs".into(),
            fix: "a kernel built with CONFIG_TRACING and CONFIG_EVENT_TRACING".into(),
            unmounted: false,
        }
    })
}

/// The least that lets a user record: the right lasts as long as the recording.
const RECORD_AS_ROOT: &str = "sudo mmtwin record [-- sudo -u USER COMMAND], for one recording";

/// Group rights do not help: what is in tracefs can be written by its owner only, whatever `gid` and `mode` say. An owner
/// has all of it, not only instances.
fn denied(place: &Path, user: u32) -> Obstacle {
    let place = place.display();
    let fix = match user {
        0 => format!("{place} is read-only, or tracing is not allowed in this container: record outside of it"),
        _ => format!(
            "{RECORD_AS_ROOT}; or, until the next boot, sudo mount -o remount,uid={user} {place}, which hands all of tracing \
             to every program of user {user}: the events of all processes and users, and probes that read the kernel's \
             memory (kprobe_events); back with uid=0"
        ),
    };
    Obstacle { what: format!("user {user} has no access to {place}"), fix, unmounted: false }
}

fn writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_can_be_used_is_found() {
        let root = tempfile::tempdir().unwrap();
        let (no, yes) = (root.path().join("a"), root.path().join("b"));
        fs::create_dir_all(yes.join("instances")).unwrap();
        fs::write(yes.join("available_events"), "").unwrap();
        assert_eq!(find_in(&[&no, &yes], 7), Ok(yes.clone()));
        fs::remove_dir(yes.join("instances")).unwrap();
        let obstacle = find_in(&[&no, &yes], 7).unwrap_err();
        let least = obstacle.fix.find("sudo mmtwin record").expect("the right for one recording");
        let remount = obstacle.fix.find("remount,uid=7").expect("the right until the next boot");
        assert!(least < remount, "less comes first: {obstacle:?}");
        for handed_over in ["all of tracing", "all processes and users", "kprobe_events", "back with uid=0"] {
            assert!(obstacle.fix[remount..].contains(handed_over), "{handed_over}: {obstacle:?}");
        }
        assert!(!obstacle.unmounted, "it is there");
        assert!(!find_in(&[&no, &yes], 0).unwrap_err().fix.contains("sudo"), "root has nobody to ask");
    }
}
