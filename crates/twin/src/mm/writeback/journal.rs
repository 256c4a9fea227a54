//! A file system's journal as far as writers wait for it: `file_update_time`, `ext4_dirty_inode`, `jbd2_journal_commit_transaction`,
//! `do_get_write_access` (3.2 to 6.12, ext4).
//!
//! The first write of a tick changes the file's times in a transaction. Five seconds after it began the transaction is
//! committed. Until its blocks are on the disk, behind all requests that are queued, the same blocks cannot be changed
//! again, and writers of the file wait. The blocks of a commit are a figure of the machine (`machine.disk.journal_blocks`).
//! Not modelled: journalled data, full transactions, the thread that commits, allocated blocks. Checked with guests, whose
//! writers stopped for up to two seconds while the disk was busy.

use crate::time::Ns;

/// From the beginning of a transaction to its commit (`j_commit_interval`): 5 s, and on to the next whole second
/// (`round_jiffies_up`).
const INTERVAL: Ns = 5_000_000_000;
const SECOND: Ns = 1_000_000_000;

/// The journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Journal {
    /// A transaction has begun.
    open: bool,
    /// One is on its way to the disk.
    committing: bool,
}

impl Journal {
    /// A file's times change: when the transaction is to be committed, if it begins with that; `Err`: they cannot yet.
    pub(crate) fn change(&mut self, now: Ns) -> Result<Option<Ns>, ()> {
        if self.committing {
            return Err(());
        }
        let first = !std::mem::replace(&mut self.open, true);
        Ok(first.then_some((now + INTERVAL).next_multiple_of(SECOND)))
    }

    /// The transaction is written.
    pub(crate) fn commit(&mut self) {
        (self.open, self.committing) = (false, true);
    }

    /// It is on the disk.
    pub(crate) fn committed(&mut self) {
        self.committing = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_wait_for_the_commit() {
        let mut journal = Journal::default();
        assert_eq!((journal.change(7), journal.change(8)), (Ok(Some(INTERVAL + SECOND)), Ok(None)));
        journal.commit();
        assert_eq!(journal.change(9), Err(()));
        journal.committed();
        assert_eq!(journal.change(10), Ok(Some(INTERVAL + SECOND)));
    }
}
