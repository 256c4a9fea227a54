//! Stored runs of the lab: made where they are missing, packed (a tar archive with Zstandard, without what only says who
//! recorded), and read again.

use super::same;
use crate::Error;
use mmtwin::running::LabOptions;
use mmtwin::{Analysed, Trace};
use mmtwin_lab::{Mode, guests_at_once};
use mmtwin_scenario::Scenario;
use mmtwin_trace::output::FileOutput;
use mmtwin_trace::output::ours::MARKER;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Level of compression; recordings are packed once and small.
const LEVEL: i32 = 19;
/// Files that are not kept.
const DROPPED: [&str; 2] = ["run.json", MARKER];
/// The file with the kernel's symbols, megabytes of which the events name a few.
const SYMBOLS: &str = "formats/kallsyms";

/// Seeds of a cell.
pub const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
/// Longest time of a guest.
const TIME_OUT: Duration = Duration::from_secs(600);

/// Runs scenarios in the lab, each into its recording.
type RunGuests<'a> = dyn Fn(&[(&Scenario, PathBuf)], &LabOptions) -> Result<(), mmtwin::Error> + 'a;

/// Who runs guests.
#[derive(Clone, Copy)]
pub struct Guests<'a> {
    /// Runs scenarios in the lab, each into its recording: [`mmtwin::running::on_lab`], and what a caller wants besides.
    pub run: &'a RunGuests<'a>,
    /// Takes what is worth saying meanwhile.
    pub note: &'a dyn Fn(&str),
}

/// Runs of one scenario on one kernel in one mode, of which each has a file.
pub(super) struct Runs<'a> {
    pub kernel: &'a str,
    pub mode: Mode,
    /// The scenario with a seed.
    pub scenario: &'a dyn Fn(u64) -> Result<Scenario, Error>,
    /// Where the run of a seed is stored.
    pub file: &'a dyn Fn(u64) -> PathBuf,
}

impl Runs<'_> {
    /// Runs that are not stored, or all.
    pub fn missing(&self, again: bool) -> Vec<u64> {
        SEEDS.into_iter().filter(|&seed| again || !(self.file)(seed).is_file()).collect()
    }

    /// Seeds of the runs that are stored.
    pub fn stored(&self) -> Vec<u64> {
        SEEDS.into_iter().filter(|&seed| (self.file)(seed).is_file()).collect()
    }

    /// Runs in the lab what is not stored, or all of it; the number of runs.
    pub fn refresh(&self, again: bool, guests: Guests<'_>) -> Result<usize, Error> {
        let (missing, scratch) = (self.missing(again), tempfile::tempdir()?);
        // As many as run at once: what is done is kept whatever comes then.
        for seeds in missing.chunks(guests_at_once(self.mode)) {
            for (&seed, output) in seeds.iter().zip(self.record(seeds, scratch.path(), guests)?) {
                pack(&output, &(self.file)(seed))?;
            }
        }
        Ok(missing.len())
    }

    /// Runs seeds in the lab; their recordings, below `directory`.
    pub fn record(&self, seeds: &[u64], directory: &Path, guests: Guests<'_>) -> Result<Vec<PathBuf>, Error> {
        let scenarios = seeds.iter().map(|&seed| (self.scenario)(seed)).collect::<Result<Vec<_>, _>>()?;
        let outputs: Vec<PathBuf> = seeds.iter().map(|seed| directory.join(format!("seed-{seed}.mmt"))).collect();
        let runs: Vec<(&Scenario, PathBuf)> = scenarios.iter().zip(outputs.iter().cloned()).collect();
        let kernel = Some(self.kernel.to_string());
        (guests.run)(&runs, &LabOptions { kernel, modules: None, mode: self.mode, time_out: TIME_OUT, force: false })?;
        Ok(outputs)
    }

    /// Unpacks the run of a seed.
    pub fn unpack(&self, seed: u64) -> Result<TempDir, Error> {
        unpack(&(self.file)(seed))
    }

    /// Analyses a recording of a seed, which must be of today's scenario.
    pub fn read(&self, recording: &Path, seed: u64) -> Result<Analysed, Error> {
        let analysed = Trace::open(recording)?.analyse(&mut |_| {})?;
        let recorded = analysed.resolved.clone().unwrap_or_default();
        if let Some(change) = same::asked_of_guest(&recorded, &(self.scenario)(seed)?.to_json()).first() {
            let cure = "`mmtwin fidelity --refresh --again` records it anew";
            let file = (self.file)(seed);
            let message = format!("{}: the scenario has changed ({change}); {cure}", file.display());
            return Err(Error::Fidelity(message));
        }
        Ok(analysed)
    }
}

/// Packs a recording. The archive appears whole or not at all, and is the same for the same recording.
fn pack(recording: &Path, archive: &Path) -> Result<(), Error> {
    let directory = archive.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let output = FileOutput::open(archive, true, 0o600)?;
    let mut tar = tar::Builder::new(zstd::Encoder::new(output.file(), LEVEL)?);
    tar.mode(tar::HeaderMode::Deterministic);
    let mut files = Vec::new();
    collect(recording, recording, &mut files)?;
    files.sort();
    let (mut kept, pages) = (tempfile::NamedTempFile::new()?, files.iter().filter(|name| name.ends_with(".pages")));
    if files.iter().any(|name| name == SYMBOLS) {
        let pages = pages.map(|name| fs::read(recording.join(name))).collect::<Result<Vec<_>, _>>()?;
        kept.write_all(named(&fs::read_to_string(recording.join(SYMBOLS))?, &pages).as_bytes())?;
    }
    for name in files.iter().filter(|name| !DROPPED.contains(&name.as_str())) {
        let path = if name == SYMBOLS { kept.path().to_path_buf() } else { recording.join(name) };
        tar.append_path_with_name(path, name)?;
    }
    tar.into_inner()?.finish()?;
    Ok(output.commit()?)
}

/// The lines of `/proc/kallsyms` whose addresses are in pages of events, wherever a field may begin, each with the one
/// behind it, which tells its size.
fn named(symbols: &str, pages: &[Vec<u8>]) -> String {
    let address = |line: &str| u64::from_str_radix(line.split(' ').next()?, 16).ok();
    let mut by_address: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, line) in symbols.lines().enumerate() {
        by_address.entry(address(line).unwrap_or(0)).or_default().push(number);
    }
    let words = pages.iter().flat_map(|page| page.windows(8).step_by(4));
    let words = words.filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
    let mut kept: BTreeSet<usize> = BTreeSet::new();
    for found in words.filter(|word| by_address.contains_key(word)).collect::<BTreeSet<u64>>() {
        by_address.range(found..).take(2).for_each(|(_, numbers)| kept.extend(numbers));
    }
    let line = |(number, line): (usize, &str)| kept.contains(&number).then(|| format!("{line}\n"));
    symbols.lines().enumerate().filter_map(line).collect()
}

fn collect(root: &Path, at: &Path, files: &mut Vec<String>) -> Result<(), Error> {
    for entry in fs::read_dir(at)? {
        let path = entry?.path();
        match path.is_dir() {
            true => collect(root, &path, files)?,
            false => files.extend(path.strip_prefix(root).ok().map(|name| name.to_string_lossy().into_owned())),
        }
    }
    Ok(())
}

/// Unpacks a recording into a directory that is gone when it is dropped.
fn unpack(archive: &Path) -> Result<TempDir, Error> {
    let scratch = tempfile::tempdir()?;
    let named = |error: std::io::Error| Error::Fidelity(format!("{}: {error}", archive.display()));
    let file = File::open(archive).map_err(named)?;
    tar::Archive::new(zstd::Decoder::new(file).map_err(named)?).unpack(scratch.path()).map_err(named)?;
    Ok(scratch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_that_events_name_are_kept() {
        let symbols = "0000000000001000 T a\n0000000000001040 t b\n0000000000001040 t same\n0000000000001080 T c\n\
                       00000000000010c0 t d\t[module]\n";
        let mut page = vec![0; 4];
        page.extend(0x1040u64.to_le_bytes());
        page.extend([7; 3]);
        let kept = "0000000000001040 t b\n0000000000001040 t same\n0000000000001080 T c\n";
        assert_eq!(named(symbols, &[page]), kept);
        assert_eq!(named(symbols, &[vec![1; 5], Vec::new()]), "");
    }
}
