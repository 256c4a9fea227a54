//! What a run changes of the machine, put back however the run ends.
//!
//! Every change is written to a journal before it is made. The run itself undoes what is in it when it ends. Should it
//! be killed, its guardian does so: a process that is started before the first change and waits for the run's end. What
//! neither could undo, since both were killed, the next start does ([`recover`]), which finds the journal.
//!
//! Nothing is put back over a value that somebody else has set since: what a run sets is in its journal too.

mod change;
mod folder;
mod guardian;
mod journal;
mod scratch;
mod undo;

pub(crate) use change::{Change, inode, start_of};
pub use folder::{recover, remove_instances};
pub use guardian::{GUARDIAN, guardian};
pub use scratch::Scratch;

use crate::Error;
use guardian::Guardian;
use journal::Journal;

/// The changes of a run. They are undone when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    made: Vec<Change>,
    /// Before the guardian: it finds the journal gone.
    journal: Option<Journal>,
    guardian: Option<Guardian>,
}

impl Changes {
    /// With a journal and a guardian. Without, for a machine that ends with the run, there is the default.
    pub fn guarded() -> Result<Changes, Error> {
        let journal = Journal::create()?;
        let guardian = Guardian::start(journal.path())?;
        Ok(Changes { made: Vec::new(), journal: Some(journal), guardian: Some(guardian) })
    }

    /// True if they are undone even if this process is killed.
    pub fn is_guarded(&self) -> bool {
        self.guardian.is_some()
    }

    /// Notes a change that is about to be made.
    pub fn note(&mut self, change: Change) -> Result<(), Error> {
        if let Some(journal) = &mut self.journal {
            journal.append(&change)?;
        }
        self.made.push(change);
        Ok(())
    }

    /// Undoes them. Returns what could not be put back, or was not since somebody else has changed it.
    pub fn undo(&mut self) -> Vec<String> {
        let made = std::mem::take(&mut self.made);
        // Whoever made these removes them.
        let changes: Vec<Change> =
            made.into_iter().filter(|change| !matches!(change, Change::Temporary { .. })).collect();
        let report = undo::all(&changes);
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
        // It has nothing left to do, and ends.
        self.guardian = None;
        report.left
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.undo();
    }
}
