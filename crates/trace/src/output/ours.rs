//! Files of mmtwin in a directory: only a directory without other files is removed or replaced.

use mmtwin_event::manifest::{Manifest, SCHEMA_VERSION};
use std::fs::{self, DirEntry, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The file that is written first into a recording, locked (`flock`) while it is recorded.
pub const MARKER: &str = "mmtwin.recording";
/// Its content.
pub const MARKER_TEXT: &str = "This directory is a recording of mmtwin. The file is locked while it is recorded.\n";

/// Files of a recording; `NAME.tmp` is one that is about to be renamed.
pub(crate) const FILES: [&str; 7] =
    ["manifest.json", "run.json", "state.json", "results.json", "end.json", "tasks.jsonl", "lab.json"];
/// Directories of a recording.
pub(crate) const DIRECTORIES: [&str; 3] = ["cpu", "counters", "formats"];
/// Texts of `formats/` that are not formats.
const TEXTS: [&str; 4] = ["header_page", "header_event", "kallsyms", "printk_formats"];
/// Largest manifest that is read.
const LARGEST_MANIFEST: u64 = 256 << 20;

/// Kind of a directory.
#[derive(Debug)]
pub enum Found {
    /// Nothing is in it.
    Empty,
    /// All of it is ours; files to remove, in this order, before the directory.
    Ours(Vec<PathBuf>),
    /// It is not, or not all of it; why, in words that follow its name.
    Foreign(String),
}

/// Looks at a directory that may be a recording, also an unfinished one.
///
/// # Errors
/// If it cannot be read.
pub fn recording(directory: &Path) -> io::Result<Found> {
    let entries = list(directory)?;
    if entries.is_empty() {
        return Ok(Found::Empty);
    }
    let marked = fs::read(directory.join(MARKER)).is_ok_and(|text| text == MARKER_TEXT.as_bytes() || text.is_empty());
    if let Err(why) = manifest(&directory.join("manifest.json"), marked) {
        return Ok(Found::Foreign(why));
    }
    let missing = DIRECTORIES.iter().chain(&["tasks.jsonl"]).find(|name| !directory.join(name).exists());
    if let Some(missing) = missing.filter(|_| !marked) {
        return Ok(Found::Foreign(format!("has no {missing}, so it is not a recording and is not replaced")));
    }
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.file_name();
        let (name, kind) = (name.to_string_lossy(), entry.file_type()?);
        let whole = name.strip_suffix(".tmp").unwrap_or(&name);
        let foreign = if kind.is_file() && (name == MARKER || FILES.contains(&whole)) {
            None
        } else if kind.is_dir() && DIRECTORIES.contains(&name.as_ref()) {
            part(&entry.path(), &name, &mut found)?
        } else {
            Some(entry.path())
        };
        if let Some(path) = foreign {
            let name = path.strip_prefix(directory).unwrap_or(&path).display().to_string();
            return Ok(Found::Foreign(format!(
                "holds {name}, which is not part of a recording, so it is not replaced"
            )));
        }
        found.push(entry.path());
    }
    // Last, so that an interrupted removal leaves a directory that is still recognised as ours.
    found.sort_by_key(|path| *path == directory.join(MARKER));
    Ok(Found::Ours(found))
}

/// Takes the parts of `cpu`, `counters` or `formats`. Returns what does not belong there.
fn part(directory: &Path, of: &str, found: &mut Vec<PathBuf>) -> io::Result<Option<PathBuf>> {
    for entry in list(directory)? {
        let (name, path, kind) = (entry.file_name(), entry.path(), entry.file_type()?);
        let name = name.to_string_lossy();
        let known = match of {
            "cpu" => {
                let number =
                    name.strip_suffix(".pages").or_else(|| name.strip_suffix(crate::recording::packed::SUFFIX));
                number.is_some_and(|n| n.parse::<u32>().is_ok())
            }
            "counters" => name.ends_with(".arrows"),
            _ => TEXTS.contains(&name.strip_suffix(".tmp").unwrap_or(&name)),
        };
        if of == "formats" && kind.is_dir() {
            for entry in list(&path)? {
                if !(entry.file_type()?.is_file() && is_format(&entry.path())?) {
                    return Ok(Some(entry.path()));
                }
                found.push(entry.path());
            }
        } else if !(known && kind.is_file()) {
            return Ok(Some(path));
        }
        found.push(path);
    }
    Ok(None)
}

fn list(directory: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// An event's format begins with its name; a file that was cut is empty.
fn is_format(path: &Path) -> io::Result<bool> {
    let mut head = [0; 5];
    let read = File::open(path)?.read(&mut head)?;
    Ok(head[..read] == b"name:"[..read])
}

/// The manifest is one of ours. Where there is a marker there need not be one yet.
fn manifest(path: &Path, marked: bool) -> Result<(), String> {
    let text = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return if marked { Ok(()) } else { Err("exists and is not a recording, so it is not replaced".into()) };
        }
        Err(e) => return Err(format!("is not replaced: manifest.json: {e}")),
        Ok(meta) if !meta.is_file() || meta.len() > LARGEST_MANIFEST => {
            return Err("has a manifest.json that is not of a recording, so it is not replaced".into());
        }
        Ok(_) => fs::read(path).map_err(|e| format!("is not replaced: manifest.json: {e}"))?,
    };
    match serde_json::from_slice::<Manifest>(&text) {
        Ok(m) if m.schema_version >= 1 && (m.tool.starts_with("mmtwin") || m.schema_version > SCHEMA_VERSION) => Ok(()),
        // A manifest appears by rename: whole or not at all.
        _ => Err("has a manifest.json that mmtwin did not write, so it is not replaced".into()),
    }
}

/// Removes a directory whose files are all ours. Files that appeared in it since stay, and are an error.
pub fn remove(directory: &Path, found: &[PathBuf]) -> io::Result<()> {
    for path in found {
        let removed = match fs::symlink_metadata(path) {
            Ok(meta) if meta.is_dir() => fs::remove_dir(path),
            Ok(_) => fs::remove_file(path),
            Err(e) => Err(e),
        };
        match removed {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    fs::remove_dir(directory)
}

/// Removes an unfinished directory: a recording, or Parquet files alone. False: it stayed.
pub(super) fn remove_any(directory: &Path) -> bool {
    let found = match recording(directory) {
        Ok(Found::Empty) => Vec::new(),
        Ok(Found::Ours(found)) => found,
        _ => {
            let Ok(entries) = list(directory) else { return false };
            let parquet = |e: &DirEntry| {
                e.path().extension().is_some_and(|x| x == "parquet") && e.file_type().is_ok_and(|t| t.is_file())
            };
            if !entries.iter().all(parquet) {
                return false;
            }
            entries.iter().map(DirEntry::path).collect()
        }
    };
    remove(directory, &found).is_ok()
}
