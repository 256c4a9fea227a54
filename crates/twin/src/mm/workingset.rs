//! Refaults: `workingset_eviction`, `workingset_refault`, `workingset_age_nonresident` (5.9 to 6.18).
//!
//! An evicted page leaves a shadow: the lruvec of the reclaim's target, the evictions and activations of that so far, and
//! whether the page was part of the working set. A page that refaults within a distance no larger than the competing lists is activated at
//! once. A shadow here has 30 bits, so that the age is rounded as in kernels with small words. Not modelled: shadows
//! outlive their cgroup here; the memory of the shadows themselves.

use crate::frame::{Flag, Frames, Pfn, ZONES};
use crate::mm::lru::List;
use crate::mm::vmscan::Reclaim;
use crate::vmstat::{NodeItem, VmStat};

/// Bits of a shadow.
const SHADOW_BITS: u32 = 30;

/// Bits of the age in a shadow with this many lruvecs: all but those of the lruvec number and one flag.
pub(super) fn age_bits(lruvecs: usize) -> u32 {
    SHADOW_BITS - 1 - number_bits(lruvecs)
}

fn number_bits(lruvecs: usize) -> u32 {
    usize::BITS - (lruvecs - 1).leading_zeros()
}

impl Reclaim {
    /// A page is evicted by a reclaim of a cgroup: its shadow, which is of that cgroup's lruvec.
    pub(super) fn evict(&mut self, frames: &Frames, page: Pfn, target: usize) -> u32 {
        let number = self.lru.number(frames.zone(page) / ZONES, target);
        let age = self.lru.vec(number).nonresident_age >> self.bucket_order;
        self.lru.age(number, 1 << frames.order(page));
        let bits = age_bits(self.lru.len());
        let age = (age & ((1 << bits) - 1)) as u32;
        (age << number_bits(self.lru.len()) | number as u32) << 1 | u32::from(frames.has(page, Flag::Workingset))
    }

    /// A page with a shadow refaults. It is on no list yet.
    pub(crate) fn refault(&mut self, frames: &mut Frames, stat: &mut VmStat, page: Pfn, shadow: u32) {
        if !self.rules.workingset {
            return;
        }
        let (bits, lruvecs) = (age_bits(self.lru.len()), number_bits(self.lru.len()));
        let workingset = shadow & 1 == 1;
        let evicted_from = (shadow >> 1) as usize & ((1 << lruvecs) - 1);
        let then = u64::from(shadow >> (1 + lruvecs)) << self.bucket_order;
        let file = !frames.has(page, Flag::Swapbacked);
        let pages = 1u64 << frames.order(page);
        let number = self.lru.number_of(frames, page);
        let node = frames.zone(page) / crate::frame::ZONES;
        let by_type = |anon, of_file| if file { of_file } else { anon };
        stat.pages.add(node, by_type(NodeItem::RefaultAnon, NodeItem::RefaultFile), pages as i64);
        let (cgroup, kind) = (self.cgroup_of(number), usize::from(file));
        self.note(cgroup, |events| events.refaults[kind] += pages);
        let shown = self.lru.shown(evicted_from);
        let from = |list| shown.pages(list);
        let distance =
            self.lru.vec(evicted_from).nonresident_age.wrapping_sub(then) & ((1 << (bits + self.bucket_order)) - 1);
        let mut competing = from(List::ActiveFile);
        if !file {
            competing += from(List::InactiveFile);
        }
        if self.swap_left(evicted_from % self.groups.len()) > 0 {
            competing += from(List::ActiveAnon);
            if file {
                competing += from(List::InactiveAnon);
            }
        }
        if distance > competing {
            return;
        }
        frames.set_flag(page, Flag::Active, true);
        self.lru.age(number, pages);
        stat.pages.add(node, by_type(NodeItem::ActivateAnon, NodeItem::ActivateFile), pages as i64);
        self.note(cgroup, |events| events.activates[kind] += pages);
        self.lru.vec_mut(number).activated[kind] += pages;
        if workingset {
            frames.set_flag(page, Flag::Workingset, true);
            self.note_cost(number, file, (pages, 0));
            stat.pages.add(node, by_type(NodeItem::RestoreAnon, NodeItem::RestoreFile), pages as i64);
            self.note(cgroup, |events| events.restores[kind] += pages);
        }
    }
}
