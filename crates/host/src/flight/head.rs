//! What segments are read with: formats, manifest, `run.json`, in the form of a recording.
//!
//! Each start of a recorder writes a head. If it says the same as the one before (same boot, same events, same formats)
//! that one is used again, so that a recording can reach back over the restart.

use super::directory::Directory;
use crate::Error;
use mmtwin_event::manifest::{Manifest, Run};
use mmtwin_trace::recording::{Recording, Writer};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Tells one boot from another: times of the trace clock begin again.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Begins a head.
///
/// # Errors
/// What the system refuses.
pub fn begin(directory: &Directory) -> Result<(Writer, u32), Error> {
    let number = directory.heads().last().map_or(1, |last| last.saturating_add(1));
    Ok((Writer::create(&directory.head(number), false)?, number))
}

/// Completes a head. Returns the number of the one to use: its own, or that of an earlier one that says the same.
///
/// # Errors
/// What the system refuses.
pub fn end(directory: &Directory, mut writer: Writer, number: u32) -> Result<u32, Error> {
    writer.publish()?;
    drop(writer);
    let earlier = directory.heads().into_iter().rfind(|&earlier| earlier < number);
    match earlier {
        Some(earlier) if say_the_same(&directory.head(earlier), &directory.head(number)) => {
            remove(&directory.head(number))?;
            Ok(earlier)
        }
        _ => Ok(number),
    }
}

/// Removes heads that no segment needs.
///
/// # Errors
/// What the system refuses.
pub fn remove_unused(directory: &Directory, used: impl Fn(u32) -> bool) -> Result<(), Error> {
    directory.heads().into_iter().filter(|&head| !used(head)).try_for_each(|head| remove(&directory.head(head)))
}

fn remove(path: &Path) -> Result<(), Error> {
    fs::remove_dir_all(path).map_err(|e| Error::io(path.to_string_lossy(), e))
}

/// What is known of the start: of the machine, and of the recorder.
///
/// # Errors
/// If it cannot be read.
pub fn read(head: &Path) -> Result<(Manifest, Run), Error> {
    let Recording { manifest, run, .. } = Recording::open(head)?;
    Ok((manifest, run.unwrap_or_default()))
}

/// The texts of `formats/`, by path in it.
///
/// # Errors
/// If they cannot be read.
pub fn formats(head: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, Error> {
    let (mut texts, root) = (BTreeMap::new(), head.join("formats"));
    let mut waiting = vec![root.clone()];
    while let Some(path) = waiting.pop() {
        let fail = |e: io::Error| Error::io(path.to_string_lossy(), e);
        if path.is_dir() {
            let entries = fs::read_dir(&path).map_err(fail)?;
            waiting.extend(entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(fail)?);
        } else if let Ok(below) = path.strip_prefix(&root) {
            texts.insert(below.to_path_buf(), fs::read(&path).map_err(fail)?);
        }
    }
    Ok(texts)
}

/// Copies the texts of a head to a recording.
///
/// # Errors
/// What the system refuses.
pub fn copy_formats(head: &Path, writer: &mut Writer) -> Result<(), Error> {
    for (path, text) in formats(head)? {
        let leaf = path.file_name().unwrap_or_default().to_string_lossy();
        match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(system) => writer.format(&system.to_string_lossy(), &leaf, &text)?,
            None => writer.text(&leaf, &text)?,
        }
    }
    Ok(())
}

fn say_the_same(one: &Path, other: &Path) -> bool {
    let said = |head: &Path| {
        let (manifest, _) = read(head).ok()?;
        let boot = manifest.evidence.files.get(BOOT_ID).cloned()?;
        Some((boot, manifest.clock, manifest.tracing, manifest.counters, formats(head).ok()?))
    };
    said(one).is_some_and(|one| Some(one) == said(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(directory: &Directory, boot: &str, format: &str) -> u32 {
        let (mut writer, number) = begin(directory).unwrap();
        let mut manifest = Manifest { start: u64::from(number), ..Manifest::default() };
        manifest.evidence.files.insert(BOOT_ID.into(), boot.into());
        writer.text("header_page", b"x").unwrap();
        writer.format("vmscan", "a", format.as_bytes()).unwrap();
        writer.run(&Run::default()).unwrap();
        writer.manifest(&manifest).unwrap();
        end(directory, writer, number).unwrap()
    }

    #[test]
    fn a_head_is_used_further_while_it_says_the_same() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::create(&root.path().join("f")).unwrap();
        let same = [written(&directory, "a", "1"), written(&directory, "a", "1")];
        let other = [written(&directory, "a", "2"), written(&directory, "b", "2"), written(&directory, "b", "2")];
        assert_eq!((same, other), ([1, 1], [2, 3, 3]));
        assert_eq!(directory.heads(), [1, 2, 3]);
        remove_unused(&directory, |head| head == 3).unwrap();
        assert_eq!(directory.heads(), [3]);
        assert_eq!(read(&directory.head(3)).unwrap().0.start, 3);
    }
}
