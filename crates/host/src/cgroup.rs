//! Memory cgroups of both versions: where they are mounted, and which files of one hold counters.

use crate::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that are sampled, where they exist: those of version 2, those of version 1, and those of both.
pub const FILES: &[&str] = &[
    "memory.current",
    "memory.peak",
    "memory.min",
    "memory.low",
    "memory.high",
    "memory.max",
    "memory.swap.current",
    "memory.swap.max",
    "memory.events",
    "memory.events.local",
    "memory.swap.events",
    "memory.pressure",
    "memory.usage_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.limit_in_bytes",
    "memory.soft_limit_in_bytes",
    "memory.failcnt",
    "memory.memsw.usage_in_bytes",
    "memory.memsw.limit_in_bytes",
    "memory.memsw.failcnt",
    "memory.oom_control",
    "memory.stat",
    "memory.numa_stat",
];

/// Version of the hierarchy that has the memory controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy per controller.
    V1,
    /// The unified hierarchy.
    V2,
}

/// Where memory cgroups are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Mount point.
    pub path: PathBuf,
    /// Version.
    pub version: Version,
}

/// Mounts that may hold memory cgroups, version 1 first: if the controller is mounted there, it is nowhere else.
pub fn mounts() -> Vec<Mount> {
    parse_mounts(&fs::read_to_string("/proc/self/mounts").unwrap_or_default())
}

fn parse_mounts(text: &str) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (path, kind, options) = (words.next()?, words.next()?, words.next()?);
            let version = match kind {
                "cgroup" if options.split(',').any(|o| o == "memory") => Version::V1,
                "cgroup2" => Version::V2,
                _ => return None,
            };
            Some(Mount { path: path.replace("\\040", " ").into(), version })
        })
        .collect();
    mounts.sort_by_key(|m| m.version == Version::V2);
    mounts
}

/// The directory of a cgroup given as a path below its mount (`/web`), or as the directory itself. The key is the
/// path below the mount.
pub fn find(path: &str, mounts: &[Mount]) -> Result<(String, PathBuf), Error> {
    let mut tried = Vec::new();
    for mount in mounts {
        let below = Path::new(path).strip_prefix(&mount.path).unwrap_or(Path::new(path.trim_start_matches('/')));
        let directory = mount.path.join(below);
        if directory.join("memory.stat").is_file() {
            return Ok((format!("/{}", below.display()), directory));
        }
        tried.push(directory.display().to_string());
    }
    let tried = if tried.is_empty() { "a mount; none found".into() } else { tried.join(", ") };
    Err(Error::Cgroup { path: path.into(), tried })
}

/// The memory cgroup in a text of `/proc/PID/cgroup`.
pub fn of_task(text: &str) -> Option<&str> {
    let lines = || text.lines().filter_map(|l| l.split_once(':')?.1.split_once(':'));
    let v1 = lines().find(|(controllers, _)| controllers.split(',').any(|c| c == "memory"));
    v1.or_else(|| lines().find(|(controllers, _)| controllers.is_empty())).map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/my\\040memory cgroup rw,relatime,memory 0 0
proc /proc proc rw 0 0
";

    #[test]
    fn mounts_of_both_versions() {
        let v1 = Mount { path: "/sys/fs/cgroup/my memory".into(), version: Version::V1 };
        let v2 = Mount { path: "/sys/fs/cgroup/unified".into(), version: Version::V2 };
        assert_eq!(parse_mounts(MOUNTS), [v1, v2]);
    }

    #[test]
    fn a_task_is_in_the_cgroup_of_the_memory_controller() {
        assert_eq!(of_task("9:name=systemd:/s\n4:cpu,memory:/a:b\n0::/u\n"), Some("/a:b"));
        assert_eq!(of_task("9:name=systemd:/s\n0::/user.slice\n"), Some("/user.slice"));
        assert_eq!(of_task(""), None);
    }

    #[test]
    fn a_cgroup_is_found_by_its_path_or_directory() {
        let root = tempfile::tempdir().unwrap();
        let web = root.path().join("web");
        fs::create_dir(&web).unwrap();
        let mounts = [Mount { path: root.path().into(), version: Version::V2 }];
        let error = find("/web", &mounts).unwrap_err().to_string();
        assert!(error.contains(web.to_str().unwrap()), "{error}");
        fs::write(web.join("memory.stat"), "anon 1\n").unwrap();
        for path in ["/web", "web", web.to_str().unwrap()] {
            assert_eq!(find(path, &mounts).unwrap(), ("/web".to_string(), web.clone()));
        }
    }
}
