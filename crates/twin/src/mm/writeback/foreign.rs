//! Files that tasks of another cgroup write to: `mem_cgroup_track_foreign_dirty`, `mem_cgroup_flush_foreign`,
//! `cgroup_writeback_by_id`, `wbc_detach_inode`, `inode_switch_wbs` (5.4 to 6.12; cgroups of version 2).
//!
//! A writer is throttled by the limits of its own cgroup, whose flusher has nothing to write while the file belongs to
//! another. So above its free-run ceiling it has that one's flusher write everything. A file that mostly others write
//! to belongs to them after some rounds. Not modelled: the time that the change takes (a grace period and a worker),
//! more than one other cgroup among the writers of a chunk. Checked by `tests/writeback.rs`.

use super::Writeback;
use super::inodes::Inode;
use crate::mm::region::Region;
use crate::time::Ns;

/// Times of rounds in 1/8192 of a second (`WB_FRN_TIME_SHIFT`).
const SECOND: u32 = 13;
/// A slot of the history: an eighth of a second; slots, and most slots of a round.
const SLOT: u64 = (2 << SECOND) / SLOTS as u64;
const SLOTS: u32 = 16;
const MOST_SLOTS: u64 = (SLOTS / 4 + 1) as u64;
/// Others that a cgroup remembers (`MEMCG_CGWB_FRN_CNT`).
const MOST: usize = 4;

/// Pages that a flusher is to write for the tasks of a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Explicit {
    pub pages: u64,
    pub by: usize,
}

/// Files of another cgroup that tasks of this one write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    /// Whose files they are.
    of: usize,
    /// When a page of them became dirty; `None`: not since they were flushed.
    at: Option<Ns>,
    /// They are being flushed.
    flushing: bool,
}

/// How often others than its cgroup have written to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// Average time of a round.
    average: u64,
    /// By slot, the latest last: others have written more.
    slots: u16,
}

impl History {
    /// A chunk has been written in which most pages were of one cgroup; true if the file should be its.
    fn note(&mut self, pages: u64, bandwidth: u64, other: bool) -> bool {
        let time = (pages << SECOND).div_ceil(bandwidth.max(1));
        self.average = if self.average > 0 { self.average + (time >> 3) - (self.average >> 3) } else { time };
        if time < self.average / 8 {
            return false;
        }
        let slots = time.div_ceil(SLOT).min(MOST_SLOTS);
        self.slots = self.slots << slots | if other { (1 << slots) - 1 } else { 0 };
        self.slots.count_ones() > SLOTS / 2
    }
}

impl Writeback {
    /// A page of a cgroup has become dirty in a file of another.
    pub(super) fn track_foreign_dirty(&mut self, cgroup: usize, of: usize, now: Ns) {
        if !self.rules.foreign_flush {
            return;
        }
        let expire = self.rules.expire;
        let known = &mut self.wbs[cgroup].foreign;
        if let Some(foreign) = known.iter_mut().find(|foreign| foreign.of == of) {
            // It is brought up to date now and then.
            let often = (expire / 8).min(1_000_000_000);
            foreign.at = Some(foreign.at.filter(|at| now <= at + often).unwrap_or(now));
        } else if known.len() < MOST {
            known.push(Foreign { of, at: Some(now), flushing: false });
        }
    }

    /// A writer of a cgroup is above its limits: flushes what its tasks have dirtied in files of others.
    pub(super) fn flush_foreign(&mut self, cgroup: usize, now: Ns) {
        for number in 0..self.wbs[cgroup].foreign.len() {
            let Foreign { of, at, flushing } = self.wbs[cgroup].foreign[number];
            if flushing || at.is_none_or(|at| now >= at + self.rules.expire) {
                continue;
            }
            // Cgroups below others are not counted with those.
            let all = if of == 0 { 0..self.wbs.len() } else { of..of + 1 };
            let dirty: u64 = all.map(|cgroup| self.charged(cgroup).dirty).sum();
            let pages = dirty * 10 / 8;
            self.wbs[cgroup].foreign[number] = Foreign { of, at: None, flushing: true };
            self.wbs[of].work_list.push_back(Explicit { pages, by: cgroup });
            self.wake_now(of);
        }
    }

    /// A flusher has done what it was to do for a cgroup.
    pub(super) fn flushed(&mut self, of: usize, work: Explicit) {
        let done = self.wbs[work.by].foreign.iter_mut().find(|foreign| foreign.of == of);
        done.into_iter().for_each(|foreign| foreign.flushing = false);
    }

    /// A chunk of a file has been written, so many pages of its own cgroup and so many of another one: where the other
    /// has written most for some time, the file is its from now on.
    pub(super) fn detach(
        &mut self,
        (region, inode): (&mut Region, Inode),
        own: u64,
        (other, pages): (usize, u64),
        now: Ns,
    ) {
        let bandwidth = self.wbs[region.wb].rate.average;
        if !region.foreign.note(own.max(pages), bandwidth, pages > own) || other == region.wb {
            return;
        }
        let (from, dirty) = (std::mem::replace(&mut region.wb, other), region.dirty());
        region.foreign = History::default();
        self.wbs[from].dirty -= dirty;
        self.wbs[from].inodes.remove(inode.region);
        self.wbs[other].dirty += dirty;
        if dirty > 0 && self.wbs[other].inodes.add(inode.region, inode.since) {
            self.wake_later(other, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_theirs_who_write_most() {
        // At 10,000 pages a second 1,250 take a slot, and no chunk takes more than five.
        let rounds = |pages, others: &[bool]| {
            let mut history = History::default();
            others.iter().map(|other| history.note(pages, 10_000, *other)).collect::<Vec<_>>()
        };
        assert_eq!(rounds(12_500, &[true, true]), [false, true]);
        assert_eq!(rounds(1_250, &[true; 9]).iter().position(|is| *is), Some(8));
        assert!(!rounds(12_500, &[true, false, false, false, true, false]).contains(&true));
        // A short round after long ones does not count.
        let mut history = History::default();
        history.note(12_500, 10_000, true);
        let slots = history.slots;
        assert!(!history.note(100, 10_000, true) && history.slots == slots);
    }
}
