//! Conversion: what was read of a damaged trace.dat is written as text and as a trace.dat, and that can be read again.

use super::dat;
use super::everything::Everything;
use crate::{Seen, hash, scratch};
use mmtwin_trace::dat::{Codec, DatWriter, Version};
use mmtwin_trace::input::{InputFile, Options};
use mmtwin_trace::write::{Columns, Header, TextStyle, TextWriter};
use mmtwin_trace::{Error, Outcome};

/// Converts the file of some parts to text and to another trace.dat.
pub fn run(input: &[u8]) -> Seen {
    let file = dat::built(input);
    let version = match input.len() % 4 {
        0 => Version::V6,
        1 => Version::V7(Codec::None),
        2 => Version::V7(Codec::Zlib),
        _ => Version::V7(Codec::Zstd),
    };
    scratch::file(&file, |name| match (lines(name), again(name, version)) {
        (Ok(lines), Ok(written)) => Seen::accepted(hash(&lines) ^ hash(&written)),
        (Err(error), _) | (_, Err(error)) => Seen::refused(error),
    })
}

fn lines(name: &str) -> Result<Vec<u8>, Error> {
    let mut file = InputFile::open(name)?;
    let input = file.input(&Options::default())?;
    let columns = Columns::of_release(input.source.kernel.as_deref());
    let style = TextStyle::Kernel(columns, Some(Header { entries: None, cpus: input.source.cpus }));
    let mut writer = TextWriter::new(Vec::new(), "lines", style, input.formats.clone());
    input.read(&mut writer)?;
    writer.close()
}

/// Writes a trace.dat; one that was written can be read.
fn again(name: &str, version: Version) -> Result<Vec<u8>, Error> {
    let written = {
        let mut file = InputFile::open(name)?;
        let input = file.input(&Options::default())?;
        let spools = scratch::memory();
        let mut writer = DatWriter::new(version, input.origin.clone(), spools.path())?;
        input.read(&mut writer)?;
        let mut written = Vec::new();
        writer.close("written.dat", &mut written)?;
        written
    };
    if let Err(error) = read(&written) {
        panic!("what was written cannot be read: {error}");
    }
    Ok(written)
}

fn read(written: &[u8]) -> Result<Outcome, Error> {
    scratch::file(written, |name| InputFile::open(name)?.input(&Options::default())?.read(&mut Everything::default()))
}
