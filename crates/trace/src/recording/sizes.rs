//! The bytes of a recording's files: written into `end.json`, and held against what is there.
//!
//! A file that ends between two pages, samples or lines looks whole by itself. What its writer counted tells.
//! Recordings of writers that counted sums only are held against these.

use super::{Recording, entries, leaf};
use crate::{At, Error, Outcome, Place, Warnings};
use mmtwin_event::manifest::{End, Tracing};
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes of the files of the recording in `directory`, as [`End::files`] has them. `manifest.json`, `end.json` and
/// what differs between equal runs (`run.json`) are not among them.
pub fn sizes(directory: &Path) -> Result<BTreeMap<String, u64>, Error> {
    let mut sizes = BTreeMap::new();
    let mut add = |name: String, path: &Path| {
        let metadata = path.symlink_metadata().map_err(|e| Error::io(&path.to_string_lossy(), e))?;
        if metadata.is_file() {
            *sizes.entry(name).or_default() += metadata.len();
        }
        Ok::<(), Error>(())
    };
    for sub in ["cpu", "counters", "formats"] {
        for path in entries(&directory.join(sub))? {
            if path.is_dir() {
                for file in entries(&path)? {
                    add(format!("{sub}/{}/", leaf(&path)), &file)?;
                }
            } else {
                add(format!("{sub}/{}", leaf(&path)), &path)?;
            }
        }
    }
    for name in ["tasks.jsonl", "state.json", "results.json"] {
        let path = directory.join(name);
        if path.exists() {
            add(name.into(), &path)?;
        }
    }
    Ok(sizes)
}

/// What `end.json` says was written and is not there is a cut. Returns the CPUs whose pages lack some;
/// [`Outcome::SOME_CPU`] where only their sum is known.
pub(super) fn check(
    directory: &Path,
    tracing: Option<&Tracing>,
    end: &End,
    warnings: &mut Warnings,
) -> Result<Vec<u32>, Error> {
    let now = sizes(directory)?;
    let mut cut = Vec::new();
    for (name, &written) in &end.files {
        let there = now.get(name).copied();
        if there.unwrap_or(0) >= written && there.is_some() {
            continue;
        }
        let pages = name.strip_prefix("cpu/").and_then(|n| n.strip_suffix(".pages"));
        let packed = name.strip_prefix("cpu/").and_then(|n| n.strip_suffix(super::packed::SUFFIX));
        cut.extend(pages.or(packed).and_then(|cpu| cpu.parse::<u32>().ok()));
        let page = tracing.filter(|_| pages.is_some()).map_or(1, |tracing| tracing.sub_buffer.max(1));
        let unit = if page == 1 { "bytes" } else { "pages" };
        let file = directory.join(name).to_string_lossy().into_owned();
        match there {
            Some(there) => {
                let message = format!("{} of {} {unit} are present", there / page, written / page);
                warnings.cut(|| Place { file, at: At::Offset(there) }, &message);
            }
            None => warnings.cut(|| Place::file(&file), &format!("missing, with {} {unit}", written / page)),
        }
    }
    if end.files.is_empty() {
        let sum = |prefix: &str| now.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, n)| n).sum::<u64>();
        for (part, written) in [("cpu", end.cost.page_bytes), ("counters", end.cost.counter_bytes)] {
            let there = sum(&format!("{part}/"));
            if there < written {
                cut.extend((part == "cpu").then_some(Outcome::SOME_CPU));
                let place = || Place::file(&directory.join(part).to_string_lossy());
                warnings.cut(place, &format!("{there} of {written} bytes are present"));
            }
        }
    }
    Ok(cut)
}

impl Recording {
    /// CPUs whose pages are not all there.
    pub(super) fn cut_cpus(&self) -> &[u32] {
        &self.cut
    }
}
