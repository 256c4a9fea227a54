//! Format texts that lie in files of their own, one per event.

use super::Formats;
use crate::files;
use crate::{Error, Place, Warnings};
use std::path::PathBuf;

/// Longest text of a format; the kernel's own have less than 64 KiB.
const MAX_FORMAT: u64 = 1 << 20;

/// Adds the formats of `files`, each with its trace system. One that cannot be used is omitted with a warning.
pub(crate) fn compile(
    formats: &mut Formats,
    files: impl IntoIterator<Item = (String, PathBuf)>,
    warnings: &mut Warnings,
) -> Result<(), Error> {
    for (system, path) in files {
        let place = Place::file(&path.to_string_lossy());
        let text = match files::read(&path, MAX_FORMAT) {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => {
                warnings.cut_error(&place.file, error);
                continue;
            }
        };
        match formats.add(&system, &String::from_utf8_lossy(&text), &place) {
            Ok(id) => {
                for problem in formats.get(id).iter().flat_map(|f| &f.problems) {
                    let name = formats.get(id).map_or("", |f| &f.name);
                    warnings.add(|| place.clone(), &format!("event {name}: {problem}"));
                }
            }
            Err(error) => warnings.add(|| place, &format!("this format is skipped: {error}")),
        }
    }
    Ok(())
}
