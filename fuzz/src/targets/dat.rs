//! trace.dat, versions 6 and 7: as bytes, and built of changed parts whose lengths and offsets are right.

use super::everything::{format_of, reported};
use crate::parts::{self, Part};
use crate::samples::{self, V6, V7};
use crate::{Random, Seen, mutate, scratch};
use mmtwin_trace::dat::{self, Codec, FormatText, Meta, Opt, Version, Writer, id};
use mmtwin_trace::input::InputFile;
use tempfile::TempDir;

/// Kinds of parts.
const HEAD: u8 = 0;
const HEADER_PAGE: u8 = 1;
const HEADER_EVENT: u8 = 2;
const FORMAT: u8 = 3;
const KALLSYMS: u8 = 4;
const PRINTK: u8 = 5;
const CMDLINES: u8 = 6;
const OPTION: u8 = 7;
const PAGES: u8 = 8;

/// Formats of an input: those that the kept pages use come first.
const FORMATS: usize = 6;

/// Files as they are.
pub fn whole() -> Vec<Vec<u8>> {
    vec![samples::file(V6, usize::MAX), samples::file(V7, usize::MAX)]
}

/// Reads and reports a file.
pub fn run_whole(input: &[u8]) -> Seen {
    scratch::file(input, |name| reported(InputFile::open(name), format_of(input)))
}

/// The parts of the sample, in both versions and byte orders.
pub fn in_parts() -> Vec<Vec<u8>> {
    let recorded = samples::recorded();
    let bytes = samples::file(V6, usize::MAX);
    let dat = dat::open("v6.dat", &bytes).expect("the sample");
    let meta = &dat.meta;
    let mut shared: Vec<Part> = vec![
        (HEADER_PAGE, meta.header_page.clone().into_bytes()),
        (HEADER_EVENT, meta.header_event.clone().into_bytes()),
        (KALLSYMS, meta.kallsyms[..meta.kallsyms.len().min(500)].to_vec()),
        (PRINTK, meta.printk[..meta.printk.len().min(500)].to_vec()),
        (CMDLINES, meta.cmdlines[..meta.cmdlines.len().min(500)].to_vec()),
    ];
    shared.extend(meta.options.iter().map(|option| (OPTION, [&option.id.to_le_bytes()[..], &option.data].concat())));
    let (ftrace, others): (Vec<_>, Vec<_>) = recorded.texts.iter().partition(|(system, _)| system == "ftrace");
    let format = |(system, text): &(String, String)| (FORMAT, format!("{system}\0{text}").into_bytes());
    shared.extend(ftrace.into_iter().take(2).chain(others.into_iter().take(FORMATS)).map(format));
    let page_size = recorded.layout.page_size;
    let page = |(cpu, pages): &(u32, Vec<u8>)| {
        let some = &pages[..pages.len().min(2 * page_size)];
        (PAGES, [&[0, *cpu as u8][..], some].concat())
    };
    shared.extend(recorded.cpus.iter().map(page));
    let head = |version: u8, codec: u8| (HEAD, head(version, codec, page_size as u32, meta.cpus));
    let seed = |head: Part| parts::join(&[&[head], &shared[..]].concat());
    vec![seed(head(6, 0)), seed(head(7, 0)), seed(head(7, 1)), seed(head(7, 2))]
}

/// Version, compression, byte order, size of long, size of a page, CPUs.
fn head(version: u8, codec: u8, page_size: u32, cpus: u32) -> Vec<u8> {
    [&[version, codec, 0, 8][..], &page_size.to_le_bytes(), &cpus.to_le_bytes()].concat()
}

/// Texts by words, the rest by bytes.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    parts::mutate(input, other, random, |kind, part, lent, random| match kind {
        HEADER_PAGE | HEADER_EVENT | FORMAT | KALLSYMS | PRINTK | CMDLINES => mutate::text(part, lent, random),
        _ => mutate::bytes(part, lent, random),
    });
}

/// Builds a file of parts, reads and reports it.
pub fn run_parts(input: &[u8]) -> Seen {
    match file_of(input) {
        Ok(file) => run_whole(&file),
        Err(error) => Seen::refused(error),
    }
}

/// The file of some parts; empty if no such file can be.
pub fn built(input: &[u8]) -> Vec<u8> {
    file_of(input).unwrap_or_default()
}

fn file_of(input: &[u8]) -> Result<Vec<u8>, mmtwin_trace::Error> {
    thread_local! {
        static SPOOLS: TempDir = scratch::memory();
    }
    let mut meta = Meta { long_size: 8, page_size: 4096, ..Meta::default() };
    let (mut version, mut pages) = (Version::V6, Vec::new());
    let text = |part: Vec<u8>| String::from_utf8_lossy(&part).into_owned();
    for (kind, part) in parts::split(input) {
        match kind {
            HEAD => {
                let byte = |at: usize| part.get(at).copied().unwrap_or(0);
                let word = |at: usize| (at..at + 4).rev().fold(0, |sum, at| sum << 8 | u32::from(byte(at)));
                let codec = [Codec::None, Codec::Zlib, Codec::Zstd][usize::from(byte(1) % 3)];
                version = if byte(0) == 7 { Version::V7(codec) } else { Version::V6 };
                (meta.big_endian, meta.long_size) = (byte(2) & 1 == 1, byte(3));
                // A file of version 6 has a table of all CPUs, and pages lie at multiples of their size.
                (meta.page_size, meta.cpus) = (word(4).min(1 << 20), word(8).min(1 << 10));
            }
            HEADER_PAGE => meta.header_page = text(part),
            HEADER_EVENT => meta.header_event = text(part),
            FORMAT => {
                let all = text(part);
                let (system, text) = all.split_once('\0').unwrap_or(("fuzz", &all));
                meta.formats.push(FormatText { system: system.into(), text: text.into(), offset: 0 });
            }
            KALLSYMS => meta.kallsyms = part.into(),
            PRINTK => meta.printk = part.into(),
            CMDLINES => meta.cmdlines = part.into(),
            OPTION => {
                let [low, high, data @ ..] = &part[..] else { continue };
                let number = u16::from_le_bytes([*low, *high]);
                // Those that the writer makes itself point to places.
                let own = [id::DONE, id::BUFFER, id::BUFFER_TEXT, id::CPUCOUNT, id::STRINGS].contains(&number);
                if !own && !(id::HEADER_INFO..=id::CMDLINES).contains(&number) {
                    meta.options.push(Opt { id: number, data: data.to_vec() });
                }
            }
            _ => pages.push(part),
        }
    }
    meta.formats.sort_by_key(|format| format.system != "ftrace");
    SPOOLS.with(|spools| {
        let mut writer = Writer::new(version, meta.big_endian, spools.path())?;
        let buffers = [writer.buffer("", "local", meta.page_size), writer.buffer("foo", "mono", meta.page_size)];
        for part in &pages {
            let [buffer, cpu, pages @ ..] = &part[..] else { continue };
            writer.pages(buffers[usize::from(*buffer & 1)], u32::from(*cpu), pages)?;
        }
        let mut file = Vec::new();
        writer.finish(&meta, "built.dat", &mut file)?;
        Ok(file)
    })
}
