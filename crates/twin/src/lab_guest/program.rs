//! Memory of the lab's programs: of mmtwin-agent's processes, besides their regions.
//!
//! A guest's state has these pages on its LRU lists, anonymous ones, of which each process has about as many as the
//! recorder (6.1: 1,001 with one process and 2,025 with three, 6.12: 1,002 and 2,020). Which page belongs to whom is not known:
//! they are divided in the order of the lists, in which the recorder's are the oldest. A process reads some of them when a
//! phase has ended and before it exits: numbers by the faults of guests whose memory had been swapped meanwhile (exceptions of
//! user mode by address, 6.1, 6.12 and 7.3). When it exits its pages are freed.
//!
//! Not modelled: pages of programs, which are in tmpfs (by such faults a few, on 6.1 some 50 at an exit) and which a process
//! that exits marks as accessed.

/// Pages that a process reads when a phase has ended (42 to 53 in guests that had swapped them, mostly of the heap).
pub(crate) const OF_PHASE: u64 = 50;

/// Pages that it reads before it exits, those of a phase among them (110 to 154).
pub(crate) const OF_END: u64 = 130;

/// Pages that the recorder reads for a sample (71 to 129).
pub(crate) const OF_SAMPLE: u64 = 100;

/// Pages more for each other thread.
pub(crate) const OF_THREAD: u64 = 26;
