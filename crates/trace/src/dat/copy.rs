//! From one trace.dat to another, page by page: the version and the compression change, not one event is decoded.

use super::meta::Meta;
use super::open::DatFile;
use super::pages::Content;
use super::write::{Version, Writer};
use crate::{Error, Warnings};
use std::io::Write;
use std::path::Path;

/// Writes the pages and everything else of `dat` as another version; `name` is that of the output, for messages,
/// and `dir` a directory for a temporary file. What could not be read of the input is in the warnings.
///
/// Buffers of text are an error: their file has no pages.
pub fn copy(
    dat: &DatFile<'_>,
    version: Version,
    dir: &Path,
    name: &str,
    out: &mut dyn Write,
) -> Result<Warnings, Error> {
    let mut warnings = Warnings::default();
    let meta: &Meta<'_> = &dat.meta;
    let mut writer = Writer::new(version, meta.big_endian, dir)?;
    for buffer in &dat.buffers {
        let Content::Pages(cpus) = &buffer.content else {
            let message = "a trace.dat that holds the text of a latency tracer cannot be copied page by page";
            return Err(Error::at(crate::Place::file(dat.name), message));
        };
        let clock = buffer.clock.clone().or_else(|| meta.clock()).unwrap_or_else(|| "local".into());
        let number = writer.buffer(&buffer.name, &clock, buffer.page_size);
        let page_size = buffer.page_size as usize;
        for cpu in cpus {
            let mut pages = cpu.stored.pages(page_size);
            loop {
                match pages.next_chunk() {
                    Ok(Some(run)) => {
                        for page in run.chunks_exact(page_size) {
                            writer.pages(number, cpu.cpu, page)?;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => warnings.add_error(dat.name, error),
                }
            }
        }
    }
    writer.finish(meta, name, out)?;
    Ok(warnings)
}
