//! Machine presets and kernel bundles: those of mmtwin, and files of the user.

use crate::tree::{self, Fault, Faults, Node, Place, Sources, Value, suggest};
use crate::units::Bytes;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Files of one kind.
pub(super) struct Library {
    /// Name of a file in messages.
    what: &'static str,
    /// Table of the scenario that a file has.
    pub table: &'static str,
    /// Key of that table that names a file.
    pub key: &'static str,
    /// Name of the file under all others.
    pub implied: Option<&'static str>,
    /// Names and texts of those of mmtwin.
    files: &'static [(&'static str, &'static str)],
}

/// Embeds files of a folder at the root of the repository, to which this crate has a symbolic link.
macro_rules! files {
    ($folder:literal: $($name:literal)+) => {
        &[$(($name, include_str!(concat!("../../", $folder, "/", $name, ".toml")))),+]
    };
}

/// Machines, by name.
pub(super) const PRESETS: Library = Library {
    what: "preset",
    table: "machine",
    key: "preset",
    implied: Some("base"),
    files: files! { "machines":
        "base"
        "broadwell-2s-88"
        "xeon-3rd-1s-72"
        "xeon-5th-2s-192"
        "epyc-zen4-2s-448"
        "westmere-ex-4s"
        "westmere-ex-8s"
        "broadwell-2s"
        "skylake-sp-2s"
        "cascade-lake-2s"
        "granite-rapids-2s"
        "epyc-rome-1s"
        "epyc-milan-2s"
        "epyc-genoa-1s"
        "xeon-8s-glueless"
        "lab-4n" "lab-4n-6.12" "lab-4n-7.3" "lab-4n-smp"
        "phenom-4c-3g" "phenom-4c-8g"
        "ppc970-4c-3g"
    },
};

/// Kernels, by name.
pub(super) const BUNDLES: Library = Library {
    what: "bundle",
    table: "kernel",
    key: "release",
    implied: None,
    files: files! { "kernels":
        "2.6.36"
        "2.6.36-lowlumpy"
        "2.6.36-waitcongest"
        "2.6.36-nocongest"
        "2.6.36-nodirect"
        "2.6.37"
        "3.3"
        "3.4"
        "3.4-lumpyremove"
        "3.5"
        "3.13"
        "2014-v1"
        "2014-v2"
        "2014-v3"
        "2014-v4"
        "merged-3.15"
        "4.13"
        "4.14"
        "4.17"
        "4.17-staggered"
        "4.19"
        "6.1"
        "6.1-unstaggered"
        "6.9"
        "6.12"
        "6.12-unbatched"
        "6.18"
        "7.3"
    },
};

/// Files build on each other at most this often.
const MAX_LAYERS: usize = 8;

/// Names of the machine presets.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.files.iter().map(|(name, _)| *name)
}

/// The text of a machine preset.
pub fn preset_text(name: &str) -> Option<&'static str> {
    PRESETS.embedded(name)
}

/// Names of the kernel bundles.
pub fn bundle_names() -> impl Iterator<Item = &'static str> {
    BUNDLES.files.iter().map(|(name, _)| *name)
}

/// The text of a kernel bundle.
pub fn bundle_text(name: &str) -> Option<&'static str> {
    BUNDLES.embedded(name)
}

/// True if a name is that of a file of the user.
pub(super) fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// Source of a file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// The user of the command line: it may be a pipe.
    ByUser,
    /// A file of any author: it must be a regular one, not one that is generated on reading.
    ByFile,
}

/// Largest file: the distances, latencies and bandwidths of 400 nodes.
const MAX_BYTES: u64 = 4 << 20;

/// Reads a text file of a sensible size.
pub(crate) fn read(path: &Path, named: Named) -> Result<String, String> {
    let describe = |e: std::io::Error| e.to_string();
    let metadata = std::fs::metadata(path).map_err(describe)?;
    if metadata.is_dir() || named == Named::ByFile && !metadata.is_file() {
        return Err("is no regular file".into());
    }
    if named == Named::ByFile && metadata.len() == 0 {
        return Err("is empty".into());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(describe)?;
    // A pipe has no length, and a file may grow.
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(describe)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("is longer than {}: no file of this kind is", Bytes(MAX_BYTES)));
    }
    String::from_utf8(bytes).map_err(|e| format!("is no UTF-8 text: byte {} is wrong", e.utf8_error().valid_up_to()))
}

impl Library {
    fn embedded(&self, name: &str) -> Option<&'static str> {
        self.files.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// The tables of the file that is named and of those it builds on, lowest first.
    pub(super) fn layers(
        &self,
        sources: &mut Sources,
        name: Option<(&str, Place)>,
        directory: &Path,
    ) -> Result<Vec<Node>, Faults> {
        let mut texts: Vec<(String, String)> = Vec::new();
        let place = name.map(|(_, place)| place);
        let mut next = name.map(|(name, _)| (name.to_string(), directory.to_path_buf()));
        while let Some((name, directory)) = next {
            let (file, text, directory) = match self.find(&name, &directory) {
                Ok(found) => found,
                Err((message, help)) => {
                    let fault = match (texts.last(), place) {
                        (None, Some(place)) => Fault::new(sources, place, message),
                        (file, _) => Fault::of_file(file.map_or("", |(file, _)| file), message),
                    };
                    return Err(fault.help(help).into());
                }
            };
            if texts.iter().any(|(known, _)| *known == file) {
                return Err(Fault::of_file(file, format!("the {} builds on itself", self.what)).into());
            }
            if texts.len() >= MAX_LAYERS {
                let message = format!("more than {MAX_LAYERS} files build on each other, or this one on itself");
                return Err(Fault::of_file(file, message).into());
            }
            let base = base_of(&text);
            texts.push((file, text));
            next = base.map(|base| (base, directory));
        }
        if let Some(implied) = self.implied
            && !texts.iter().any(|(file, _)| *file == self.file_name(implied))
        {
            texts.push((self.file_name(implied), self.embedded(implied).unwrap_or_default().into()));
        }
        texts.into_iter().rev().map(|(file, text)| self.layer(sources, file, text)).collect()
    }

    /// File name, text and folder of a preset or bundle, or what is wrong and what would be right.
    fn find(&self, name: &str, directory: &Path) -> Result<(String, String, PathBuf), (String, Option<String>)> {
        if is_path(name) {
            let path = directory.join(name);
            let text = read(&path, Named::ByFile).map_err(|e| (format!("{}: {e}", path.display()), None))?;
            let folder = path.parent().unwrap_or(directory).to_path_buf();
            return Ok((path.display().to_string(), text, folder));
        }
        match self.embedded(name) {
            Some(text) => Ok((self.file_name(name), text.into(), directory.to_path_buf())),
            None => {
                let known = self.files.iter().map(|(known, _)| *known).filter(|known| Some(*known) != self.implied);
                let near = suggest(name, known.clone()).map(|near| format!("did you mean \"{near}\"?"));
                let all = || format!("there are {}", known.collect::<Vec<_>>().join(", "));
                Err((format!("there is no {} \"{name}\"", self.what), Some(near.unwrap_or_else(all))))
            }
        }
    }

    /// Name of a file of mmtwin in messages.
    fn file_name(&self, name: &str) -> String {
        format!("{}s/{name}.toml", self.table)
    }

    /// Reads one file.
    fn layer(&self, sources: &mut Sources, file: String, text: String) -> Result<Node, Faults> {
        let source = sources.add_library(file, text);
        let mut tree = tree::document(sources, source)?;
        let table = tree.remove(self.table);
        tree.remove(BASE);
        if let Value::Table(left) = &tree.value
            && let Some((key, (place, _))) = left.first_key_value()
        {
            let help = format!("a {} has only the table `{}` and the key `{BASE}`", self.what, self.table);
            return Err(Fault::new(sources, *place, format!("unknown key `{key}`")).help(Some(help)).into());
        }
        match table {
            Some(table @ Node { value: Value::Table(_), .. }) => Ok(table),
            _ => {
                let name = &sources.get(source).name;
                Err(Fault::of_file(name, format!("has no table [{}]", self.table)).into())
            }
        }
    }
}

/// Key of a file that names the one it builds on.
const BASE: &str = "base";

/// The base of a file. A text that is not TOML has none: its fault is reported when it is read.
fn base_of(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    table.get(BASE)?.as_str().map(str::to_string)
}
