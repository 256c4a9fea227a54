//! Files with dirty pages: the lists `b_dirty`, `b_io` and `b_more_io`, `queue_io`, `requeue_inode`,
//! `__mark_inode_dirty` (2.6.32 to 6.18).
//!
//! A file is a region, by number. Not modelled: dirty inodes without dirty pages, of which a file system writes a few. Checked
//! by a test here.

use crate::time::Ns;
use std::collections::VecDeque;

/// A file and when it became dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    pub region: usize,
    pub since: Ns,
}

/// Lists of files, the next one first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inodes {
    /// Dirty, the oldest first.
    dirty: VecDeque<Inode>,
    /// Being written by the work that runs.
    io: VecDeque<Inode>,
    /// Written in part.
    more: VecDeque<Inode>,
    /// The file whose turn it is, which is on no list (`I_SYNC`).
    current: Option<usize>,
}

/// State of a file at the end of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    /// Its chunk was used up.
    More,
    /// Its dirty pages could not be written.
    IsolatedPages,
}

impl Inodes {
    /// A file has its first dirty page; true if no file had.
    pub(super) fn add(&mut self, region: usize, since: Ns) -> bool {
        let first = self.is_empty();
        if self.current != Some(region) {
            self.dirty.push_back(Inode { region, since });
        }
        first
    }

    /// A file has no dirty pages any more.
    pub(super) fn remove(&mut self, region: usize) {
        for list in [&mut self.dirty, &mut self.io, &mut self.more] {
            list.retain(|inode| inode.region != region);
        }
    }

    /// True if no file has dirty pages.
    pub(super) fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.io.is_empty() && self.more.is_empty()
    }

    /// The next file to write, of those that became dirty up to a time.
    pub(super) fn next(&mut self, before: Ns) -> Option<Inode> {
        if self.io.is_empty() {
            self.io.append(&mut self.more);
            let old = self.dirty.iter().take_while(|inode| inode.since <= before).count();
            self.io.extend(self.dirty.drain(..old));
        }
        let next = self.io.pop_front();
        self.current = next.map(|inode| inode.region);
        next
    }

    /// True if the work has another file to write before it checks whether to continue.
    pub(super) fn has_next(&self) -> bool {
        !self.io.is_empty()
    }

    /// True if a file waits for its next chunk.
    pub(super) fn has_more(&self) -> bool {
        !self.more.is_empty()
    }

    /// A file's turn is over.
    pub(super) fn requeue(&mut self, inode: Inode, left: Left, now: Ns) {
        self.current = None;
        match left {
            Left::Nothing => {}
            Left::More => self.more.push_back(inode),
            Left::IsolatedPages => {
                // The list stays in order of age.
                let since =
                    if self.dirty.back().is_some_and(|last| last.since > inode.since) { now } else { inode.since };
                self.dirty.push_back(Inode { since, ..inode });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_take_turns() {
        let mut inodes = Inodes::default();
        assert!(inodes.add(3, 10) && !inodes.add(4, 20) && !inodes.add(5, 30));
        let first = inodes.next(25).unwrap();
        assert_eq!((first, inodes.has_next()), (Inode { region: 3, since: 10 }, true));
        inodes.requeue(first, Left::More, 40);
        let second = inodes.next(25).unwrap();
        inodes.requeue(second, Left::IsolatedPages, 41);
        // The rest of the first, and the third, which is too young.
        assert_eq!((inodes.next(25).map(|inode| inode.region), inodes.next(25)), (Some(3), None));
        inodes.requeue(first, Left::Nothing, 50);
        assert_eq!(inodes.next(40), Some(Inode { region: 5, since: 30 }));
        assert_eq!((inodes.next(60), inodes.is_empty()), (Some(Inode { region: 4, since: 41 }), true));
    }
}
