//! The sections of version 7: header, decompression, and the chain of options that points to them.

use super::bytes::Reader;
use super::codec::{Codec, Expander};
use super::open::{DatFile, MAX_BUFFERS, MAX_CPUS, event_formats, ftrace_formats, header_info, keep_option};
use super::pages::{Buffer, Content, CpuData};
use super::{COMPRESSED, id, recover};
use crate::{Error, Place};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A section: its flags and its body in the file.
struct Section<'a> {
    flags: u16,
    /// Offset of the header.
    offset: u64,
    body: &'a [u8],
}

/// Reads everything behind the common start.
pub(super) fn read<'a>(dat: &mut DatFile<'a>, map: &'a [u8], reader: &mut Reader<'_>) -> Result<(), Error> {
    let place = reader.place();
    let name = reader.string("the name of the compression")?;
    reader.string("the version of the compression")?;
    let mut next = reader.u64("the offset of the options")?;
    let Some(codec) = Codec::of_name(&name) else {
        return Err(Error::at(place, format!("unknown compression `{name}`; supported: none, zlib, zstd")));
    };
    dat.codec = codec;
    let first = reader.offset();
    let mut chain = Chain::default();
    while next != 0 {
        let result = if chain.options.insert(next) {
            options(dat, map, next, &mut chain)
        } else {
            Err(Error::at(Place::offset(dat.name, next), "the options sections form a loop"))
        };
        match result {
            Ok(n) => next = n,
            Err(e) if dat.meta.header_page.is_empty() => return Err(e),
            Err(e) => {
                dat.warnings.cut_error(dat.name, e);
                recover::buffers(dat, map, first, &chain.buffers);
                break;
            }
        }
    }
    Ok(())
}

/// What the options named so far.
#[derive(Default)]
struct Chain {
    /// Offsets of options sections.
    options: BTreeSet<u64>,
    /// Kinds of sections. Each is read once, so that a damaged file cannot have one decompressed over and over.
    parts: BTreeSet<u16>,
    /// Offsets of sections of buffers.
    buffers: BTreeSet<u64>,
}

/// Reads the header of section number `id` at `offset`; what is cut off of its body is a warning.
fn section<'a>(dat: &mut DatFile<'a>, map: &'a [u8], offset: u64, id: u16) -> Result<Section<'a>, Error> {
    let mut reader = Reader::new(dat.name, map, 0, dat.meta.big_endian);
    reader.seek(offset);
    let what = "the header of a section";
    let (found, flags) = (reader.u16(what)?, reader.u16(what)?);
    reader.u32(what)?;
    let size = reader.u64(what)?;
    if found != id {
        let message = format!("expected section {id} here, found {found}");
        return Err(Error::at(Place::offset(dat.name, offset), message));
    }
    let rest = reader.rest();
    let body = usize::try_from(size).ok().and_then(|n| rest.get(..n));
    if body.is_none() {
        dat.warnings.cut(|| Place::offset(dat.name, offset), "the file ends inside a section");
    }
    Ok(Section { flags, offset, body: body.unwrap_or(rest) })
}

/// The contents of a section, decompressed if need be.
fn contents<'a>(dat: &DatFile<'_>, section: &Section<'a>) -> Result<Cow<'a, [u8]>, Error> {
    if section.flags & COMPRESSED == 0 {
        return Ok(Cow::Borrowed(section.body));
    }
    let mut reader = Reader::new(dat.name, section.body, section.offset + 16, dat.meta.big_endian);
    let packed = reader.u32("a compressed section")?;
    let size = reader.u32("a compressed section")?;
    let bytes = reader.take(packed.into(), "a compressed section")?;
    let mut expander = Expander::new(dat.codec).map_err(|e| Error::io(dat.name, e))?;
    let bytes = expander.expand(bytes, size as usize);
    bytes.map(Cow::Owned).map_err(|message| Error::at(Place::offset(dat.name, section.offset), message))
}

/// Reads a section of options and what they point to; gives the offset of the next one, 0 at the end.
fn options<'a>(dat: &mut DatFile<'a>, map: &'a [u8], offset: u64, chain: &mut Chain) -> Result<u64, Error> {
    let section = section(dat, map, offset, id::DONE)?;
    let data = contents(dat, &section)?;
    let (name, big_endian) = (dat.name, dat.meta.big_endian);
    let mut reader = match data {
        Cow::Borrowed(bytes) => Reader::new(name, bytes, offset + 16, big_endian),
        Cow::Owned(ref bytes) => Reader::decompressed(name, bytes, offset, big_endian),
    };
    loop {
        let place = reader.offset();
        let head = reader.u16("an option").and_then(|id| Ok((id, reader.u32("an option")?)));
        let (option, value) = head.and_then(|(id, size)| Ok((id, reader.take(size.into(), "an option")?)))?;
        let mut value = Reader::new(name, value, place + 6, big_endian);
        let done = match option {
            id::DONE => return value.u64("the offset of the next options"),
            id::HEADER_INFO..=id::CMDLINES if chain.parts.insert(option) => {
                value.u64("the offset of a section").and_then(|at| part(dat, map, option, at))
            }
            id::HEADER_INFO..=id::CMDLINES => Err(Error::at(value.place(), "duplicate section")),
            id::BUFFER | id::BUFFER_TEXT => buffer(dat, map, option, &mut value, chain),
            id::CPUCOUNT => value.u32("the number of CPUs").map(|n| dat.meta.cpus = n.min(MAX_CPUS)),
            // BTF_FILE and MODULES_FILE point to sections as well: nothing to copy without those.
            id::STRINGS | 23 | 25 => Ok(()),
            _ => keep_option(dat, option, value.rest(), place),
        };
        done.unwrap_or_else(|e| dat.warnings.cut_error(dat.name, e));
    }
}

/// Reads one of the sections 16 to 21.
fn part<'a>(dat: &mut DatFile<'a>, map: &'a [u8], id: u16, offset: u64) -> Result<(), Error> {
    let section = section(dat, map, offset, id)?;
    let data = contents(dat, &section)?;
    let (name, big_endian) = (dat.name, dat.meta.big_endian);
    let mut reader = match &data {
        Cow::Borrowed(bytes) => Reader::new(name, bytes, offset + 16, big_endian),
        Cow::Owned(bytes) => Reader::decompressed(name, bytes, offset, big_endian),
    };
    let (skip, what) = match id {
        id::HEADER_INFO => {
            (dat.meta.header_page, dat.meta.header_event) = header_info(&mut reader)?;
            return Ok(());
        }
        id::FTRACE_EVENTS => return ftrace_formats(&mut reader, &mut dat.meta.formats),
        id::EVENT_FORMATS => return event_formats(&mut reader, &mut dat.meta.formats),
        id::KALLSYMS => (4, "kallsyms"),
        id::PRINTK => (4, "printk formats"),
        _ => (8, "the saved command lines"),
    };
    let size = if skip == 4 { reader.u32(what)?.into() } else { reader.u64(what)? };
    let len = reader.take(size, what)?.len();
    let text = match data {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[skip..skip + len]),
        Cow::Owned(mut bytes) => {
            bytes.truncate(skip + len);
            bytes.drain(..skip);
            Cow::Owned(bytes)
        }
    };
    match id {
        id::KALLSYMS => dat.meta.kallsyms = text,
        id::PRINTK => dat.meta.printk = text,
        _ => dat.meta.cmdlines = text,
    }
    Ok(())
}

/// Reads a BUFFER or BUFFER_TEXT option.
fn buffer<'a>(
    dat: &mut DatFile<'a>,
    map: &'a [u8],
    option: u16,
    value: &mut Reader<'_>,
    chain: &mut Chain,
) -> Result<(), Error> {
    let at = value.u64("the offset of a buffer")?;
    chain.buffers.insert(at);
    let name = value.string("the name of a buffer")?;
    let clock = Some(value.string("the clock of a buffer")?).filter(|c| !c.is_empty());
    let header = section(dat, map, at, option)?;
    let codec = if header.flags & COMPRESSED == 0 { Codec::None } else { dat.codec };
    if option == id::BUFFER_TEXT {
        let stored = dat.stored(map, at + 16, header.body.len() as u64, codec);
        let page_size = dat.meta.page_size;
        dat.buffers.push(Buffer { name, clock, page_size, content: Content::Text(stored) });
        return Ok(());
    }
    let page_size = value.u32("the page size of a buffer")?;
    let cpus = value.u32("the number of CPUs of a buffer")?;
    if cpus > MAX_CPUS {
        let message = format!("a buffer of {cpus} CPUs; kernels have at most {MAX_CPUS}");
        return Err(Error::at(value.place(), message));
    }
    if dat.buffers.len() >= MAX_BUFFERS {
        return Err(Error::at(value.place(), format!("more than {MAX_BUFFERS} buffers")));
    }
    let mut list = Vec::new();
    let mut all = || -> Result<(), Error> {
        for _ in 0..cpus {
            let what = "a CPU of a buffer";
            let (cpu, offset, size) = (value.u32(what)?, value.u64(what)?, value.u64(what)?);
            if cpu >= MAX_CPUS {
                let message = "a CPU from 8192 on, which no kernel has, is skipped";
                dat.warnings.cut(|| value.place(), message);
                continue;
            }
            list.push(CpuData { cpu, stored: dat.stored(map, offset, size, codec) });
        }
        Ok(())
    };
    let result = all();
    dat.buffers.push(Buffer { name, clock, page_size, content: Content::Pages(list) });
    result
}
