//! Files in memory, for readers that take names.

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

thread_local! {
    static FILE: File = File::from(memfd_create("input", MemfdFlags::CLOEXEC).expect("memory for a file"));
    static FOLDER: RefCell<Option<Folder>> = const { RefCell::new(None) };
}

/// Calls `read` with the name of a file that holds `bytes`. The file is in memory and has no name in any directory, so a
/// crash leaves nothing; its name is the same for all inputs of a thread, so that messages can be compared.
pub fn file<T>(bytes: &[u8], read: impl FnOnce(&str) -> T) -> T {
    let name = FILE.with(|file| {
        ftruncate(file, bytes.len() as u64).expect("memory for a file");
        file.write_all_at(bytes, 0).expect("memory for a file");
        format!("/proc/self/fd/{}", file.as_raw_fd())
    });
    read(&name)
}

/// A directory whose files are changed from input to input; what stays the same is not written again.
struct Folder {
    top: TempDir,
    files: BTreeMap<String, Vec<u8>>,
}

/// Calls `read` with a directory of `files`, by their paths below it. It is in `/dev/shm` where there is one.
pub fn directory<T>(files: BTreeMap<String, Vec<u8>>, read: impl FnOnce(&Path) -> T) -> T {
    // Taken out, so that one that was left in the middle of a change by a panic is not used again.
    let mut folder = FOLDER.take().unwrap_or_else(|| Folder { top: memory(), files: BTreeMap::new() });
    let top = folder.top.path().to_path_buf();
    for (name, _) in folder.files.iter().filter(|(name, _)| !files.contains_key(*name)) {
        fs::remove_file(top.join(name)).expect("a file of ours");
        // Directories that are empty now may tell a reader something.
        let parents = Path::new(name).ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
        parents.take_while(|parent| fs::remove_dir(top.join(parent)).is_ok()).for_each(drop);
    }
    for (name, bytes) in files.iter().filter(|(name, bytes)| folder.files.get(*name) != Some(*bytes)) {
        let path = top.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&top)).expect("a directory of ours");
        fs::write(path, bytes).expect("a file of ours");
    }
    folder.files = files;
    let result = read(&top);
    FOLDER.set(Some(folder));
    result
}

/// A temporary directory, in memory if possible.
pub fn memory() -> TempDir {
    let shm = PathBuf::from("/dev/shm");
    let made = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() };
    made.expect("a temporary directory")
}
