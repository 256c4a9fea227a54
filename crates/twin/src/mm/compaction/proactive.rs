//! Proactive compaction: `should_proactive_compact_node`, `proactive_compact_node`, `fragmentation_score_node`,
//! `fragmentation_score_wmark`, `extfrag_for_order` (5.9 to 6.12).
//!
//! Twice a second kcompactd asks how much of a node's free memory is in blocks smaller than a huge page. Above a mark that
//! follows from `vm.compaction_proactiveness` it compacts zone after zone until each is below a lower mark; if that did not
//! help, it waits 64 times as long. Not modelled: a write of the sysctl, which begins one at once; the time of a check;
//! jiffies of the timer wheel, which let a sleep last up to 32 ms longer. Checked by tests here; beside guests in docs/fidelity.md.

use super::Status;
use super::defer::MAX_SHIFT;
use super::zone::{Mode, Pass};
use crate::frame::{Migratetype, ZONES, ZoneKind};
use crate::mm::kernel::Kernel;
use crate::page_alloc::{HUGE_ORDER, MAX_ORDER};
use crate::time::Ns;

/// Time between two checks (`HPAGE_FRAG_CHECK_INTERVAL_MSEC`).
pub(crate) const INTERVAL: Ns = 500_000_000;
/// The same after a compaction that did not help.
pub(super) const DEFERRED: Ns = INTERVAL << MAX_SHIFT;

/// The scores in percent at which compaction of a node ends and begins.
fn marks(proactiveness: u32) -> (u64, u64) {
    let low = u64::from(100u32.saturating_sub(proactiveness)).max(5);
    (low, (low + 10).min(100))
}

impl Kernel {
    /// The score of a node that is to be compacted; `None`: it is not.
    pub(super) fn should_proactive_compact_node(&self, node: usize) -> Option<u64> {
        let proactiveness = self.reclaim.rules.proactiveness;
        if proactiveness == 0 || self.kswapd_runs(node) {
            return None;
        }
        let score = self.fragmentation_score_node(node);
        (score > marks(proactiveness).1).then_some(score)
    }

    /// kswapd of a node is not asleep, throttled or waiting (`kswapd_is_running`).
    fn kswapd_runs(&self, node: usize) -> bool {
        let of = &self.reclaim.nodes[node];
        !of.kswapd_waits && !of.kswapd_is_throttled
    }

    /// `fragmentation_score_node`: of its zones by their share of its pages, 0 to 100.
    pub(super) fn fragmentation_score_node(&self, node: usize) -> u64 {
        let zones = node * ZONES..(node + 1) * ZONES;
        let present = |zone: usize| self.alloc.zones[zone].present;
        let all: u64 = zones.clone().map(present).sum();
        zones.map(|zone| present(zone) * self.fragmentation_score_zone(zone) / (all + 1)).sum()
    }

    /// `extfrag_for_order`: the share of free pages, in percent, that are in blocks smaller than a huge page.
    fn fragmentation_score_zone(&self, zone: usize) -> u64 {
        let pages = |orders: std::ops::RangeInclusive<u32>| -> u64 {
            orders.map(|order| self.alloc.free_blocks(zone, order) << order).sum()
        };
        let (small, large) = (pages(0..=HUGE_ORDER - 1), pages(HUGE_ORDER..=MAX_ORDER));
        (small * 100).checked_div(small + large).unwrap_or(0)
    }

    /// Whether proactive compaction of a zone goes on.
    pub(super) fn proactive_finished(&self, zone: usize) -> Status {
        if self.kswapd_runs(self.alloc.zones[zone].node) {
            return Status::PartialSkipped;
        }
        let low = marks(self.reclaim.rules.proactiveness).0;
        if self.fragmentation_score_zone(zone) > low { Status::Continue } else { Status::Success }
    }
}

impl Pass {
    /// Of a zone, not begun, for no order.
    pub(super) fn proactive(zone: usize) -> Pass {
        let mut pass = Pass::new(zone, 0, Migratetype::Unmovable, ZoneKind::Device, Mode::SyncLight);
        (pass.proactive, pass.thorough) = (true, true);
        pass
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::kernel;
    use super::*;
    use crate::page_alloc::{Caller, Policy, Request};
    use crate::probe::Task;

    /// DMA32.
    const ZONE: usize = 1;

    #[test]
    fn marks_follow_from_proactiveness() {
        assert_eq!([20, 0, 1, 95, 100].map(marks), [(80, 90), (100, 100), (99, 100), (5, 15), (5, 15)]);
    }

    #[test]
    fn a_node_is_compacted_when_its_free_memory_is_scattered() {
        let mut kernel = kernel();
        kernel.reclaim.rules.proactiveness = 40;
        kernel.reclaim.nodes[0].kswapd_waits = true;
        assert!(kernel.fragmentation_score_node(0) < 10);
        assert_eq!(kernel.should_proactive_compact_node(0), None);
        let (task, mut caller) = (Task::default(), Caller::new(0, Task::default(), Policy::Default));
        let mut pages = Vec::new();
        while let Ok(page) = kernel.allocate(&mut caller, &Request::USER) {
            pages.push(page);
        }
        let every: Vec<u32> = pages.into_iter().filter(|page| page % 4 != 0).collect();
        every.into_iter().for_each(|page| kernel.free(0, task, page).unwrap());
        assert!(kernel.fragmentation_score_zone(ZONE) > 90);
        // The last allocation has woken kswapd.
        assert_eq!(kernel.should_proactive_compact_node(0), None);
        kernel.reclaim.nodes[0].kswapd_waits = true;
        assert!(kernel.should_proactive_compact_node(0).is_some_and(|score| score > 70));
        assert_eq!(kernel.proactive_finished(ZONE), Status::Continue);
        kernel.reclaim.nodes[0].kswapd_waits = false;
        assert_eq!(kernel.should_proactive_compact_node(0), None);
        assert_eq!(kernel.proactive_finished(ZONE), Status::PartialSkipped);
    }
}
