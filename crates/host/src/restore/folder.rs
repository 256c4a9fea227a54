//! Where journals are: `/run/mmtwin` for root, else `$XDG_RUNTIME_DIR/mmtwin`, else a folder of the user's own below the
//! folder for temporary files. All but the last are memory, which is empty after a boot.

use super::change::Change;
use super::journal::{Found, Left, boot, look};
use super::undo::{self, Report};
use crate::{Error, instance, tracefs};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How names of journals begin.
pub(super) const PREFIX: &str = "host-";

/// How long another process may take to undo a journal.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

fn path() -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return "/run/mmtwin".into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute() && path.is_dir()) {
        Some(runtime) => runtime.join("mmtwin"),
        None => std::env::temp_dir().join(format!("mmtwin-{}", user.as_raw())),
    }
}

/// The folder, made if there is none. Its entries are undone as this user: no other user may write there.
pub(super) fn make() -> Result<PathBuf, Error> {
    let path = path();
    let fail = |e| Error::io(path.display().to_string(), e);
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(fail(e)),
        _ => {}
    }
    if is_own(&path) {
        Ok(path)
    } else {
        Err(fail(io::Error::other("is not a directory that only this user can write")))
    }
}

fn is_own(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|of| of.is_dir() && of.uid() == rustix::process::geteuid().as_raw() && of.mode() & 0o022 == 0)
}

/// Removes a journal, and the folder if that was the last.
pub(super) fn forget(journal: &Path) {
    let _ = fs::remove_file(journal);
    // It fails while there are others.
    let _ = journal.parent().map(fs::remove_dir);
}

/// Undoes the changes of runs that were killed together with their guardians. `say` receives a line for the user about
/// each. Changes that cannot be undone are reported, and the caller continues.
pub fn recover(say: &mut dyn FnMut(&str)) {
    let folder = path();
    if is_own(&folder) {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut journals: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_journal(path)).collect();
        journals.sort();
        for journal in journals {
            if let Err(error) = settle(&journal, false, say) {
                say(&format!("a killed run may have left changes on this machine: {error}"));
            }
        }
    }
}

/// Removes tracing instances of recorders that were killed, as every recorder of events does before it makes its own.
pub fn remove_instances(say: &mut dyn FnMut(&str)) {
    for name in tracefs::open().ok().and_then(|tracefs| instance::clean(tracefs.path()).ok()).unwrap_or_default() {
        say(&format!("removed the tracing instance {name} of an earlier recording"));
    }
}

fn is_journal(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.starts_with(PREFIX) && name.ends_with(".jsonl")
}

/// Undoes a journal unless its run continues, which one that has `ended` does not; waits for another process that does.
/// The kernel drops the lock of a process that has ended a moment after it has closed its other files.
pub(super) fn settle(journal: &Path, ended: bool, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let begin = Instant::now();
    loop {
        match look(journal)? {
            Found::Gone => return Ok(()),
            Found::Locked(Some(owner)) if !ended && owner.runs() => return Ok(()),
            Found::Locked(_) if begin.elapsed() > LOCK_TIMEOUT => {
                let busy = io::Error::other("another process holds this journal");
                return Err(Error::io(journal.display().to_string(), busy));
            }
            Found::Locked(_) => std::thread::sleep(Duration::from_millis(5)),
            Found::Left(left) => {
                tell(&left, undo_left(&left), say);
                forget(journal);
                return Ok(());
            }
        }
    }
}

fn undo_left(left: &Left) -> Report {
    let same_boot = left.owner.boot == boot();
    let changes: Vec<Change> =
        left.changes.iter().filter(|change| same_boot || !change.ends_with_boot()).cloned().collect();
    undo::all(&changes)
}

fn tell(left: &Left, report: Report, say: &mut dyn FnMut(&str)) {
    let run = format!("the run {} that was killed", left.owner.pid);
    if !report.done.is_empty() {
        say(&format!("reverted the changes of {run}: {}", report.done.join("; ")));
    }
    report.left.iter().for_each(|line| say(&format!("{run}: {line}")));
    if left.damaged > 0 {
        say(&format!("{run}: {} lines of its journal cannot be read", left.damaged));
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::{Journal, Owner};
    use super::*;

    #[test]
    fn a_journal_of_an_earlier_boot_undoes_files_only() {
        let root = tempfile::tempdir().unwrap();
        let (journal, file) = (root.path().join("host-1-2.jsonl"), root.path().join(".mmtwin-1-r"));
        fs::write(&file, "").unwrap();
        let owner = Owner { boot: "another".into(), pid: 1, start: 2 };
        let changes = [
            Change::Value { file: "/proc/sys/kernel/ostype".into(), before: "Minix".into(), set: vec![] },
            Change::Temporary { path: file.clone() },
        ];
        let lines: Vec<String> = changes.iter().map(|change| serde_json::to_string(change).unwrap() + "\n").collect();
        drop(Journal::create_at(&journal, &owner).unwrap());
        let text = fs::read_to_string(&journal).unwrap() + &lines.concat();
        fs::write(&journal, text).unwrap();
        let mut said = Vec::new();
        settle(&journal, false, &mut |line| said.push(line.to_string())).unwrap();
        assert!(!journal.exists() && !file.exists());
        let expected = format!("reverted the changes of the run 1 that was killed: removed {}", file.display());
        assert_eq!(said, [expected]);
    }

    #[test]
    fn a_folder_that_others_can_write_is_not_trusted() {
        let root = tempfile::tempdir().unwrap();
        assert!(is_own(root.path()));
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(root.path(), open).unwrap();
        assert!(!is_own(root.path()));
    }
}
