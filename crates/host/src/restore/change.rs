//! One change of the machine, with what is needed to undo it.

use crate::tracefs;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Change {
    /// A sysctl, or the file that takes a CPU off and on.
    Value {
        /// The file.
        file: PathBuf,
        /// Its previous content.
        before: String,
        /// Values that are written.
        set: Vec<u64>,
    },
    /// Two sysctls of which one counts: writing it sets the other to 0 (`vm.dirty_bytes` and `vm.dirty_ratio`).
    Pair {
        /// The files.
        files: [PathBuf; 2],
        /// Their previous contents.
        before: [u64; 2],
        /// Values that are written to them.
        set: [Vec<u64>; 2],
    },
    /// A cgroup that is made.
    Cgroup {
        /// Its directory.
        directory: PathBuf,
        /// Inode number of the directory, once it is made: another directory of that name belongs to another program.
        inode: Option<u64>,
    },
    /// The memory controller is given to the children of a cgroup of version 2.
    Controller {
        /// The file `cgroup.subtree_control`.
        file: PathBuf,
    },
    /// A process of the workload.
    Worker {
        /// Process id.
        pid: u32,
        /// When it was started, in clock ticks since boot: another process of that number belongs to another program.
        start: u64,
    },
    /// The machine's own function tracer is used.
    Tracer {
        /// Where tracefs is.
        tracefs: PathBuf,
        /// Buffer per CPU in KiB.
        buffer: String,
        /// Tracing was on.
        on: String,
    },
    /// A kernel module is loaded and unloaded.
    Module {
        /// Its name.
        name: String,
    },
    /// A file or folder that its maker removes, unless it is killed.
    Temporary {
        /// Where it is.
        path: PathBuf,
    },
}

/// How files and folders of [`Change::Temporary`] are called.
const TEMPORARY: [&str; 2] = [".mmtwin-", "mmtwin-run-"];

impl Change {
    /// True if it is one that a run makes. A journal with others is damaged, or not ours.
    pub fn is_sound(&self) -> bool {
        let within = |path: &Path, folder: &str| {
            path.starts_with(folder) && path.components().all(|part| !matches!(part, Component::ParentDir))
        };
        let value = |file: &Path| within(file, "/proc/sys") || within(file, "/sys/devices/system/cpu");
        match self {
            Change::Value { file, .. } => value(file),
            Change::Pair { files, .. } => files.iter().all(|file| value(file)),
            Change::Cgroup { directory, .. } => is_cgroup(directory),
            Change::Controller { file } => file.ends_with("cgroup.subtree_control") && is_cgroup(file),
            Change::Worker { pid, .. } => *pid > 1,
            Change::Tracer { tracefs, .. } => tracefs::PLACES.iter().any(|place| tracefs == Path::new(place)),
            Change::Module { name } => name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
            Change::Temporary { path } => {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                path.is_absolute() && TEMPORARY.iter().any(|ours| name.starts_with(ours))
            }
        }
    }

    /// True if a boot undoes it.
    pub fn ends_with_boot(&self) -> bool {
        !matches!(self, Change::Temporary { .. })
    }
}

/// True if a path is below a mount of cgroups, or gone. Those are the kernel's `CGROUP_SUPER_MAGIC` and
/// `CGROUP2_SUPER_MAGIC`.
fn is_cgroup(path: &Path) -> bool {
    match rustix::fs::statfs(path) {
        Ok(stat) => [0x0027_e0eb, 0x6367_7270].contains(&stat.f_type),
        Err(e) => e == rustix::io::Errno::NOENT,
    }
}

/// When a process was started, in clock ticks since boot; `None`: there is none of this number, or it has ended.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything; behind it fields count from 3, the state.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    // Behind its flags' bit `PF_EXITING` a process does nothing more, though it is still there.
    let ends = fields.get(6)?.parse::<u64>().ok()? & 4 != 0;
    match fields.first() {
        Some(&"Z" | &"X") | None => None,
        Some(_) if ends => None,
        Some(_) => fields.get(19)?.parse().ok(),
    }
}

/// Number of a directory.
pub(crate) fn inode(directory: &Path) -> Option<u64> {
    std::fs::symlink_metadata(directory).ok().filter(|of| of.is_dir()).map(|of| of.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_of_a_run_are_accepted() {
        let value = |file: &str| Change::Value { file: file.into(), before: "1".into(), set: vec![] }.is_sound();
        assert!(value("/proc/sys/vm/laptop_mode") && value("/sys/devices/system/cpu/cpu1/online"));
        assert!(!value("/etc/passwd") && !value("/proc/sys/../../etc/passwd"));
        let cgroup = |path: &str| Change::Cgroup { directory: path.into(), inode: None }.is_sound();
        assert!(!cgroup("/tmp") && cgroup("/sys/fs/cgroup/no-such-group"));
        let temporary = |path: &str| Change::Temporary { path: path.into() }.is_sound();
        assert!(temporary("/tmp/.mmtwin-7-r") && !temporary("/tmp/other") && !temporary(".mmtwin-7-r"));
        assert!(!Change::Tracer { tracefs: "/tmp".into(), buffer: "7".into(), on: "1".into() }.is_sound());
    }

    #[test]
    fn a_process_is_known_by_its_start() {
        let own = std::process::id();
        assert!(start_of(own).is_some_and(|start| start > 0));
        assert_eq!(start_of(own), start_of(own));
        assert_eq!(start_of(u32::MAX), None);
    }
}
