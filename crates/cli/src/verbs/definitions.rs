//! `mmtwin completions` and `mmtwin man`: made from the definitions of the command line.

use super::keys;
use crate::Failure;
use crate::args::{Cli, Completions, Man};
use clap::CommandFactory;
use mmtwin_trace::output::FileOutput;

/// Prints a completion script.
pub fn completions(arguments: Completions) -> Result<i32, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "mmtwin", &mut script);
    let script = keys::complete(arguments.shell, &String::from_utf8_lossy(&script));
    std::io::Write::write_all(&mut std::io::stdout(), script.as_bytes())?;
    Ok(0)
}

/// Writes man pages.
pub fn man(arguments: Man) -> Result<i32, Failure> {
    let directory = &arguments.directory;
    let failed = |e: std::io::Error| Failure::Error(format!("{}: {e}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    let scratch = tempfile::tempdir().map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), scratch.path()).map_err(failed)?;
    let pages = std::fs::read_dir(scratch.path()).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(failed)?;
    // All or nothing, as far as can be told beforehand.
    pages.iter().try_for_each(|page| FileOutput::check(&directory.join(page.file_name()), arguments.force))?;
    for page in pages {
        let text = std::fs::read(page.path()).map_err(failed)?;
        FileOutput::open(&directory.join(page.file_name()), arguments.force, 0o666)?.write(&text)?;
    }
    Ok(0)
}
