//! An allocation that finds all zones below their low marks: the part of `__alloc_pages_slowpath` before reclaim (6.1
//! to 6.12).
//!
//! A task that may wait and still finds no page has to reclaim, which the engine runs ([`super`]); the returned failure
//! has the reason.

use crate::mm::kernel::Kernel;
use crate::page_alloc::{Allocated, AllocationFailure, Caller, Search};

impl Kernel {
    /// Continues a search that has found nothing above the low marks.
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
}
