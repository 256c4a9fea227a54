//! CPU data on their way into a file: pages come in any order of CPUs, the file wants them CPU by CPU.
//!
//! Pages are gathered into runs of about 40 KiB per CPU (as many as trace-cmd compresses together), which are
//! compressed and appended to one temporary file without a name. Memory is one run per CPU and 16 bytes per run.

use super::build::number;
use super::codec::Codec;
use crate::Error;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes of pages that are written, and compressed, together.
const RUN: usize = 40 << 10;

/// The temporary file.
pub(super) struct Spool {
    file: BufWriter<File>,
    /// Directory, for messages.
    name: String,
    at: u64,
    codec: Codec,
    big_endian: bool,
}

/// The pages of one CPU.
#[derive(Default)]
pub(super) struct Lane {
    /// What is not yet in the temporary file.
    run: Vec<u8>,
    /// (offset, length) in the temporary file; compressed runs with their heads.
    runs: Vec<(u64, u64)>,
}

impl Lane {
    /// Bytes in the temporary file.
    pub fn len(&self) -> u64 {
        self.runs.iter().map(|(_, len)| len).sum()
    }
    /// Number of runs, which are chunks if compressed.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }
}

impl Spool {
    /// A spool in directory `dir`.
    pub fn new(dir: &Path, codec: Codec, big_endian: bool) -> Result<Spool, Error> {
        let name = dir.display().to_string();
        let file = tempfile::tempfile_in(dir).map_err(|e| Error::io(&name, e))?;
        Ok(Spool { file: BufWriter::with_capacity(1 << 18, file), name, at: 0, codec, big_endian })
    }

    /// Adds whole pages.
    pub fn add(&mut self, lane: &mut Lane, pages: &[u8]) -> Result<(), Error> {
        if lane.run.len() + pages.len() > RUN {
            self.flush(lane)?;
        }
        lane.run.extend_from_slice(pages);
        Ok(())
    }

    /// Writes out what the lane has gathered.
    pub fn flush(&mut self, lane: &mut Lane) -> Result<(), Error> {
        if lane.run.is_empty() {
            return Ok(());
        }
        let len = self.append(&lane.run).map_err(|e| Error::io(&self.name, e))?;
        lane.runs.push((self.at, len));
        self.at += len;
        lane.run.clear();
        Ok(())
    }

    fn append(&mut self, run: &[u8]) -> std::io::Result<u64> {
        if self.codec == Codec::None {
            self.file.write_all(run)?;
            return Ok(run.len() as u64);
        }
        let packed = self.codec.compress(run)?;
        self.file.write_all(&number(packed.len() as u64, 4, self.big_endian))?;
        self.file.write_all(&number(run.len() as u64, 4, self.big_endian))?;
        self.file.write_all(&packed)?;
        Ok(packed.len() as u64 + 8)
    }

    /// Copies a lane, which must have been flushed, to `out`.
    pub fn copy(&mut self, lane: &Lane, out: &mut dyn Write) -> std::io::Result<()> {
        self.file.flush()?;
        let file = self.file.get_mut();
        for (offset, len) in &lane.runs {
            file.seek(SeekFrom::Start(*offset))?;
            let copied = std::io::copy(&mut (&*file).take(*len), out)?;
            if copied != *len {
                return Err(std::io::Error::other("the temporary file was truncated"));
            }
        }
        Ok(())
    }
}
