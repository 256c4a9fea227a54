//! Files of the host that a running guest uses: they are in memory if there is room, and removed afterwards.

use crate::Error;
use crate::plan::{Plan, Region, Use};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Place of a guest's directory in memory.
const MEMORY: &str = "/dev/shm";
/// How its name begins; the number of the process follows.
const PREFIX: &str = "mmtwin-lab-";

/// A directory for one guest, with room for this many bytes.
pub(crate) fn directory(needed: u64) -> Result<TempDir, Error> {
    sweep(Path::new(MEMORY));
    let place = if free(Path::new(MEMORY)).is_some_and(|free| free > needed) {
        PathBuf::from(MEMORY)
    } else {
        let place = std::env::temp_dir();
        let available = free(&place).unwrap_or(0);
        if available < needed {
            return Err(Error::NoSpace { path: place, needed, available });
        }
        place
    };
    let prefix = format!("{PREFIX}{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(&place).map_err(|e| Error::io(place.display(), e))
}

/// Removes what a process left that was killed: in memory, nothing else would.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Of another user, or removed by another process meanwhile.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn free(place: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(place).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Bytes of memory that programs can allocate without swapping (`MemAvailable`).
pub(crate) fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib << 10)
}

/// Bytes of the file that is the memory of the node with the regions.
pub(crate) fn memory_size(plan: &Plan) -> u64 {
    let sizes = plan.regions.iter().map(|region| &plan.nodes[region.node as usize]);
    sizes.map(|node| node.memory + node.reserved).max().unwrap_or(0)
}

/// Makes the file that is the memory of the node with the regions, and their file systems in it.
pub(crate) fn memory(plan: &Plan, path: &Path) -> Result<(), Error> {
    let size = memory_size(plan);
    let file = File::create(path).map_err(|e| Error::io(path.display(), e))?;
    // Everything is taken now: a guest that finds no room while it runs dies of a bus error.
    match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size) {
        Ok(()) => {}
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(size).map_err(|e| Error::io(path.display(), e))?,
        Err(rustix::io::Errno::NOSPC) => {
            let place = path.parent().unwrap_or(path);
            return Err(Error::NoSpace { path: place.into(), needed: size, available: free(place).unwrap_or(0) });
        }
        Err(error) => return Err(Error::io(path.display(), error)),
    }
    plan.regions.iter().try_for_each(|region| match region.used_for {
        // A journal is useless for a recording that is not mounted again.
        Use::Recording => file_system(region, path, &["-O", "^has_journal"]),
        Use::Files => file_system(region, path, &[]),
        Use::Swap => Ok(()),
    })
}

fn file_system(region: &Region, path: &Path, options: &[&str]) -> Result<(), Error> {
    // Everything that mkfs would take from the clock or at random is given, so that equal scenarios have equal disks.
    let identity = "6d6d7477-696e-4c61-8221-000000000001";
    let output = Command::new("mkfs.ext4")
        .env("E2FSPROGS_FAKE_TIME", "1767225600")
        .args(options)
        .args(["-q", "-F", "-b", "4096", "-N", "4096", "-m", "0", "-U", identity])
        .arg("-E")
        .arg(format!("offset={},hash_seed={identity},nodiscard,lazy_itable_init=0,lazy_journal_init=0", region.offset))
        .arg(path)
        .arg(format!("{}k", region.size >> 10))
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            Err(Error::SetUp { message: format!("mkfs.ext4: {message}") })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Error::Missing { what: "mkfs.ext4".into(), fix: "install the package e2fsprogs".into() })
        }
        Err(error) => Err(Error::io("mkfs.ext4", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_dead_processes_are_removed() {
        let place = tempfile::tempdir().expect("directory");
        // The highest number of a process is 2^22.
        for name in [format!("{PREFIX}9999999-a"), format!("{PREFIX}{}-a", std::process::id()), "other".into()] {
            fs::create_dir(place.path().join(name)).expect("directory");
        }
        sweep(place.path());
        let left = fs::read_dir(place.path()).expect("listed").count();
        assert_eq!(left, 2);
        assert!(!place.path().join(format!("{PREFIX}9999999-a")).exists());
    }

    #[test]
    fn no_room_is_an_error() {
        assert!(matches!(directory(u64::MAX), Err(Error::NoSpace { .. })));
        let made = directory(4096).expect("a directory");
        let path = made.path().to_path_buf();
        assert!(path.is_dir());
        drop(made);
        assert!(!path.exists());
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
