//! `mmtwin report --fleet`: many recordings on one page.

use crate::args::{Format, Printing, Report};
use crate::{Failure, output, parallel, terminal};
use mmtwin_report::fleet::{self, Fleet, Unreadable};
use mmtwin_report::screen;
use mmtwin_trace::output::FileOutput;
use std::path::PathBuf;

/// Runs it. Exit status 1 if a recording could not be read; the others are reported all the same.
pub fn run(arguments: &Report, printing: Option<&Printing>) -> Result<i32, Failure> {
    let printing = printing.ok_or_else(|| {
        Failure::Usage("--fleet has --format table, json and csv; --index FILE writes Parquet".into())
    })?;
    let options = arguments.reading.options()?;
    let filter = arguments.filtering.filter()?;
    if let Some(index) = &arguments.index {
        FileOutput::check(index, arguments.output.force)?;
    }
    let mut paths: Vec<PathBuf> = arguments.inputs.iter().map(PathBuf::from).collect();
    if paths.is_empty() {
        paths.push(".".into());
    }
    let found = mmtwin::fleet::find(&paths)?;
    if found.is_empty() {
        let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::Error(format!("{}: no recording and no trace in it", names.join(", "))));
    }
    let read = parallel::each(&found, |path| Ok(mmtwin::fleet::summary(path, &options, &filter)))?;
    let (mut recordings, mut unreadable) = (Vec::new(), Vec::new());
    for (path, result) in found.iter().zip(read) {
        match result {
            Ok(summary) => recordings.push(summary),
            Err(error) => unreadable.push(Unreadable { name: path.display().to_string(), error: error.to_string() }),
        }
    }
    let fleet = Fleet::new(recordings, unreadable);
    let mode = output::mode_of(&found);
    if let Some(index) = &arguments.index {
        let output = FileOutput::open(index, arguments.output.force, mode)?;
        mmtwin::fleet::write_index(&fleet, output.file())
            .map_err(|error| Failure::Error(format!("{}: {error}", index.display())))?;
        output.commit()?;
    }
    let mut text = Vec::new();
    match printing.format {
        Format::Json => fleet::write_json(&fleet, &mut text)?,
        Format::Csv => fleet::write_csv(&fleet, &mut text)?,
        Format::Table => {
            let width = terminal::screen_width().max(screen::NARROWEST);
            for line in fleet::lines(&fleet, width, arguments.amount.all) {
                text.extend_from_slice(line.as_bytes());
                text.push(b'\n');
            }
        }
    }
    arguments.output.write(&text, mode, !arguments.amount.no_pager)?;
    Ok(i32::from(!fleet.unreadable.is_empty()))
}
