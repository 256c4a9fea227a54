//! Files as bytes in memory.

use crate::Error;
use memmap2::Mmap;
use std::fs::File;

/// Maps a file; `None` if it is empty.
pub(crate) fn map(name: &str, file: &File) -> Result<Option<Mmap>, Error> {
    if file.metadata().map_err(|e| Error::io(name, e))?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the map is only read, as bytes, and every reader checks its offsets against the length. A file that
    // another process shortens meanwhile ends this process with SIGBUS, as it does any tool that maps its input.
    unsafe { Mmap::map(file) }.map(Some).map_err(|e| Error::io(name, e))
}
