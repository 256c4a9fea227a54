//! Where a report or a comparison is written: to standard output, or to the file or directory of `-o`.

use crate::args::{Output, ReportFormat};
use crate::verbs::table_files;
use crate::{Failure, terminal};
use mmtwin_trace::output::{self, FileOutput};
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Permissions of what is made of these inputs: for those who may read all of them.
pub fn mode_of<'a>(inputs: impl IntoIterator<Item = &'a (impl AsRef<Path> + ?Sized + 'a)>) -> u32 {
    inputs.into_iter().fold(0o666, |mode, input| mode & output::mode_of(input.as_ref()))
}

impl Output {
    /// Refuses a place that cannot be written, before long work; from then on text has colours only where it is seen.
    /// `other`: the verb writes another file, which `-f` may be about.
    pub fn check(&self, format: ReportFormat, other: bool) -> Result<(), Failure> {
        let usage = |message: &str| Err(Failure::Usage(message.into()));
        let directory = matches!(format, ReportFormat::Arrow | ReportFormat::Parquet);
        let Some(path) = &self.output else {
            if self.force && !other {
                return usage("-f replaces the file of -o: specify one");
            }
            if format == ReportFormat::Html && std::io::stdout().is_terminal() {
                return usage("--format html is for a file: -o FILE");
            }
            if directory {
                return usage("--format arrow and parquet write a directory: -o DIR");
            }
            return Ok(());
        };
        if directory {
            return table_files::check(path, self.force);
        }
        anstream::ColorChoice::Never.write_global();
        Ok(FileOutput::check(path, self.force)?)
    }

    /// Writes it, a file with this mode; to a terminal through a pager, if `pager` says so and it is longer.
    pub fn write(&self, text: &[u8], mode: u32, pager: bool) -> Result<(), Failure> {
        let Some(path) = &self.output else { return Ok(terminal::show(text, pager)?) };
        let output = FileOutput::open(path, self.force, mode)?;
        let failed = |error: std::io::Error| Failure::Error(format!("{}: {error}", path.display()));
        output.file().write_all(text).map_err(failed)?;
        output.commit()?;
        Ok(())
    }
}
