//! Tar archives: unpacked into a temporary directory, opened from there, and the directory removed at once.
//!
//! Members are regular files, sparse ones of GNU tar's own format too; links, devices and whatever leads out of the
//! directory are skipped. The number of members, the depth of their names, their bytes (see `spool`) and the length
//! of headers are bounded. What an archive lacks at its end is said, and what is there is read.

use super::container::Broken;
use super::interrupts::Guard;
use super::spool::{Room, temporary};
use super::{Form, directory};
use crate::{At, Error, Place, Warnings};
use std::cell::Cell;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use tar::EntryType;

/// Members that are unpacked.
const MEMBERS: usize = 1 << 17;
/// Parts of a member's name: traces lie some directories deep, and a tracefs some more.
const DEPTH: usize = 32;
/// Bytes between two members' data: headers, long names and attributes.
const HEADERS: u64 = 1 << 20;
/// A block of a tar file.
const BLOCK: u64 = 512;

/// The archive's bytes. Between members it gives no more than the headers of a sane archive.
struct Archive<R> {
    input: R,
    read: Rc<Cell<u64>>,
    /// Where reading must have come to the next member.
    until: Rc<Cell<u64>>,
}

impl<R: Read> Read for Archive<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read.get() >= self.until.get() {
            return Err(io::Error::other("a name or attribute in the archive is longer than 1 MiB"));
        }
        let n = self.input.read(buffer)?;
        self.read.set(self.read.get() + n as u64);
        Ok(n)
    }
}

/// Unpacks an archive and opens what it holds. `taken` bytes have been read of the packed input.
pub(super) fn unpack(
    name: &str,
    input: Option<Box<dyn Read>>,
    taken: &Rc<Cell<u64>>,
    broken: &Broken,
) -> Result<Form, Error> {
    // Dropped last, when the directory is gone.
    let _guard = Guard::new();
    let scratch = tempfile::Builder::new().prefix("mmtwin-").tempdir().map_err(|e| temporary(name, e))?;
    let mut warnings = Warnings::default();
    members(name, input.unwrap_or(Box::new(io::empty())), taken, scratch.path(), &mut warnings)?;
    let place = scratch.path().to_string_lossy().into_owned();
    // Whatever cannot be opened may be so because the archive is broken, which says more.
    let opened = directory(name, scratch.path()).map_err(|error| {
        let first = warnings.cuts().next().or(warnings.list().first());
        match (broken.why(), first) {
            (Some(why), _) => Error::at(Place::file(name), why),
            (None, Some(first)) => Error::at(first.place.clone(), first.message.clone()),
            (None, None) => error.rename(&place, name),
        }
    });
    let mut form = opened?;
    if let Form::Directory(found) = &mut form {
        warnings.append(std::mem::take(&mut found.warnings));
        found.warnings = warnings;
        found.unpacked = Some(place);
    }
    Ok(form)
}

fn members(
    name: &str,
    input: impl Read,
    taken: &Rc<Cell<u64>>,
    to: &Path,
    warnings: &mut Warnings,
) -> Result<(), Error> {
    let (read, until) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(HEADERS)));
    let mut archive = tar::Archive::new(Archive { input, read: read.clone(), until: until.clone() });
    let mut room = Room::new(name, taken);
    let mut end = 0;
    let mut count = 0;
    for entry in archive.entries().map_err(|e| Error::io(name, e))? {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(e) => {
                warnings.cut(|| Place::offset(name, end), &format!("the archive is truncated or damaged here: {e}"));
                return Ok(());
            }
        };
        count += 1;
        if count > MEMBERS {
            return Err(Error::at(Place::file(name), format!("the archive has more than {MEMBERS} members")));
        }
        let sparse = entry.header().entry_type() == EntryType::GNUSparse;
        let packed = if sparse { entry.header().entry_size().unwrap_or(0) } else { entry.size() };
        end = entry.raw_file_position().saturating_add(packed.div_ceil(BLOCK).saturating_mul(BLOCK));
        until.set(end.saturating_add(HEADERS));
        let member = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let place = || Place::file(&format!("{name}: {member}"));
        let kind = entry.header().entry_type();
        if kind == EntryType::Directory {
            continue;
        }
        if pax_sparse(&mut entry) {
            let message = "a sparse member in PAX format is not read; pack with `tar --format=gnu -S` or without -S";
            warnings.cut(place, message);
            continue;
        }
        if !matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse) {
            warnings.add(place, "a member that is not a regular file is skipped");
            continue;
        }
        let Some(path) = within(&member) else {
            let message =
                format!("a member is skipped whose name points outside of the archive or is deeper than {DEPTH}");
            warnings.add(place, &message);
            continue;
        };
        let path = to.join(path);
        let made = match path.parent() {
            Some(parent) => DirBuilder::new().recursive(true).mode(0o700).create(parent),
            None => Ok(()),
        };
        let mut file = match made.and_then(|()| File::create(&path)) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::StorageFull => return Err(temporary(name, e)),
            Err(e) => {
                warnings.cut(place, &format!("a member could not be unpacked: {e}"));
                continue;
            }
        };
        let size = entry.size();
        let copied = room.copy(&mut entry, &mut file)?;
        if copied < size {
            warnings
                .cut(place, &format!("the archive is truncated in this member: {copied} of {size} bytes are present"));
            return Ok(());
        }
    }
    // The end of an archive is blocks of zeros. Without one the cut fell between two members.
    if read.get() < end + BLOCK {
        let message = "the archive has no end marker: it is truncated";
        warnings.cut(|| Place { file: name.into(), at: At::Offset(read.get()) }, message);
    }
    Ok(())
}

/// True for a sparse file described by attributes, whose data begin with a map.
fn pax_sparse(entry: &mut tar::Entry<'_, impl Read>) -> bool {
    let Ok(Some(extensions)) = entry.pax_extensions() else { return false };
    extensions.flatten().any(|extension| extension.key_bytes().starts_with(b"GNU.sparse."))
}

/// A member's path within the directory; `None` if it leads out of it or is too deep.
fn within(member: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    let mut depth = 0;
    for part in Path::new(member).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir | Component::RootDir => continue,
            _ => return None,
        }
        depth += 1;
    }
    (1..=DEPTH).contains(&depth).then_some(path)
}

#[cfg(test)]
mod tests;
