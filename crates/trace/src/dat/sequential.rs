//! Version 6: the parts one after another, then options, then one table of CPU data per buffer.

use super::bytes::Reader;
use super::codec::Codec;
use super::id;
use super::meta::chosen_clock;
use super::open::{DatFile, MAX_BUFFERS, MAX_CPUS, event_formats, ftrace_formats, header_info, keep_option};
use super::pages::{Buffer, Content, CpuData};
use crate::Error;
use std::borrow::Cow;

/// Reads everything behind the common start.
pub(super) fn read<'a>(dat: &mut DatFile<'a>, map: &'a [u8], reader: &mut Reader<'a>) -> Result<(), Error> {
    (dat.meta.header_page, dat.meta.header_event) = header_info(reader)?;
    ftrace_formats(reader, &mut dat.meta.formats)?;
    event_formats(reader, &mut dat.meta.formats)?;
    let size = reader.u32("the size of kallsyms")?;
    dat.meta.kallsyms = Cow::Borrowed(reader.take(size.into(), "kallsyms")?);
    let size = reader.u32("the size of the printk formats")?;
    dat.meta.printk = Cow::Borrowed(reader.take(size.into(), "printk formats")?);
    let size = reader.u64("the size of the saved command lines")?;
    dat.meta.cmdlines = Cow::Borrowed(reader.take(size, "the saved command lines")?);
    dat.meta.cpus = reader.u32("the number of CPUs")?;
    let mut place = reader.place();
    let mut tag = reader.take(10, "the kind of data")?;
    let mut instances = Vec::new();
    if tag.starts_with(b"options") {
        options(dat, reader, &mut instances)?;
        place = reader.place();
        tag = reader.take(10, "the kind of data")?;
    }
    if tag.starts_with(b"latency") {
        let clock = dat.meta.clock();
        let stored = dat.stored(map, reader.offset(), reader.rest().len() as u64, Codec::None);
        let page_size = dat.meta.page_size;
        dat.buffers.push(Buffer { name: String::new(), clock, page_size, content: Content::Text(stored) });
        return Ok(());
    }
    if !tag.starts_with(b"flyrecord") {
        let found = tag.split(|&b| b == 0).next().unwrap_or_default().escape_ascii();
        return Err(Error::at(place, format!("options, latency or flyrecord expected here, found `{found}`")));
    }
    if dat.meta.cpus > MAX_CPUS {
        let message = format!("{} CPUs; kernels have at most {MAX_CPUS}", dat.meta.cpus);
        return Err(Error::at(reader.place(), message));
    }
    table(dat, map, reader, String::new());
    for (offset, name) in instances {
        reader.seek(offset);
        match reader.expect(b"flyrecord\0", "the flyrecord mark of an instance") {
            Ok(()) => table(dat, map, reader, name),
            Err(e) => dat.warnings.cut_error(dat.name, e),
        }
    }
    Ok(())
}

/// Reads the options; those that name instances go to `instances` as (offset, name).
fn options(dat: &mut DatFile<'_>, reader: &mut Reader<'_>, instances: &mut Vec<(u64, String)>) -> Result<(), Error> {
    loop {
        let option = reader.u16("an option")?;
        if option == id::DONE {
            return Ok(());
        }
        let size = reader.u32("an option")?;
        let place = reader.offset();
        let data = reader.take(size.into(), "an option")?;
        let mut value = Reader::new(dat.name, data, place, dat.meta.big_endian);
        let done = match option {
            id::BUFFER => value
                .u64("the offset of an instance")
                .and_then(|at| Ok((at, value.string("the name of an instance")?)))
                .and_then(|instance| {
                    if instances.len() >= MAX_BUFFERS {
                        return Err(Error::at(value.place(), format!("more than {MAX_BUFFERS} buffers")));
                    }
                    instances.push(instance);
                    Ok(())
                }),
            id::CPUCOUNT => value.u32("the number of CPUs").map(|n| dat.meta.cpus = n),
            _ => keep_option(dat, option, data, place),
        };
        done.unwrap_or_else(|e| dat.warnings.cut_error(dat.name, e));
    }
}

/// Reads the table of a buffer: offset and size of every CPU, then its clock.
fn table<'a>(dat: &mut DatFile<'a>, map: &'a [u8], reader: &mut Reader<'_>, name: String) {
    let mut list = Vec::new();
    let mut rows = || -> Result<Option<String>, Error> {
        for cpu in 0..dat.meta.cpus {
            let (offset, size) = (reader.u64("a CPU of a buffer")?, reader.u64("a CPU of a buffer")?);
            if size != 0 {
                list.push(CpuData { cpu, stored: dat.stored(map, offset, size, Codec::None) });
            }
        }
        if dat.meta.option(id::TRACECLOCK).is_none() {
            return Ok(None);
        }
        let size = reader.u64("the clock of a buffer")?;
        Ok(chosen_clock(&String::from_utf8_lossy(reader.take(size, "the clock of a buffer")?)))
    };
    let clock = rows();
    let page_size = dat.meta.page_size;
    let clock = clock.unwrap_or_else(|e| {
        dat.warnings.cut_error(dat.name, e);
        None
    });
    dat.buffers.push(Buffer { name, clock, page_size, content: Content::Pages(list) });
}
