//! Memory of the lab's programs: of mmtwin-agent's processes, besides their regions.
//!
//! A guest's state has these pages on its LRU lists, anonymous ones, of which each process has about as many as the
//! recorder (6.1: 1,001 with one process and 2,025 with three, 6.12: 1,002 and 2,020). Which page belongs to whom is not known:
//! they are divided in the order of the lists, in which the recorder's are the oldest. A process reads some of them when a
//! phase has ended and before it exits: numbers by the faults of guests whose memory had been swapped meanwhile (exceptions of
//! user mode by address, 6.1, 6.12 and 7.3), which differ from phase to phase. When it exits its pages are freed.
//!
//! Not modelled: pages of programs, which are in tmpfs (by such faults a few, on 6.1 some 50 at an exit) and which a process
//! that exits marks as accessed.

use crate::mm::filemap::Reader;
use crate::mm::memory::AccessState;
use crate::mm::region::Entry;

/// Pages that a process reads when a phase has ended: 23 to 100, mostly about 50, of its heap, data and stack.
pub(crate) const OF_PHASE: u64 = 50;

/// Pages that it reads before it exits, those of a phase among them: 100 to 154 different ones in a run.
pub(crate) const OF_END: u64 = 130;

/// Pages that the recorder reads for a sample: 30 to 200, mostly about 100.
pub(crate) const OF_SAMPLE: u64 = 100;

/// Pages more for each other thread of a process (one guest).
pub(crate) const OF_THREAD: u64 = 26;

/// The first pages of a program's memory, which it reads in order.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// Its region.
    pub region: usize,
    /// The next page, and how many are read.
    pub page: u64,
    pages: u64,
    /// Read-ahead from swap.
    pub reader: Reader,
}

impl Reading {
    /// That many pages, or as many as there are.
    pub(crate) fn new(region: usize, pages: u64, memory: &AccessState) -> Reading {
        let pages = pages.min(memory.regions[region].len());
        Reading { region, page: 0, pages, reader: Reader::default() }
    }

    /// Reads up to the next page that is in swap, if there is one.
    pub(crate) fn next_swapped(&mut self, memory: &mut AccessState) -> Option<u64> {
        let region = &mut memory.regions[self.region];
        while self.page < self.pages {
            if let Entry::Gone(_) = region.entry(self.page) {
                return Some(self.page);
            }
            region.touch(0, self.page);
            self.page += 1;
        }
        None
    }
}
