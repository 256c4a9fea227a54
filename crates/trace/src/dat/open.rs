//! Opening a trace.dat: the common start and the parts that both versions share.

use super::bytes::Reader;
use super::codec::Codec;
use super::meta::{FormatText, Meta, Opt};
use super::pages::{Buffer, Content, Stored};
use super::{MAGIC, id, sections, sequential};
use crate::{Error, Place, Warnings};

/// An opened trace.dat.
#[derive(Clone, Debug)]
pub struct DatFile<'a> {
    /// Name of the file, for messages.
    pub name: &'a str,
    /// 6 or 7.
    pub version: u32,
    /// Compression of sections and CPU data.
    pub codec: Codec,
    /// Everything but the buffers.
    pub meta: Meta<'a>,
    /// The buffers: the top one, where the file has it, and those of instances.
    pub buffers: Vec<Buffer<'a>>,
    /// What was wrong and stepped over.
    pub warnings: Warnings,
}

/// Most CPUs that kernels are built for.
pub(super) const MAX_CPUS: u32 = 8192;
/// Instances that a file may have: each is a set of ring buffers of its own.
pub(super) const MAX_BUFFERS: usize = 1024;
/// Options that are kept, and their bytes: those of CPU statistics are the most, a few hundred bytes per CPU.
const MAX_OPTIONS: usize = 1 << 16;
const MAX_OPTION: usize = 1 << 20;

/// Keeps an option for those who know it.
pub(super) fn keep_option(dat: &mut DatFile<'_>, id: u16, data: &[u8], at: u64) -> Result<(), Error> {
    if dat.meta.options.len() >= MAX_OPTIONS || data.len() > MAX_OPTION {
        let message = "an option beyond 65,536 of them, or longer than 1 MiB, is skipped";
        return Err(Error::at(Place::offset(dat.name, at), message));
    }
    dat.meta.options.push(Opt { id, data: data.to_vec() });
    Ok(())
}

/// True for the first bytes of a trace.dat.
pub fn is_dat(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

/// Opens the trace.dat whose bytes are `map`; `name` is for messages.
///
/// An error means that no event of the file can be read; damage that leaves some is in `warnings`.
pub fn open<'a>(name: &'a str, map: &'a [u8]) -> Result<DatFile<'a>, Error> {
    let mut reader = Reader::new(name, map, 0, false);
    if !is_dat(map) {
        return Err(Error::Unknown {
            file: name.into(),
            message: "it does not start with the magic number of a trace.dat".into(),
        });
    }
    reader.seek(MAGIC.len() as u64);
    let place = reader.place();
    let version = reader.string("the version of the file")?;
    let big_endian = match reader.u8("the byte order")? {
        0 => false,
        1 => true,
        other => return Err(Error::at(place, format!("the byte order should be 0 or 1, not {other}"))),
    };
    reader.set_big_endian(big_endian);
    let place_of_long = reader.place();
    let long_size = reader.u8("the size of a long")?;
    if !matches!(long_size, 4 | 8) {
        return Err(Error::at(place_of_long, format!("the size of a long should be 4 or 8, not {long_size}")));
    }
    let page_size = reader.u32("the page size")?;
    let meta = Meta { big_endian, long_size, page_size, ..Meta::default() };
    let (buffers, warnings) = (Vec::new(), Warnings::default());
    let mut dat = DatFile { name, version: 0, codec: Codec::None, meta, buffers, warnings };
    match version.as_str() {
        "6" => {
            dat.version = 6;
            sequential::read(&mut dat, map, &mut reader)?;
        }
        "7" => {
            dat.version = 7;
            sections::read(&mut dat, map, &mut reader)?;
        }
        other => return Err(Error::at(place, format!("unknown version `{other}` of trace.dat; supported: 6, 7"))),
    }
    dat.check()?;
    Ok(dat)
}

impl<'a> DatFile<'a> {
    /// A run of bytes of the file; a warning is added if it reaches beyond the end.
    pub(super) fn stored(&mut self, map: &'a [u8], offset: u64, len: u64, codec: Codec) -> Stored<'a> {
        let room = (map.len() as u64).saturating_sub(offset);
        if len > room {
            let name = self.name;
            let message = "the file is truncated: data of a CPU reach beyond its end";
            self.warnings.cut(|| Place::offset(name, map.len() as u64), message);
        }
        Stored { file: self.name, map, offset, len: len.min(room), codec, big_endian: self.meta.big_endian }
    }

    /// Leaves out CPUs whose data lie where those of another lie: no writer does that, and a small file could stand for
    /// any amount of data so.
    fn refuse_overlaps(&mut self) {
        let name = self.name;
        let mut all: Vec<(u64, u64, usize, usize)> = Vec::new();
        for (b, buffer) in self.buffers.iter().enumerate() {
            if let Content::Pages(cpus) = &buffer.content {
                let filled = cpus.iter().enumerate().filter(|(_, cpu)| cpu.stored.len > 0);
                all.extend(filled.map(|(c, cpu)| (cpu.stored.offset, cpu.stored.len, b, c)));
            }
        }
        all.sort_unstable();
        let (mut end, mut refused) = (0, Vec::new());
        for (offset, len, b, c) in all {
            if offset < end {
                let message = "data of a CPU that lie within those of another are skipped";
                self.warnings.cut(|| Place::offset(name, offset), message);
                refused.push((b, c));
            } else {
                end = offset.saturating_add(len);
            }
        }
        refused.sort_unstable();
        for (b, c) in refused.into_iter().rev() {
            if let Content::Pages(cpus) = &mut self.buffers[b].content {
                cpus.remove(c);
            }
        }
    }

    /// Refuses what cannot be read at all, and says what is not done.
    fn check(&mut self) -> Result<(), Error> {
        let place = Place::file(self.name);
        // Why there is no header_page says more than that its fields are missing.
        let why = self.warnings.list().first().filter(|_| self.meta.header_page.is_empty()).cloned();
        let mut refused = None;
        self.refuse_overlaps();
        for buffer in std::mem::take(&mut self.buffers) {
            match buffer.layout(&self.meta, &place) {
                Err(error) if !buffer.is_empty() && matches!(buffer.content, Content::Pages(_)) => {
                    self.warnings.add(|| place.clone(), "the pages of a buffer have an impossible layout");
                    refused = Some(error);
                }
                _ => self.buffers.push(buffer),
            }
        }
        if self.buffers.iter().all(Buffer::is_empty)
            && let Some(error) = refused
        {
            return Err(why.map_or(error, |w| Error::at(w.place, w.message)));
        }
        if self.buffers.is_empty() {
            return Err(Error::at(place, "the file has no buffer that could be read"));
        }
        if self.meta.option(id::TIME_SHIFT).is_some() {
            let message = "times are those of the guest's clock; its shift to the host's clock is not applied";
            self.warnings.add(|| place, message);
        }
        Ok(())
    }
}

/// Texts of `events/header_page` and `events/header_event`.
pub(super) fn header_info(reader: &mut Reader<'_>) -> Result<(String, String), Error> {
    reader.expect(b"header_page\0", "header_page")?;
    let size = reader.u64("the size of header_page")?;
    let page = text(reader.take(size, "header_page")?);
    reader.expect(b"header_event\0", "header_event")?;
    let size = reader.u64("the size of header_event")?;
    Ok((page, text(reader.take(size, "header_event")?)))
}

/// Formats of the system `ftrace`. Those before an error are kept.
pub(super) fn ftrace_formats(reader: &mut Reader<'_>, formats: &mut Vec<FormatText>) -> Result<(), Error> {
    for _ in 0..reader.u32("the number of ftrace formats")? {
        add(formats, reader, "ftrace")?;
    }
    Ok(())
}

/// Formats of all other systems. Those before an error are kept.
pub(super) fn event_formats(reader: &mut Reader<'_>, formats: &mut Vec<FormatText>) -> Result<(), Error> {
    for _ in 0..reader.u32("the number of trace systems")? {
        let system = reader.string("the name of a trace system")?;
        for _ in 0..reader.u32("the number of formats of a system")? {
            add(formats, reader, &system)?;
        }
    }
    Ok(())
}

/// Formats that are kept: their numbers have 16 bits.
const MAX_FORMATS: usize = 1 << 16;

fn add(formats: &mut Vec<FormatText>, reader: &mut Reader<'_>, system: &str) -> Result<(), Error> {
    if formats.len() >= MAX_FORMATS {
        return Err(Error::at(reader.place(), format!("more than {MAX_FORMATS} formats")));
    }
    formats.push(format(reader, system)?);
    Ok(())
}

fn format(reader: &mut Reader<'_>, system: &str) -> Result<FormatText, Error> {
    let size = reader.u64("the size of a format")?;
    let offset = reader.offset();
    Ok(FormatText { system: system.into(), text: text(reader.take(size, "a format")?), offset })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::pages::CpuData;
    use super::*;

    #[test]
    fn data_that_lie_within_those_of_another_are_left_out() {
        let map = [0; 1000];
        let (file, big_endian) = ("f", false);
        let cpu = |cpu, offset, len| {
            let stored = Stored { file, map: &map, offset, len, codec: Codec::None, big_endian };
            CpuData { cpu, stored }
        };
        let buffer = |cpus| {
            let (name, clock) = Default::default();
            Buffer { name, clock, page_size: 100, content: Content::Pages(cpus) }
        };
        let buffers =
            vec![buffer(vec![cpu(0, 0, 300), cpu(1, 300, 100), cpu(2, 0, 300)]), buffer(vec![cpu(0, 350, 9)])];
        let (meta, warnings) = Default::default();
        let mut dat = DatFile { name: file, version: 7, codec: Codec::None, meta, buffers, warnings };
        dat.refuse_overlaps();
        let left = |buffer: &Buffer<'_>| match &buffer.content {
            Content::Pages(cpus) => cpus.iter().map(|cpu| cpu.cpu).collect::<Vec<_>>(),
            Content::Text(_) => Vec::new(),
        };
        assert_eq!(dat.buffers.iter().map(left).collect::<Vec<_>>(), [vec![0, 1], vec![]]);
        let cuts: Vec<_> = dat.warnings.cuts().map(|cut| cut.count).collect();
        assert_eq!(cuts, [2]);
    }
}
