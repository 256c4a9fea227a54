//! Loading a kernel module and unloading it again. Every change of the rights of its memory purges vmalloc areas.

use crate::{Error, clock};
use mmtwin_event::results::ActionResult;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// `MODULE_INIT_COMPRESSED_FILE` of `finit_module(2)`, since Linux 5.17.
const COMPRESSED: libc::c_int = 4;

/// The file of a module of this kernel, and whether it is compressed; `None` if there is none, or if the module is
/// loaded already.
pub fn find(name: &str) -> Option<(PathBuf, bool)> {
    let loaded = Path::new("/sys/module").join(plain(name));
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    if loaded.exists() { None } else { find_in(&Path::new("/lib/modules").join(release), name) }
}

fn find_in(directory: &Path, name: &str) -> Option<(PathBuf, bool)> {
    let mut below = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below.push(entry.path());
        } else if let Some((stem, rest)) = entry.file_name().to_str().and_then(|file| file.split_once(".ko"))
            && plain(stem) == plain(name)
            && matches!(rest, "" | ".xz" | ".gz" | ".zst")
        {
            return Some((entry.path(), !rest.is_empty()));
        }
    }
    below.sort_unstable();
    below.iter().find_map(|directory| find_in(directory, name))
}

/// A module's name as the kernel has it.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// Loads and unloads until it is done or it is `deadline`; what is known beforehand is in `result`.
pub fn perform(name: &str, count: Option<u64>, deadline: u64, result: &mut ActionResult) -> Result<(), Error> {
    let fail = |doing: &str, e: io::Error| Error::io(format!("{doing} module {name}"), e);
    let (path, is_compressed) = find(name).ok_or_else(|| fail("finding", io::ErrorKind::NotFound.into()))?;
    let file = File::open(&path).map_err(|e| fail("opening", e))?;
    let own = CString::new(plain(name)).map_err(|e| fail("finding", e.into()))?;
    let flags = if is_compressed { COMPRESSED } else { 0 };
    while clock::now() < deadline && count.is_none_or(|count| result.operations < count) {
        // SAFETY: the kernel reads the file from its beginning, and the parameters up to their NUL.
        let loaded = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), flags) };
        done(loaded).map_err(|e| fail("loading", e))?;
        // SAFETY: the kernel reads the name up to its NUL.
        let unloaded = unsafe { libc::syscall(libc::SYS_delete_module, own.as_ptr(), libc::O_NONBLOCK) };
        done(unloaded).map_err(|e| fail("unloading", e))?;
        result.operations += 1;
    }
    Ok(())
}

fn done(status: libc::c_long) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_by_their_names() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("kernel/fs");
        std::fs::create_dir_all(&deep).unwrap();
        for file in ["a-b.ko", "c.ko.xz", "d.ko.sig", "e.kolumn"] {
            std::fs::write(deep.join(file), "").unwrap();
        }
        assert_eq!(find_in(root.path(), "a_b"), Some((deep.join("a-b.ko"), false)));
        assert_eq!(find_in(root.path(), "c"), Some((deep.join("c.ko.xz"), true)));
        assert!(["d", "e", "a"].iter().all(|name| find_in(root.path(), name).is_none()));
    }
}
