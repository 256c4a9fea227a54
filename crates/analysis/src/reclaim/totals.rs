//! Reclaim by all tasks of one context.

use super::lists::{Isolated, List};
use super::process::{ORDERS, Pages};
use super::writes::Writes;
use mmtwin_event::durations::Durations;

/// What only some kernels tell of pages that reclaim looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// [`Batches::dirty`].
    Dirty,
    /// [`Batches::writeback`].
    Writeback,
    /// [`Batches::congested`].
    Congested,
    /// [`Batches::immediate`].
    Immediate,
    /// [`Batches::activated_anon`].
    ActivatedAnon,
    /// [`Batches::activated_file`].
    ActivatedFile,
    /// [`Batches::kept`].
    Kept,
    /// [`Batches::unmap_failed`].
    UnmapFailed,
    /// [`Isolated::skipped`].
    Skipped,
}

/// Which details the events of this input have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// A bit for each detail that an event could have had.
    possible: u16,
    /// A bit for each detail that an event had.
    reported: u16,
}

impl Reported {
    /// Takes note of whether an event has a detail.
    #[inline]
    pub(crate) fn note(&mut self, detail: Detail, reported: bool) {
        self.possible |= 1 << detail as u16;
        self.reported |= u16::from(reported) << detail as u16;
    }

    /// False if there were events that could have a detail, and none had it.
    pub fn has(self, detail: Detail) -> bool {
        (self.possible & !self.reported) >> detail as u16 & 1 == 0
    }
}

/// What happened to batches of inactive pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    /// Batches.
    pub count: u64,
    /// Pages looked at.
    pub scanned: Pages,
    /// Pages freed.
    pub reclaimed: Pages,
    /// Dirty.
    pub dirty: u64,
    /// Under writeback.
    pub writeback: u64,
    /// Under writeback since an earlier pass (before 5.x: on a congested device).
    pub congested: u64,
    /// Met again while still under writeback: reclaim is too fast for the disk.
    pub immediate: u64,
    /// Anonymous pages found in use and activated.
    pub activated_anon: u64,
    /// File pages found in use and activated.
    pub activated_file: u64,
    /// Kept because they were referenced.
    pub kept: u64,
    /// Could not be unmapped.
    pub unmap_failed: u64,
}

/// What happened to batches of active pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveBatches {
    /// Batches.
    pub count: u64,
    /// Pages taken.
    pub taken: u64,
    /// Pages that stayed active.
    pub active: u64,
    /// Pages moved to the inactive list.
    pub deactivated: u64,
    /// Pages found referenced.
    pub referenced: u64,
}

impl ActiveBatches {
    /// Adds another sum.
    pub fn merge(&mut self, other: &ActiveBatches) {
        self.count += other.count;
        self.taken = self.taken.saturating_add(other.taken);
        self.active = self.active.saturating_add(other.active);
        self.deactivated = self.deactivated.saturating_add(other.deactivated);
        self.referenced = self.referenced.saturating_add(other.referenced);
    }
}

/// Reclaim in one context.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Reclaims begun; for kswapd, wakes.
    pub begins: u64,
    /// Reclaims ended; for kswapd, sleeps.
    pub ends: u64,
    /// Ends whose start was not seen, or between which and their begin events were lost: no duration is known.
    pub unpaired: u64,
    /// Of these, ends whose start was seen.
    pub torn: u64,
    /// Pages reclaimed as the end events count them, slab pages and the like included.
    pub reclaimed_by_end: u64,
    /// Isolations by [`List`] number.
    pub isolated: [Isolated; 9],
    /// Inactive batches.
    pub inactive: Batches,
    /// Active batches of anonymous pages.
    pub active_anon: ActiveBatches,
    /// Active batches of file pages.
    pub active_file: ActiveBatches,
    /// Pages written.
    pub writes: Writes,
    /// Durations by order of request; the last is for orders no kernel has.
    by_order: Vec<Durations>,
}

impl Totals {
    pub(crate) fn took(&mut self, order: i32, ns: u64) {
        let at = usize::try_from(order).map_or(ORDERS, |order| order.min(ORDERS));
        if at >= self.by_order.len() {
            self.by_order.resize(at + 1, Durations::default());
        }
        self.by_order[at].add(ns);
    }

    /// Durations by order that occurred; `None` stands for all orders no kernel has.
    pub fn by_order(&self) -> impl Iterator<Item = (Option<usize>, &Durations)> {
        let orders = self.by_order.iter().enumerate().filter(|(_, latency)| latency.count() > 0);
        orders.map(|(order, durations)| ((order < ORDERS).then_some(order), durations))
    }

    /// Durations of all orders.
    pub fn durations(&self) -> Durations {
        let mut all = Durations::default();
        self.by_order.iter().for_each(|latency| all.merge(latency));
        all
    }

    /// Isolations from lists that count as scanned.
    pub fn isolated_inactive(&self) -> Isolated {
        let mut sum = Isolated::default();
        let lists = List::ALL.iter().zip(&self.isolated);
        lists.filter(|(list, _)| list.counts_as_scanned()).for_each(|(_, one)| sum.merge(one));
        sum
    }

    /// True if nothing happened in this context.
    pub fn is_idle(&self) -> bool {
        self.begins == 0
            && self.ends == 0
            && self.inactive.count == 0
            && self.writes.total() == 0
            && self.active_anon.count + self.active_file.count == 0
            && self.isolated.iter().all(|isolated| isolated.batches == 0)
    }
}
