//! Names of containers, from the files in which their runtimes keep their state.
//!
//! | runtime | file | name |
//! |---|---|---|
//! | Docker | `/var/lib/docker/containers/ID/config.v2.json` | `Name` |
//! | Podman, CRI-O | `/var/lib/containers/storage/overlay-containers/containers.json` | the first of `names` of an `id` |
//! | containerd | `/run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json` | annotations of Kubernetes |
//!
//! Only root can read them. A container whose file is missing, cannot be read or has another form has its id alone, as
//! has one of a user's own runtime, whose files are in that user's home.

use mmtwin_event::container::{Container, Containers, id_of};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

const DOCKER: &str = "var/lib/docker/containers";
const STORAGE: &str = "var/lib/containers/storage/overlay-containers/containers.json";
const CONTAINERD: &str = "run/containerd/io.containerd.runtime.v2.task";
/// No such file is larger.
const LARGEST: u64 = 8 << 20;
/// Containers that are remembered; with more the oldest names are looked up again.
const MOST: usize = 1 << 12;

/// Names that were looked up.
#[derive(Clone, Debug)]
pub struct Names {
    /// Directory that the paths above are below.
    root: PathBuf,
    known: Containers,
    /// Ids without a name.
    unknown: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Docker {
    #[serde(rename = "Name")]
    name: String,
}

#[derive(Deserialize)]
struct Stored {
    id: String,
    #[serde(default)]
    names: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Bundle {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Names {
    /// Those of this machine.
    pub fn new() -> Names {
        Names::below(Path::new("/"))
    }

    /// Those whose files are below a directory.
    pub fn below(root: &Path) -> Names {
        Names { root: root.into(), known: Containers::default(), unknown: BTreeSet::new() }
    }

    /// The names that are known.
    pub fn known(&self) -> &Containers {
        &self.known
    }

    /// Looks up the name of the container that a cgroup is or is in, once.
    pub fn look_up(&mut self, cgroup: &str) {
        let Some(id) = id_of(cgroup) else { return };
        if self.known.0.contains_key(id) || self.unknown.contains(id) {
            return;
        }
        if self.known.0.len() + self.unknown.len() >= MOST {
            self.known.0.clear();
            self.unknown.clear();
        }
        match self.read(id) {
            Some(container) => _ = self.known.0.insert(id.into(), container),
            None => _ = self.unknown.insert(id.into()),
        }
    }

    fn read(&self, id: &str) -> Option<Container> {
        self.of_docker(id).or_else(|| self.of_containerd(id)).or_else(|| self.of_storage(id))
    }

    fn of_docker(&self, id: &str) -> Option<Container> {
        let config: Docker = json(&self.root.join(DOCKER).join(id).join("config.v2.json"))?;
        named(config.name.trim_start_matches('/'))
    }

    fn of_storage(&self, id: &str) -> Option<Container> {
        let stored: Vec<Stored> = json(&self.root.join(STORAGE))?;
        let own = stored.into_iter().find(|container| container.id == id)?;
        named(own.names?.first()?)
    }

    fn of_containerd(&self, id: &str) -> Option<Container> {
        let spaces = fs::read_dir(self.root.join(CONTAINERD)).ok()?.flatten();
        let mut bundles = spaces.filter_map(|space| json::<Bundle>(&space.path().join(id).join("config.json")));
        let annotations = bundles.next()?.annotations;
        let of = |key: &str| annotations.get(&format!("io.kubernetes.cri.{key}")).filter(|name| !name.is_empty());
        let pod = of("sandbox-name").cloned();
        // The container that keeps a pod's namespaces has no name of its own.
        let name = of("container-name").cloned().or_else(|| pod.as_ref().map(|_| "sandbox".into()))?;
        Some(Container { name, pod })
    }
}

impl Default for Names {
    fn default() -> Names {
        Names::new()
    }
}

/// A name; those that Kubernetes gives are `k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT`.
fn named(name: &str) -> Option<Container> {
    let parts: Vec<&str> = name.split('_').collect();
    match parts[..] {
        ["k8s", "POD", pod, _, _, _] => Some(Container { name: "sandbox".into(), pod: Some(pod.into()) }),
        ["k8s", container, pod, _, _, _] => Some(Container { name: container.into(), pod: Some(pod.into()) }),
        _ => (!name.is_empty()).then(|| Container { name: name.into(), pod: None }),
    }
}

fn json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(LARGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of `digit`.
    fn id(digit: char) -> String {
        digit.to_string().repeat(64)
    }

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn names_are_those_of_the_runtimes() {
        let root = tempfile::tempdir().unwrap();
        let [docker, podman, crio, containerd, sandbox] = ['1', '2', '3', '4', '5'].map(id);
        write(
            root.path(),
            &format!("{DOCKER}/{docker}/config.v2.json"),
            r#"{"ID": "x", "Name": "/web_1", "Args": []}"#,
        );
        let stored = format!(
            r#"[{{"id": "{podman}", "names": ["db"], "image": "x"}},
                {{"id": "{crio}", "names": ["k8s_nginx_shop-7f9c_default_0-1_0"]}}, {{"id": "{}"}}]"#,
            id('6')
        );
        write(root.path(), STORAGE, &stored);
        let task = |id: &str| format!("{CONTAINERD}/k8s.io/{id}/config.json");
        let bundle = |own: &str| format!(r#"{{"ociVersion": "1", "annotations": {{{own}}}}}"#);
        let pod = r#""io.kubernetes.cri.sandbox-name": "shop-7f9c""#;
        let own = format!(r#""io.kubernetes.cri.container-name": "php", {pod}"#);
        write(root.path(), &task(&containerd), &bundle(&own));
        write(root.path(), &task(&sandbox), &bundle(pod));
        let mut names = Names::below(root.path());
        let pods = "/kubepods.slice/kubepods-pod1a2b3c4d_5e6f_7081_92a3_b4c5d6e7f809.slice";
        for (cgroup, expected) in [
            (format!("/docker/{docker}"), "docker:web_1"),
            (format!("/machine.slice/libpod-{podman}.scope/container"), "podman:db/container"),
            (format!("{pods}/crio-{crio}.scope"), "pod:shop-7f9c/cri-o:nginx"),
            (format!("{pods}/cri-containerd-{containerd}.scope"), "pod:shop-7f9c/containerd:php"),
            (format!("{pods}/cri-containerd-{sandbox}.scope"), "pod:shop-7f9c/containerd:sandbox"),
            (format!("/machine.slice/libpod-{}.scope", id('6')), "podman:666666666666"),
            ("/user.slice".into(), "user.slice"),
        ] {
            names.look_up(&cgroup);
            assert_eq!(names.known().short(&cgroup), expected);
        }
        assert_eq!((names.known().0.len(), names.unknown.len()), (5, 1));
    }

    #[test]
    fn broken_files_give_no_name_and_no_error() {
        let root = tempfile::tempdir().unwrap();
        let mut names = Names::below(&root.path().join("none"));
        let cgroup = format!("/docker/{}", id('a'));
        names.look_up(&cgroup);
        assert_eq!(names.known().short(&cgroup), "docker:aaaaaaaaaaaa");
        for text in ["", "{", "[]", r#"{"Name": 3}"#, r#"{"Name": "/"}"#] {
            write(root.path(), &format!("{DOCKER}/{}/config.v2.json", id('a')), text);
            write(root.path(), STORAGE, text);
            write(root.path(), &format!("{CONTAINERD}/moby/{}/config.json", id('a')), text);
            let mut names = Names::below(root.path());
            names.look_up(&cgroup);
            assert!(names.known().is_empty(), "{text}");
        }
    }
}
