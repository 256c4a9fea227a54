//! Looking up names that do not exist. Each leaves a negative dentry, slab that nobody uses again, in file systems that
//! keep them: those on a disk do, those in memory do not.

use crate::{Error, clock};
use rustix::fs::{AtFlags, Mode, OFlags, open, statat};
use rustix::io::Errno;
use std::fmt::Write;
use std::path::Path;

/// Looks up names until there were `count` or it is `deadline`; how many there were. Names are different for all threads
/// of all processes and short enough (31 bytes) to lie in their dentries.
pub fn perform(directory: &Path, process: &str, thread: u32, count: Option<u64>, deadline: u64) -> Result<u64, Error> {
    let fail = |e: Errno| Error::io(format!("looking up names in {}", directory.display()), e);
    let opened = open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(fail)?;
    let (mut name, mut done) = (String::new(), 0);
    while count.is_none_or(|count| done < count) && clock::now() < deadline {
        name.clear();
        // Writing to a text cannot fail.
        let _ = write!(name, "{done:x}.{thread:x}.{process}");
        match statat(&opened, name.as_str(), AtFlags::empty()) {
            Err(Errno::NOENT) => done += 1,
            Err(e) => return Err(fail(e)),
            Ok(_) => return Err(fail(Errno::EXIST)),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_and_nothing_is_left() {
        let root = tempfile::tempdir().unwrap();
        let look = |thread, deadline| perform(root.path(), "p", thread, Some(300), deadline);
        assert_eq!(look(0, u64::MAX).unwrap(), 300);
        assert_eq!(look(0, 0).unwrap(), 0, "nothing after the deadline");
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
        std::fs::write(root.path().join("ff.1.p"), "").unwrap();
        assert!(look(1, u64::MAX).unwrap_err().to_string().contains("looking up names"));
        assert!(perform(&root.path().join("none"), "p", 0, Some(1), u64::MAX).is_err());
    }
}
