//! Changes of a run to the machine, restored however the run ends.
//!
//! Every change is written to a journal before it is made. The run itself undoes the changes of the journal when it
//! ends. If it is killed, its guardian undoes them: a process that is started before the first change and waits for the
//! run's end. If both were killed, the next start finds the journal and undoes them ([`recover`]).
//!
//! A value that another program has set since is not overwritten: the journal also has the values that the run has set.

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
    /// Before the guardian ends: it finds no journal.
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

    /// Undoes them. Returns the changes that could not be restored, or were not because another program has changed the
    /// value.
    pub fn undo(&mut self) -> Vec<String> {
        let made = std::mem::take(&mut self.made);
        // Their owner removes them.
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
