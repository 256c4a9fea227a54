//! A recording written once more, without names.

use super::names::{Kind, Names};
use crate::output::ours::{DIRECTORIES, FILES, MARKER};
use crate::recording::{Recording, Writer, entries, leaf};
use crate::{Error, Warnings};
use aho_corasick::{AhoCorasick, MatchKind};
use mmtwin_event::counters::Row;
use std::fs;
use std::io::Write as _;
use std::path::Path;

const LAB: &str = "lab.json";
/// Shorter names are parts of too many words to be looked for.
const LOOKED_FOR: usize = 4;

/// What scrubbing did.
#[derive(Debug)]
pub struct Scrubbed {
    /// Who is called what now.
    pub names: Names,
    /// Names in the input's directory that are no part of a recording, and were not copied.
    pub not_copied: Vec<String>,
    /// A name that still stands somewhere in the output, as a whole word, and in which file. Event formats and symbols
    /// are not searched.
    pub still_there: Vec<(String, String)>,
    /// What was wrong with the input and stepped over.
    pub warnings: Warnings,
}

/// Writes the recording `input` to `output` with pseudonyms, those of `names` and new ones. With `force` a recording
/// that is there is replaced.
pub fn scrub(input: &Path, output: &Path, names: Names, force: bool) -> Result<Scrubbed, Error> {
    let recording = Recording::open(input)?;
    let mut warnings = recording.warnings.clone();
    let mut writer = Writer::create(output, force)?;
    let tracing = recording.manifest.tracing.as_ref();
    let (big_endian, long_size) = tracing.map_or((false, 8), |t| (t.big_endian, t.long_size));
    writer.hide_names(names, big_endian, long_size);
    writer.manifest(&recording.manifest)?;
    formats(&input.join("formats"), &mut writer)?;
    if let Some(run) = &recording.run {
        writer.run(run)?;
    }
    writer.tasks(recording.tasks())?;
    counters(&recording, &mut writer, &mut warnings)?;
    pages(&recording, &mut writer)?;
    if let Some(state) = &recording.state {
        writer.state(state)?;
    }
    if let Some(results) = &recording.results {
        writer.results(results)?;
    }
    if let Ok(text) = fs::read(input.join(LAB)) {
        writer.lab(&text)?;
    }
    let names = writer.names().cloned().unwrap_or_default();
    match &recording.end {
        Some(end) => _ = writer.finish(end.clone())?,
        // Like its input it has no end, but whole files.
        None => writer.stop()?,
    }
    let still_there = still_there(output, &names)?;
    Ok(Scrubbed { names, not_copied: not_copied(input)?, still_there, warnings })
}

/// Texts of the kernel. Formats come before pages, whose texts are found by them.
fn formats(directory: &Path, writer: &mut Writer) -> Result<(), Error> {
    for path in entries(directory)? {
        if path.is_dir() {
            for event in entries(&path)? {
                writer.format(&leaf(&path), &leaf(&event), &read(&event)?)?;
            }
        } else {
            writer.text(&leaf(&path), &read(&path)?)?;
        }
    }
    Ok(())
}

/// Samples of all sources.
fn counters(recording: &Recording, writer: &mut Writer, warnings: &mut Warnings) -> Result<(), Error> {
    let mut rows = recording.counters(warnings).peekable();
    while let Some(first) = rows.next() {
        let (source, at) = (first.source.clone(), first.at);
        let row = |r: crate::recording::SampledRow| Row { key: r.key, names: r.names.to_vec(), values: r.values };
        let mut sample = vec![row(first)];
        while let Some(next) = rows.next_if(|next| next.source == source && next.at == at) {
            sample.push(row(next));
        }
        writer.counters(&source, at, &sample)?;
    }
    Ok(())
}

/// Whole sub-buffers of all CPUs.
fn pages(recording: &Recording, writer: &mut Writer) -> Result<(), Error> {
    let (Some(tracing), Some(layout)) = (&recording.manifest.tracing, recording.layout()) else { return Ok(()) };
    let mut streams = recording.streams();
    for &cpu in &tracing.cpus {
        let mut file = writer.pages(cpu)?;
        let Some(stream) = streams.iter_mut().find(|stream| stream.cpu == cpu) else { continue };
        while let Some(chunk) = stream.pages.next_chunk()? {
            let mut run = chunk.into_owned();
            writer.prepare_pages(&mut run, layout);
            file.write_all(&run).map_err(|e| Error::io(&format!("pages of CPU {cpu}"), e))?;
        }
    }
    Ok(())
}

/// Names that still stand in the output: they were given as something else than what they were replaced as.
fn still_there(output: &Path, names: &Names) -> Result<Vec<(String, String)>, Error> {
    let looked_for: Vec<&str> = names
        .iter()
        .filter(|(kind, name, _)| !matches!(kind, Kind::Symbol | Kind::Module) && name.len() >= LOOKED_FOR)
        .map(|(_, name, _)| name)
        .collect();
    let Ok(search) = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&looked_for) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    let directories = [output.to_path_buf(), output.join("cpu"), output.join("counters")];
    let files = directories.iter().map(|d| entries(d)).collect::<Result<Vec<_>, _>>()?;
    for path in files.into_iter().flatten().filter(|path| path.is_file()) {
        let bytes = read(&path)?;
        let is_part = |at: Option<&u8>| at.is_some_and(|&b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        for hit in search.find_iter(&bytes) {
            let before = hit.start().checked_sub(1).and_then(|at| bytes.get(at));
            let name = looked_for[hit.pattern().as_usize()];
            if !is_part(before) && !is_part(bytes.get(hit.end())) {
                let file = path.strip_prefix(output).unwrap_or(&path);
                found.push((name.to_string(), file.to_string_lossy().into_owned()));
            }
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn not_copied(input: &Path) -> Result<Vec<String>, Error> {
    let known = |name: &str| FILES.contains(&name) || DIRECTORIES.contains(&name) || name == MARKER;
    Ok(entries(input)?.iter().map(|path| leaf(path)).filter(|name| !known(name)).collect())
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|e| Error::io(&path.to_string_lossy(), e))
}
