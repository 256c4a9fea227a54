//! `mmtwin scrub`.

use crate::args::Scrub;
use crate::{Failure, reading, say};
use mmtwin_trace::output::FileOutput;
use mmtwin_trace::private::{LEFT, Names, Scrubbed, scrub};
use std::fs;
use std::io::Write;
use std::path::Path;

/// Runs the verb.
pub fn run(arguments: &Scrub) -> Result<i32, Failure> {
    let names = match &arguments.names {
        Some(path) => read_names(path)?,
        None => Names::default(),
    };
    let input = reading::named_or_newest(arguments.input.clone())?;
    let scrubbed = scrub(&input, &arguments.output, names, arguments.force)?;
    if let Some(path) = &arguments.names {
        write_names(path, &scrubbed.names)?;
    }
    for warning in scrubbed.warnings.list() {
        say(&warning.to_string());
    }
    print(&scrubbed)?;
    Ok(0)
}

fn print(scrubbed: &Scrubbed) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let counts: Vec<String> = scrubbed.names.counts().map(|(kind, count)| format!("{count} {kind}")).collect();
    let counts = if counts.is_empty() { "nothing".to_string() } else { counts.join(", ") };
    writeln!(out, "Replaced by pseudonyms: {counts}. The arguments of the command were removed.")?;
    writeln!(out, "Kept unchanged:")?;
    LEFT.iter().try_for_each(|what| writeln!(out, "  {what}"))?;
    for name in &scrubbed.not_copied {
        writeln!(out, "Not copied: {name} is not part of a recording.")?;
    }
    for (name, file) in &scrubbed.still_there {
        writeln!(out, "Check before you share it: the name `{name}` is still in {file}.")?;
    }
    out.flush()
}

/// The table of names; none if there is no file yet.
fn read_names(path: &Path) -> Result<Names, Failure> {
    match fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Names::default()),
        Err(e) => Err(Failure::Error(format!("{}: {e}", path.display()))),
        Ok(text) => serde_json::from_slice(&text)
            .map_err(|e| Failure::Error(format!("{}:{}: not a table of names: {e}", path.display(), e.line()))),
    }
}

/// Only its owner may read it.
fn write_names(path: &Path, names: &Names) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(names).map_err(|e| Failure::Error(e.to_string()))?;
    text.push(b'\n');
    // Replaced as a whole: what it held is in it.
    Ok(FileOutput::open(path, true, 0o600)?.write(&text)?)
}
