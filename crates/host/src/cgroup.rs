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
    "io.pressure",
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

/// Most cgroups that are looked at.
const MAX_CGROUPS: usize = 1 << 16;
/// Cgroups that a message names.
const NAMED: usize = 8;

/// Keys and directories of the cgroups that a path names: below the mount (`/web`), or a directory itself, with the
/// wildcards `*`, `?` and `[]` within a name and `**` across names. The key is the path below the mount.
pub fn find(path: &str, mounts: &[Mount]) -> Result<Vec<(String, PathBuf)>, Error> {
    let mut tried = Vec::new();
    for mount in mounts {
        let below = Path::new(path).strip_prefix(&mount.path).unwrap_or(Path::new(path.trim_start_matches('/')));
        let directory = mount.path.join(below);
        if directory.join("memory.stat").is_file() {
            return Ok(vec![(format!("/{}", below.display()), directory)]);
        }
        let found = matching(path, &format!("/{}", below.display()), mount)?;
        if !found.is_empty() {
            return Ok(found);
        }
        tried.push(directory.display().to_string());
    }
    let tried = if tried.is_empty() { "a mount; none found".into() } else { tried.join(", ") };
    Err(Error::Cgroup { path: path.into(), tried, there: there(mounts) })
}

/// Those of a mount that fit a pattern; none if it has no wildcards.
fn matching(asked: &str, pattern: &str, mount: &Mount) -> Result<Vec<(String, PathBuf)>, Error> {
    if !pattern.contains(['*', '?', '[']) {
        return Ok(Vec::new());
    }
    let fail = |e: glob::PatternError| Error::CgroupPattern { pattern: asked.into(), message: e.msg.into() };
    let fits = glob::Pattern::new(pattern).map_err(fail)?;
    let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
    Ok(all(mount).into_iter().filter(|(key, _)| fits.matches_with(key, options)).collect())
}

/// Keys and directories of all memory cgroups, by key, of the first mount that has any.
pub fn existing(mounts: &[Mount]) -> Vec<(String, PathBuf)> {
    mounts.iter().map(all).find(|all| !all.is_empty()).unwrap_or_default()
}

/// The cgroups of a mount with the memory controller, by key, the root first.
fn all(mount: &Mount) -> Vec<(String, PathBuf)> {
    let (mut found, mut waiting) = (Vec::new(), vec![mount.path.clone()]);
    while let Some(directory) = waiting.pop().filter(|_| found.len() < MAX_CGROUPS) {
        let below = fs::read_dir(&directory).into_iter().flatten().flatten();
        waiting.extend(below.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()));
        if directory.join("memory.stat").is_file() {
            let key = directory.strip_prefix(&mount.path).unwrap_or(&directory).display().to_string();
            found.push((format!("/{key}"), directory));
        }
    }
    found.sort();
    found
}

/// What there is, for a message: the uppermost first.
fn there(mounts: &[Mount]) -> String {
    let mut keys: Vec<String> = existing(mounts).into_iter().map(|(key, _)| key).filter(|key| key != "/").collect();
    keys.sort_by_key(|key| (key.matches('/').count(), key.clone()));
    match keys.len() {
        0 => "there are none but the root, /".into(),
        1..=NAMED => format!("there are {}", keys.join(", ")),
        more => format!("there are {} and {} more", keys[..NAMED].join(", "), more - NAMED),
    }
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
        assert!(error.contains(web.to_str().unwrap()) && error.ends_with("there are none but the root, /"), "{error}");
        fs::write(web.join("memory.stat"), "anon 1\n").unwrap();
        for path in ["/web", "web", web.to_str().unwrap()] {
            assert_eq!(find(path, &mounts).unwrap(), [("/web".to_string(), web.clone())]);
        }
    }

    #[test]
    fn cgroups_are_found_by_patterns() {
        let root = tempfile::tempdir().unwrap();
        for name in ["docker/a1", "docker/a2", "docker/b1/in", "web"] {
            fs::create_dir_all(root.path().join(name)).unwrap();
        }
        for name in ["docker", "docker/a1", "docker/a2", "docker/b1", "docker/b1/in", "web"] {
            fs::write(root.path().join(name).join("memory.stat"), "").unwrap();
        }
        let mounts = [Mount { path: root.path().into(), version: Version::V1 }];
        let keys = |pattern: &str| {
            find(pattern, &mounts).map(|found| found.into_iter().map(|(key, _)| key).collect::<Vec<_>>())
        };
        assert_eq!(keys("/docker/*").unwrap(), ["/docker/a1", "/docker/a2", "/docker/b1"]);
        assert_eq!(keys("docker/a[2-9]").unwrap(), ["/docker/a2"]);
        assert_eq!(keys("/docker/**/in").unwrap(), ["/docker/b1/in"]);
        assert_eq!(keys(root.path().join("w*").to_str().unwrap()).unwrap(), ["/web"]);
        let error = keys("/db*").unwrap_err().to_string();
        assert!(
            error.ends_with("there are /docker, /web, /docker/a1, /docker/a2, /docker/b1, /docker/b1/in"),
            "{error}"
        );
        assert!(keys("/docker/[").unwrap_err().to_string().contains("`/docker/[`"));
    }
}
