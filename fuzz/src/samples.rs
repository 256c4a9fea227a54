//! Good inputs, made from the files that the tests have.

use crate::parts::Part;
use mmtwin_trace::Place;
use mmtwin_trace::dat::{self, Content};
use mmtwin_trace::format::Formats;
use mmtwin_trace::ring::PageLayout;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The folder of the whole source.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file by its path from the root, decompressed, at most so many bytes of it.
pub fn file(path: &str, most: usize) -> Vec<u8> {
    let path = root().join(path);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut out = Vec::new();
    let read = match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz") => flate2::read::MultiGzDecoder::new(&bytes[..]).take(most as u64).read_to_end(&mut out),
        _ => (&bytes[..]).take(most as u64).read_to_end(&mut out),
    };
    read.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    out
}

/// All files of a folder whose names end so.
pub fn files(folder: &str, ending: &str, most: usize) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let names = entries
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names.iter().map(|name| file(&format!("{folder}/{name}"), most)).collect()
}

/// A trace.dat of version 6.
pub const V6: &str = "crates/trace/tests/data/vmscan-v6.dat";
/// The same events in version 7, compressed.
pub const V7: &str = "crates/trace/tests/data/vmscan-v7-zstd.dat";

/// What the trace.dat of version 6 holds.
pub struct Recorded {
    /// Pages by CPU.
    pub cpus: Vec<(u32, Vec<u8>)>,
    /// System and text of each format.
    pub texts: Vec<(String, String)>,
    /// The formats.
    pub formats: Formats,
    /// How pages are laid out.
    pub layout: PageLayout,
    /// Text of `header_page`.
    pub header_page: String,
    /// Text of `saved_cmdlines`.
    pub cmdlines: Vec<u8>,
}

/// Reads the sample.
pub fn recorded() -> Recorded {
    let bytes = file(V6, usize::MAX);
    let dat = dat::open("v6.dat", &bytes).expect("the sample");
    let buffer = dat.buffers.iter().find(|buffer| !buffer.is_empty()).expect("a buffer");
    let layout = buffer.layout(&dat.meta, &Place::file("v6.dat")).expect("a layout");
    let mut formats = Formats::new(dat.meta.big_endian, dat.meta.kernel_long_size());
    for f in &dat.meta.formats {
        formats.add(&f.system, &f.text, &Place::offset("v6.dat", f.offset)).expect("a format");
    }
    let mut cpus = Vec::new();
    let Content::Pages(all) = &buffer.content else { panic!("a sample of pages") };
    for cpu in all {
        let (mut runs, mut pages) = (cpu.stored.pages(layout.page_size), Vec::new());
        while let Some(run) = runs.next_chunk().expect("pages") {
            pages.extend_from_slice(&run);
        }
        cpus.push((cpu.cpu, pages));
    }
    cpus.retain(|(_, pages)| !pages.is_empty());
    Recorded {
        cpus,
        texts: dat.meta.formats.iter().map(|f| (f.system.clone(), f.text.clone())).collect(),
        formats,
        layout,
        header_page: dat.meta.header_page.clone(),
        cmdlines: dat.meta.cmdlines.to_vec(),
    }
}

/// Files of a stored recording of the lab, by name.
pub fn stored(path: &str) -> BTreeMap<String, Vec<u8>> {
    let packed = file(path, usize::MAX);
    let tar = zstd::decode_all(&packed[..]).expect("a stored recording");
    let mut archive = tar::Archive::new(&tar[..]);
    let mut files = BTreeMap::new();
    for entry in archive.entries().expect("a tar archive") {
        let mut entry = entry.expect("an entry");
        if entry.header().entry_type().is_file() {
            let name = entry.path().expect("a name").to_string_lossy().trim_start_matches("./").to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("a file");
            files.insert(name, bytes);
        }
    }
    files
}

/// Files below a directory, by their paths from there.
pub fn folder(top: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut open) = (BTreeMap::new(), vec![top.to_path_buf()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
                files.insert(name, std::fs::read(&path).expect("a file"));
            }
        }
    }
    files
}

/// A part of a file: its name, a NUL, its bytes; all files are of one kind.
pub fn named(files: BTreeMap<String, Vec<u8>>) -> Vec<Part> {
    files.into_iter().map(|(name, bytes)| (0, [name.as_bytes(), b"\0", &bytes].concat())).collect()
}

/// The files that such parts stand for; a name that no recorder gives is omitted.
pub fn unnamed(parts: Vec<Part>) -> BTreeMap<String, Vec<u8>> {
    let file = |(_, part): Part| {
        let end = part.iter().position(|&byte| byte == 0)?;
        let name = String::from_utf8(part[..end].to_vec()).ok()?;
        let plain = |piece: &str| !piece.is_empty() && piece.len() < 100 && piece != "." && piece != "..";
        (name.len() < 300 && name.split('/').all(plain) && name.split('/').count() < 8)
            .then(|| (name, part[end + 1..].to_vec()))
    };
    let all: BTreeMap<String, Vec<u8>> = parts.into_iter().filter_map(file).collect();
    // A file cannot be the folder of another.
    let is_folder =
        |name: &str| all.keys().any(|other| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')));
    all.iter().filter(|(name, _)| !is_folder(name)).map(|(name, bytes)| (name.clone(), bytes.clone())).collect()
}
