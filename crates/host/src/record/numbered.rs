//! Names of recordings that the user did not name: `mmtwin.mmt`, then `mmtwin-2.mmt`, `mmtwin-3.mmt` and so on.
//!
//! A number is one more than the highest there is, so that the order of names is that of time whatever was removed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The name for a new recording that would be `first`: itself if neither it nor one with a number is there.
pub fn next(first: &Path) -> PathBuf {
    let parent = first.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let taken = entries.filter(|entry| !is_empty(&entry.path())).filter_map(|entry| number(first, &entry.file_name()));
    match taken.max() {
        None => first.into(),
        Some(highest) => numbered(first, highest.saturating_add(1)),
    }
}

fn numbered(first: &Path, number: u64) -> PathBuf {
    let stem = first.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}-{number}");
    match first.extension() {
        Some(extension) => first.with_file_name(name).with_extension(extension),
        None => first.with_file_name(name),
    }
}

/// The number of a name: 1 of `first` itself.
fn number(first: &Path, name: &OsStr) -> Option<u64> {
    if Some(name) == first.file_name() {
        return Some(1);
    }
    let path = Path::new(name);
    let digits = path.file_stem()?.to_str()?.strip_prefix(first.file_stem()?.to_str()?)?.strip_prefix('-')?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    if plain && path.extension() == first.extension() { digits.parse().ok() } else { None }
}

/// An empty directory, which a recording may take the place of.
fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_on_behind_the_highest_number() {
        let root = tempfile::tempdir().unwrap();
        let first = root.path().join("a.mmt");
        let next = || next(&first).file_name().unwrap().to_str().unwrap().to_string();
        assert_eq!(next(), "a.mmt");
        fs::create_dir(&first).unwrap();
        assert_eq!(next(), "a.mmt", "an empty directory is taken");
        fs::write(first.join("x"), "").unwrap();
        assert_eq!(next(), "a-2.mmt");
        for other in ["a-9.dat", "a-x.mmt", "a-07.mmt", "b-8.mmt", "a-3.mmt"] {
            fs::write(root.path().join(other), "").unwrap();
        }
        assert_eq!(next(), "a-4.mmt");
        fs::remove_file(first.join("x")).unwrap();
        assert_eq!(next(), "a-4.mmt");
    }
}
