//! Container, pod or systemd unit of a cgroup, from its path.
//!
//! Paths are those of Docker, Podman, containerd, CRI-O, LXC and Kubernetes with either of their cgroup drivers, and of
//! systemd (systemd.unit(5), "String Escaping for Inclusion in Unit Names").

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind whose containers have names in their paths.
const LXC: &str = "lxc";
/// Characters of a container's id, as `docker ps` prints it.
const SHORT: usize = 12;

/// Prefixes of the scopes that runtimes make for a container.
const SCOPES: [(&str, &str); 5] = [
    ("docker-", "docker"),
    ("libpod-conmon-", "conmon"),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("crio-", "cri-o"),
];

/// Names of a container, as its runtime says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its own.
    pub name: String,
    /// That of its Kubernetes pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
}

/// Names of containers by their ids: 64 hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Containers(pub BTreeMap<String, Container>);

impl Containers {
    /// True if no name is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As [`short`], with the names of containers and pods where they are known: `docker:web`,
    /// `pod:shop-7f9c/containerd:web`.
    pub fn short(&self, path: &str) -> String {
        let components: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let pod = components.iter().rposition(|part| pod(part).is_some());
        let container = (0..components.len()).rev().find_map(|i| Some((i, container(&components, i)?)));
        let known = container.and_then(|(_, (_, id))| self.0.get(id));
        let mut names = Vec::new();
        names.extend(pod.and_then(|i| match known.and_then(|known| known.pod.as_deref()) {
            Some(name) => Some(format!("pod:{name}")),
            None => self::pod(components[i]),
        }));
        let last = match (container, pod) {
            (Some((i, (kind, of))), _) => {
                let own = if kind == LXC { of } else { &of[..SHORT] };
                names.push(format!("{kind}:{}", known.map_or(own, |known| known.name.as_str())));
                i
            }
            (None, Some(i)) => i,
            (None, None) => return unit(&components).unwrap_or_else(|| path.to_string()),
        };
        names.extend(components[last + 1..].iter().map(|part| unescaped(part)));
        names.join("/")
    }
}

/// Name of a cgroup for users: `docker:0123456789ab`, `pod:1a2b3c4d/containerd:0123456789ab`, `nginx.service`; the path
/// if it is neither a container nor a unit. The path below a container follows its name.
pub fn short(path: &str) -> String {
    Containers::default().short(path)
}

/// The whole id of the innermost container of a path.
pub fn id_of(path: &str) -> Option<&str> {
    let components: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let found = (0..components.len()).rev().find_map(|i| container(&components, i));
    found.filter(|(kind, _)| *kind != LXC).map(|(_, id)| id)
}

/// A container's id: 64 hexadecimal digits.
fn id(text: &str) -> Option<&str> {
    (text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())).then_some(text)
}

/// The container that one component of a path is: its kind, and its id or, with LXC, its name.
fn container<'a>(components: &[&'a str], i: usize) -> Option<(&'static str, &'a str)> {
    let part = components[i];
    if let Some(scope) = part.strip_suffix(".scope") {
        return SCOPES.iter().find_map(|(prefix, kind)| Some((*kind, id(scope.strip_prefix(prefix)?)?)));
    }
    let above = i.checked_sub(1).map(|above| components[above]).unwrap_or("");
    if let Some(name) = part.strip_prefix("lxc.payload.").or_else(|| (above == "lxc").then_some(part)) {
        return Some((LXC, name));
    }
    let kind = match above {
        "docker" => "docker",
        above if pod(above).is_some() => "container",
        _ => return part.strip_prefix("libpod-").and_then(id).map(|id| ("podman", id)),
    };
    Some((kind, id(part)?))
}

/// The Kubernetes pod that a component is: the first part of its UID, which is hexadecimal with dashes, or with
/// underscores in the name of a slice.
fn pod(part: &str) -> Option<String> {
    let uid = match part.strip_suffix(".slice") {
        Some(slice) => slice.strip_prefix("kubepods")?.rsplit_once("-pod")?.1,
        None => part.strip_prefix("pod")?,
    };
    let digits = uid.bytes().filter(u8::is_ascii_hexdigit).count();
    let known = digits == 32 && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-' || b == b'_');
    known.then(|| format!("pod:{}", &uid[..8]))
}

/// The systemd unit that a path is: its last component, unescaped.
fn unit(components: &[&str]) -> Option<String> {
    let last = components.last()?;
    let is_unit =
        [".service", ".scope", ".slice", ".mount", ".socket", ".swap"].iter().any(|kind| last.ends_with(kind));
    is_unit.then(|| unescaped(last))
}

/// `\x2d` as `-`: systemd escapes bytes that have a meaning in names of units.
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = rest
            .strip_prefix(b"\\x")
            .and_then(|digits| digits.get(..2))
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_pods_and_units_by_path() {
        let id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let uid = "1a2b3c4d-5e6f-7081-92a3-b4c5d6e7f809";
        let slice = uid.replace('-', "_");
        for (path, expected) in [
            ("/", "/"),
            ("", ""),
            ("/web", "/web"),
            ("/a/docker", "/a/docker"),
            (&format!("/docker/{id}"), "docker:0123456789ab"),
            (&format!("/system.slice/docker-{id}.scope"), "docker:0123456789ab"),
            (&format!("/docker/{id}/init.scope"), "docker:0123456789ab/init.scope"),
            (&format!("/docker/{id}/docker/{id}"), "docker:0123456789ab"),
            (&format!("/machine.slice/libpod-{id}.scope/container"), "podman:0123456789ab/container"),
            (&format!("/machine.slice/libpod-conmon-{id}.scope"), "conmon:0123456789ab"),
            (&format!("/libpod_parent/libpod-{id}"), "podman:0123456789ab"),
            (&format!("/system.slice/cri-containerd-{id}.scope"), "containerd:0123456789ab"),
            (
                &format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/cri-containerd-{id}.scope"
                ),
                "pod:1a2b3c4d/containerd:0123456789ab",
            ),
            (&format!("/kubepods.slice/kubepods-pod{slice}.slice/crio-{id}.scope"), "pod:1a2b3c4d/cri-o:0123456789ab"),
            (&format!("/kubepods/besteffort/pod{uid}/{id}"), "pod:1a2b3c4d/container:0123456789ab"),
            (&format!("/kubepods/burstable/pod{uid}"), "pod:1a2b3c4d"),
            ("/lxc.payload.web/system.slice/nginx.service", "lxc:web/system.slice/nginx.service"),
            ("/lxc/web", "lxc:web"),
            ("/system.slice/nginx.service", "nginx.service"),
            ("/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service"),
            ("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", "machine-qemu-1-vm.scope"),
            ("/user.slice/user-1000.slice/session-3.scope", "session-3.scope"),
            ("/system.slice/docker-short.scope", "docker-short.scope"),
            ("/podcast", "/podcast"),
            ("/system.slice/odd\\x.service", "odd\\x.service"),
        ] {
            assert_eq!(short(path), expected, "{path}");
        }
    }

    #[test]
    fn names_that_a_runtime_gave_take_the_place_of_ids() {
        let id = "0123456789abcdef".repeat(4);
        let pod = "/kubepods.slice/kubepods-pod1a2b3c4d_5e6f_7081_92a3_b4c5d6e7f809.slice";
        let (docker, scope) = (format!("/docker/{id}/init.scope"), format!("{pod}/cri-containerd-{id}.scope"));
        assert_eq!([&*docker, &*scope, "/lxc/web", "/web"].map(id_of), [Some(&*id), Some(&*id), None, None]);
        let mut names = Containers::default();
        names.0.insert(id.clone(), Container { name: "web".into(), pod: None });
        assert_eq!(names.short(&docker), "docker:web/init.scope");
        assert_eq!(names.short(&scope), "pod:1a2b3c4d/containerd:web");
        names.0.insert(id, Container { name: "web".into(), pod: Some("shop-7f9c".into()) });
        assert_eq!(names.short(&scope), "pod:shop-7f9c/containerd:web");
        let text = serde_json::to_string(&names).unwrap();
        assert_eq!(serde_json::from_str::<Containers>(&text).unwrap(), names);
    }
}
