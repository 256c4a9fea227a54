//! An allocation that finds all zones below their low marks: the part of `__alloc_pages_slowpath` before reclaim, and
//! `wake_all_kswapds` (6.1 to 6.12).
//!
//! Who may wait and still finds nothing has to reclaim, which the engine lets its task do (`mm/slowpath/mod.rs`); the
//! failure that is given back says for what.

use crate::frame::{ZONES, ZoneKind};
use crate::mm::kernel::Kernel;
use crate::page_alloc::{Allocated, AllocationFailure, Caller, Search};

impl Kernel {
    /// Goes on with a search that has found nothing above the low marks.
    pub(crate) fn allocate_slowly(
        &mut self,
        caller: &Caller,
        mut search: Search<'_>,
    ) -> Result<Allocated, AllocationFailure> {
        if search.request.kswapd {
            self.wake_all_kswapds(caller, &search);
        }
        self.alloc.urge(&mut search);
        let (alloc, mut ctx) = self.split(caller.cpu, caller.task);
        if let Some(got) = alloc.allocate(&mut ctx, &mut search) {
            return Ok(got);
        }
        let failure = alloc.fail(&mut ctx, &search);
        if !search.request.may_wait {
            alloc.note_allocation(&mut ctx, search.request, None);
        }
        Err(failure)
    }

    fn wake_all_kswapds(&mut self, caller: &Caller, search: &Search<'_>) {
        if self.reclaim.rules.per_zone_lru.is_some() {
            let zones: Vec<usize> = self.alloc.zones_of(search).collect();
            let preferred = zones.first().map_or(search.request.highest, |&zone| ZoneKind::ALL[zone % ZONES]);
            return zones.into_iter().for_each(|zone| {
                self.wakeup_kswapd_of_zone(caller.cpu, caller.task, zone, search.request.order, preferred);
            });
        }
        let mut nodes: Vec<usize> = self.alloc.zones_of(search).map(|zone| zone / ZONES).collect();
        nodes.dedup();
        for node in nodes {
            self.wakeup_kswapd(caller.cpu, caller.task, node, search.request);
        }
    }
}
