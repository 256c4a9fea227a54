//! `mmtwin completions` and `mmtwin man`: made from the definitions of the command line.

use crate::Failure;
use crate::cli::{Cli, Completions, Man};
use clap::CommandFactory;

/// Prints a completion script.
pub fn completions(arguments: Completions) -> Result<i32, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "mmtwin", &mut script);
    std::io::Write::write_all(&mut std::io::stdout(), &script)?;
    Ok(0)
}

/// Writes man pages.
pub fn man(arguments: Man) -> Result<i32, Failure> {
    let directory = &arguments.directory;
    let failed = |e: std::io::Error| Failure::Error(format!("{}: {e}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)?;
    Ok(0)
}
