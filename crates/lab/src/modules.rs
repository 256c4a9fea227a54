//! Modules of a kernel, in the order in which they have to be loaded.

use crate::{Error, Kernel};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module, ready for `insmod`.
pub(crate) struct Module {
    /// Its name, with underscores.
    pub name: String,
    /// The ELF file.
    pub content: Vec<u8>,
}

/// The named modules of a kernel and what they depend on, dependencies first. Those that are built in are omitted.
pub(crate) fn closure(kernel: &Kernel, names: &[&str]) -> Result<Vec<Module>, Error> {
    let mut index = Index::default();
    if let Some(directory) = &kernel.modules {
        index.built_in = built_in(&directory.join("modules.builtin"))?;
        find(directory, &mut index.files)?;
    }
    let mut loaded = BTreeSet::new();
    let mut modules = Vec::new();
    for name in names {
        // A kernel without a directory of modules is assumed to have everything built in.
        if kernel.modules.is_some() {
            index.add(&plain(name), kernel, &mut loaded, &mut modules)?;
        }
    }
    Ok(modules)
}

#[derive(Default)]
struct Index {
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

impl Index {
    fn add(
        &self,
        name: &str,
        kernel: &Kernel,
        loaded: &mut BTreeSet<String>,
        modules: &mut Vec<Module>,
    ) -> Result<(), Error> {
        if self.built_in.contains(name) || !loaded.insert(name.to_string()) {
            return Ok(());
        }
        let path = self.files.get(name).ok_or_else(|| Error::Kernel {
            path: kernel.image.clone(),
            message: format!("has no module {name}, which the scenario needs"),
        })?;
        let content = read(path)?;
        for dependency in depends(&content) {
            self.add(&plain(&dependency), kernel, loaded, modules)?;
        }
        modules.push(Module { name: name.to_string(), content });
        Ok(())
    }
}

/// Reads a module file, which may be xz-compressed.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let content = std::fs::read(path).map_err(|e| Error::io(path.display(), e))?;
    if path.extension().is_some_and(|e| e == "xz") {
        return liblzma::decode_all(content.as_slice()).map_err(|e| Error::io(path.display(), e));
    }
    Ok(content)
}

/// A module's name as `lsmod` shows it.
pub(crate) fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// The name of the module in a file, if the file can be read.
pub(crate) fn name_of(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let name = file.strip_suffix(".ko").or_else(|| file.strip_suffix(".ko.xz"))?;
    Some(plain(name))
}

fn find(directory: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<(), Error> {
    for entry in std::fs::read_dir(directory).map_err(|e| Error::io(directory.display(), e))? {
        let entry = entry.map_err(|e| Error::io(directory.display(), e))?;
        let kind = entry.file_type().map_err(|e| Error::io(entry.path().display(), e))?;
        if kind.is_dir() {
            find(&entry.path(), files)?;
        } else if let Some(name) = name_of(&entry.path()) {
            files.insert(name, entry.path());
        }
    }
    Ok(())
}

/// Names of the modules that are part of the image. The list is missing where modules were never installed.
fn built_in(path: &Path) -> Result<BTreeSet<String>, Error> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().filter_map(|line| name_of(Path::new(line))).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(Error::io(path.display(), error)),
    }
}

/// Dependencies of a module: the line `depends=A,B` of its section `.modinfo`, whose lines end with NUL.
fn depends(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(at) = module.windows(key.len()).position(|window| window == key) else { return Vec::new() };
    let text = &module[at + key.len()..];
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let names = String::from_utf8_lossy(&text[..end]);
    names.split(',').filter(|name| !name.is_empty()).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(depends: &str) -> Vec<u8> {
        format!("\u{7f}ELF\0license=GPL\0depends={depends}\0name=x\0").into_bytes()
    }

    fn kernel() -> (tempfile::TempDir, Kernel) {
        let directory = tempfile::tempdir().expect("directory");
        let modules = directory.path().join("modules");
        std::fs::create_dir_all(modules.join("kernel/drivers")).expect("directory");
        let write = |name: &str, content: &[u8]| std::fs::write(modules.join("kernel/drivers").join(name), content);
        write("top.ko", &module("mid-dle,low,in-side")).expect("file");
        write("mid-dle.ko", &module("low")).expect("file");
        let packed = liblzma::encode_all(module("").as_slice(), 1).expect("packed");
        write("low.ko.xz", &packed).expect("file");
        write("lost.ko", &module("nowhere")).expect("file");
        std::fs::write(modules.join("modules.builtin"), "kernel/fs/in-side.ko\n").expect("file");
        let kernel = Kernel {
            bundle: None,
            version: "6".into(),
            image: directory.path().join("bzImage"),
            modules: Some(modules),
            probes: String::new(),
        };
        (directory, kernel)
    }

    #[test]
    fn dependencies_are_first_and_once() {
        let (_directory, kernel) = kernel();
        let modules = closure(&kernel, &["top", "low", "in_side"]).expect("modules");
        let names: Vec<&str> = modules.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names, ["low", "mid_dle", "top"]);
        assert_eq!(modules[0].content, module(""), "unpacked");
    }

    #[test]
    fn missing_parts_are_named() {
        let (_directory, kernel) = kernel();
        let message = |name| closure(&kernel, &[name]).err().expect("an error").to_string();
        assert!(message("lost").contains("no module nowhere"), "{}", message("lost"));
        let without = Kernel { modules: None, ..kernel.clone() };
        assert!(closure(&without, &["top"]).expect("everything is built in").is_empty());
    }
}
