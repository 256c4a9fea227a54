//! `mmtwin snap`.

use crate::Failure;
use crate::args::Snap;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

/// Runs the verb.
pub fn run(arguments: Snap) -> Result<i32, Failure> {
    let output = mmtwin_host::flight::snap(&arguments.directory)?;
    let mut out = std::io::stdout();
    out.write_all(output.as_os_str().as_bytes()).and_then(|()| out.write_all(b"\n"))?;
    Ok(0)
}
