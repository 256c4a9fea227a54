//! Opening a trace.dat: the common start and the parts that both versions share.

use super::bytes::Reader;
use super::codec::Codec;
use super::meta::{FormatText, Meta};
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
        return Err(Error::Unknown { file: name.into(), message: "it does not begin as a trace.dat does".into() });
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
    let long_size = reader.u8("the size of a long")?;
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
        other => return Err(Error::at(place, format!("version `{other}` of trace.dat is not known; 6 and 7 are"))),
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
            let message = "the file is cut: data of a CPU reach beyond its end";
            self.warnings.add(|| Place::offset(name, map.len() as u64), message);
        }
        Stored { file: self.name, map, offset, len: len.min(room), codec, big_endian: self.meta.big_endian }
    }

    /// Refuses what cannot be read at all, and says what is not done.
    fn check(&mut self) -> Result<(), Error> {
        let place = Place::file(self.name);
        // Why there is no header_page says more than that its fields are missing.
        let why = self.warnings.list().first().filter(|_| self.meta.header_page.is_empty()).cloned();
        let mut refused = None;
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
        formats.push(format(reader, "ftrace")?);
    }
    Ok(())
}

/// Formats of all other systems. Those before an error are kept.
pub(super) fn event_formats(reader: &mut Reader<'_>, formats: &mut Vec<FormatText>) -> Result<(), Error> {
    for _ in 0..reader.u32("the number of trace systems")? {
        let system = reader.string("the name of a trace system")?;
        for _ in 0..reader.u32("the number of formats of a system")? {
            formats.push(format(reader, &system)?);
        }
    }
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
