//! `mmtwin reference DIR`: the pages of `docs/reference` that are made from definitions. A hidden verb for those who
//! change the definitions; a test compares the pages with what it writes.

mod commands;
mod keys;
mod tables;

use crate::Failure;
use crate::args::Reference;
use mmtwin_trace::output::FileOutput;

/// Writes the pages.
pub fn run(arguments: &Reference) -> Result<i32, Failure> {
    let pages = [("commands.md", commands::page()), ("scenario-keys.md", keys::page()), ("tables.md", tables::page())];
    for (name, text) in pages {
        FileOutput::open(&arguments.directory.join(name), true, 0o666)?.write(text.as_bytes())?;
    }
    Ok(0)
}

/// The start of a page.
fn head(title: &str, what: &str) -> String {
    format!("# {title}\n\n<!-- Written by `make reference`. -->\n\n{what}\n")
}

/// A text as it may stand in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
