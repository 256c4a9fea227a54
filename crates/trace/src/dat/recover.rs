//! Version 7 files that end before their tables: trace-cmd writes the table of a buffer behind its data, so a file
//! that was cut has data that nothing points to.
//!
//! The sections follow each other, so those of buffers are found by walking. Within one, compressed data have their
//! number of chunks in front and each CPU begins on a page; plain pages of the next CPU begin where the page times
//! go back. Which CPUs (and which instance) they are follows from the CPUSTAT options, written before: they name the
//! CPUs that had events, and the data are in the same order. Without them CPUs are counted from 0. Either way there
//! is a warning. Validated with files of trace-cmd 3.1.6 cut at many places.

use super::COMPRESSED;
use super::bytes::Reader;
use super::codec::Codec;
use super::id;
use super::open::{DatFile, MAX_CPUS};
use super::pages::{Buffer, Content, CpuData};
use crate::{Error, Place};
use std::collections::BTreeSet;

/// Adds the buffers whose sections are behind `first` and not in `known`.
pub(super) fn buffers<'a>(dat: &mut DatFile<'a>, map: &'a [u8], first: u64, known: &BTreeSet<u64>) {
    let mut active = active(dat).into_iter();
    let mut reader = Reader::new(dat.name, map, 0, dat.meta.big_endian);
    let mut at = first;
    while let Ok((id, flags, size)) = header(&mut reader, at) {
        let body = at + 16;
        let end = body.saturating_add(size).min(map.len() as u64);
        if id == id::BUFFER {
            let codec = if flags & COMPRESSED == 0 { Codec::None } else { dat.codec };
            let starts = match codec {
                Codec::None => plain(dat, map, body, end),
                _ => compressed(dat, map, body, end),
            };
            let owner = if starts.is_empty() { None } else { active.next() };
            if !starts.is_empty() && !known.contains(&at) {
                let buffer = buffer(dat, map, codec, &starts, end, owner);
                dat.buffers.push(buffer);
            }
        }
        if end == map.len() as u64 {
            break;
        }
        at = end;
    }
}

/// Id, flags and size of the section at `at`.
fn header(reader: &mut Reader<'_>, at: u64) -> Result<(u16, u16, u64), Error> {
    reader.seek(at);
    let what = "the header of a section";
    let (id, flags) = (reader.u16(what)?, reader.u16(what)?);
    reader.u32(what)?;
    Ok((id, flags, reader.u64(what)?))
}

/// Instances and those of their CPUs that had events, in the order of the CPUSTAT options.
fn active(dat: &DatFile<'_>) -> Vec<(String, Vec<u32>)> {
    let mut list: Vec<(String, Vec<u32>)> = Vec::new();
    for stat in dat.meta.cpu_stats() {
        if stat.entries.unwrap_or(0) == 0 && stat.read.unwrap_or(0) == 0 {
            continue;
        }
        match list.last_mut() {
            Some((name, cpus)) if *name == stat.buffer => cpus.push(stat.cpu),
            _ => list.push((stat.buffer, vec![stat.cpu])),
        }
    }
    list
}

fn buffer<'a>(
    dat: &mut DatFile<'a>,
    map: &'a [u8],
    codec: Codec,
    starts: &[u64],
    end: u64,
    owner: Option<(String, Vec<u32>)>,
) -> Buffer<'a> {
    let name = dat.name;
    let place = || Place::offset(name, starts[0]);
    let (instance, cpus) = match owner {
        Some((instance, cpus)) if cpus.len() >= starts.len() => {
            let message = "the table of a buffer is truncated; its CPUs are taken from the CPU statistics";
            dat.warnings.cut(place, message);
            (instance, cpus)
        }
        _ => {
            dat.warnings.cut(place, "the table of a buffer is truncated; its CPUs are counted from 0");
            (String::new(), (0..starts.len() as u32).collect())
        }
    };
    let ends = starts.iter().skip(1).copied().chain([end]);
    let data = starts.iter().zip(ends).zip(cpus).map(|((start, end), cpu)| {
        let stored = dat.stored(map, *start, end - start, codec);
        CpuData { cpu, stored }
    });
    let content = Content::Pages(data.collect());
    Buffer { name: instance, clock: dat.meta.clock(), page_size: dat.meta.page_size, content }
}

/// Where the data of each CPU begin, compressed.
fn compressed(dat: &DatFile<'_>, map: &[u8], body: u64, end: u64) -> Vec<u64> {
    let page = u64::from(dat.meta.page_size.max(1));
    let mut reader = Reader::new(dat.name, map, 0, dat.meta.big_endian);
    let mut starts = Vec::new();
    let mut at = body.next_multiple_of(page);
    while at < end && starts.len() < MAX_CPUS as usize {
        reader.seek(at);
        let mut chunks = || -> Result<u32, Error> {
            let count = reader.u32("chunks")?;
            for _ in 0..count {
                let size = reader.u32("a chunk")?;
                reader.u32("a chunk")?;
                reader.take(size.into(), "a chunk")?;
            }
            Ok(count)
        };
        match chunks() {
            // Nothing but padding is left.
            Ok(0) => break,
            Ok(_) => starts.push(at),
            // The cut is in this CPU's data.
            Err(_) => {
                starts.push(at);
                break;
            }
        }
        at = reader.offset().next_multiple_of(page);
    }
    starts
}

/// Where the data of each CPU begin, plain.
fn plain(dat: &DatFile<'_>, map: &[u8], body: u64, end: u64) -> Vec<u64> {
    let page = u64::from(dat.meta.page_size.max(16));
    let mut reader = Reader::new(dat.name, map, 0, dat.meta.big_endian);
    let mut starts = Vec::new();
    let mut last = u64::MAX;
    let mut at = body.next_multiple_of(page);
    while at < end {
        reader.seek(at);
        let Ok(time) = reader.u64("the time of a page") else { break };
        if time < last || starts.is_empty() {
            starts.push(at);
            if starts.len() >= MAX_CPUS as usize {
                break;
            }
        }
        last = time;
        at = at.saturating_add(page);
    }
    starts
}
