//! Where kernels and busybox lie that `tools/lab.sh` unpacked, and kernels that `tools/lab-variants.sh` built.

use crate::{Error, Kernel};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The lab's folder: `kernels/NAME/{vmlinuz,modules,config,version,bundle,probes}`, `busybox` and `dm-delay`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Its path; it need not exist.
    pub path: PathBuf,
}

impl Folder {
    /// The folder that `tools/lab.sh` fills: `$MMTWIN_LAB`, else `$XDG_CACHE_HOME/mmtwin/lab`, else
    /// `~/.cache/mmtwin/lab`.
    pub fn find() -> Folder {
        Folder::from_variables(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Folder {
        let path = variable("MMTWIN_LAB").map(PathBuf::from).unwrap_or_else(|| {
            let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
            let home = || Path::new(&variable("HOME").unwrap_or_default()).join(".cache");
            cache.unwrap_or_else(home).join("mmtwin/lab")
        });
        Folder { path }
    }

    /// A statically linked busybox.
    pub fn busybox(&self) -> PathBuf {
        self.path.join("busybox")
    }

    /// A statically linked program that makes a disk of the guest slow; its source is `guest/dm-delay.c`.
    pub fn dm_delay(&self) -> PathBuf {
        self.path.join("dm-delay")
    }

    /// The program that runs a workload in a guest.
    pub fn agent(&self) -> PathBuf {
        self.path.join("mmtwin-agent")
    }

    /// Names of the kernels that are there, sorted.
    pub fn kernels(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path.join("kernels")).into_iter().flatten().flatten();
        let whole = entries.filter(|entry| entry.path().join("vmlinuz").is_file());
        let mut names: Vec<String> = whole.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Names of those kernels that `tools/lab-variants.sh` built, sorted.
    pub fn built(&self) -> Vec<String> {
        let mut names = self.kernels();
        names.retain(|name| self.path.join("kernels").join(name).join("bundle").is_file());
        names
    }

    /// A kernel by its name here, or by the path of a bzImage; its modules are then those of `modules`, a directory
    /// such as `/lib/modules/VERSION`, or it has none.
    ///
    /// # Errors
    /// If there is none, or the file is not a kernel.
    pub fn kernel(&self, name: &str, modules: Option<&Path>) -> Result<Kernel, Error> {
        let known = self.kernels();
        if known.iter().any(|k| k == name) {
            let directory = self.path.join("kernels").join(name);
            let own = Some(directory.join("modules")).filter(|path| path.is_dir());
            let mut kernel = Kernel::open(&directory.join("vmlinuz"), modules.map(Path::to_path_buf).or(own))?;
            // A kernel that was built has the name of its bundle, and places in its code, beside it.
            let text = |file: &str| std::fs::read_to_string(directory.join(file)).ok();
            kernel.bundle = Some(text("bundle").map_or_else(|| name.to_string(), |bundle| bundle.trim().to_string()));
            kernel.probes = text("probes").unwrap_or_default();
            return Ok(kernel);
        }
        if name.contains('/') || Path::new(name).is_file() {
            return Kernel::open(Path::new(name), modules.map(Path::to_path_buf));
        }
        Err(Error::NoKernel { name: name.into(), known })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_folder_is() {
        let with = |set: &[(&str, &str)]| {
            Folder::from_variables(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into())).path
        };
        let home = ("HOME", "/home/a");
        assert_eq!(with(&[home]), Path::new("/home/a/.cache/mmtwin/lab"));
        assert_eq!(with(&[home, ("XDG_CACHE_HOME", "/c")]), Path::new("/c/mmtwin/lab"));
        assert_eq!(with(&[home, ("XDG_CACHE_HOME", "/c"), ("MMTWIN_LAB", "/l")]), Path::new("/l"));
    }

    #[test]
    fn kernels_by_name_and_by_path() {
        let directory = tempfile::tempdir().expect("directory");
        let folder = Folder { path: directory.path().into() };
        assert!(folder.kernels().is_empty());
        assert!(matches!(folder.kernel("6.1", None), Err(Error::NoKernel { .. })));
        assert!(matches!(folder.kernel("./none", None), Err(Error::Io { .. })));
        let kernel = directory.path().join("kernels/6.1");
        std::fs::create_dir_all(kernel.join("modules")).expect("directories");
        std::fs::write(kernel.join("vmlinuz"), crate::kernel::tests::image("6.1.0-1 (a@b)")).expect("image");
        assert_eq!(folder.kernels(), ["6.1"]);
        assert!(folder.built().is_empty());
        let found = folder.kernel("6.1", None).expect("kernel");
        assert_eq!((found.version.as_str(), found.bundle.as_deref()), ("6.1.0-1", Some("6.1")));
        assert!(found.modules.is_some() && found.probes.is_empty());
        std::fs::write(kernel.join("bundle"), "6.1-odd\n").expect("bundle");
        std::fs::write(kernel.join("probes"), "p:mmtwin/a f\n").expect("probes");
        assert_eq!(folder.built(), ["6.1"]);
        let built = folder.kernel("6.1", None).expect("kernel");
        assert_eq!((built.bundle.as_deref(), built.probes.as_str()), (Some("6.1-odd"), "p:mmtwin/a f\n"));
        let by_path = folder.kernel(kernel.join("vmlinuz").to_str().expect("UTF-8"), None).expect("kernel");
        assert_eq!((by_path.bundle, by_path.modules), (None, None));
    }
}
