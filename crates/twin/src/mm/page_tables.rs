//! Page tables of a region: `__pte_alloc`, `__pmd_alloc`, `__pud_alloc` (4.13 to 6.18, four levels).
//!
//! A table of the lowest level maps 2 MiB, one above it 1 GiB; regions are assumed not to share a gibibyte. The first
//! region of a process has the table above those, for 512 GiB. Each is a page of the kernel's own, allocated by the
//! policy of the task before the first page that it maps. Not modelled: the tables of all but the first process that
//! maps a shared region, and tables of a process for other areas than its regions. Checked page by page against guests
//! whose state was recorded (docs/fidelity.md).

use crate::frame::{NO_PAGE, Pfn};
use crate::mm::kernel::{Kernel, KernelError};
use crate::page_alloc::{AllocationFailure, Caller, HUGE_ORDER, Request};

/// Entries of a table.
const ENTRIES: u64 = 512;
/// Pages that a table of the lowest level maps.
const LOWEST: u64 = 1 << HUGE_ORDER;

/// A page for a table (`GFP_PGTABLE_USER`).
const TABLE: Request = Request { gfp: "GFP_KERNEL_ACCOUNT|__GFP_ZERO", ..Request::KERNEL };

/// The tables, [`NO_PAGE`] where there is none yet.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// By 2 MiB.
    lowest: Vec<Pfn>,
    /// By gibibyte.
    middle: Vec<Pfn>,
    /// One, if this is the first region of its process.
    upper: Vec<Pfn>,
}

/// Allocates a table, charged to the task's cgroup.
fn table(kernel: &mut Kernel, caller: &mut Caller) -> Result<Pfn, AllocationFailure> {
    let table = kernel.allocate_charged(caller, &TABLE)?.page;
    kernel.alloc.frames.set_cgroup(table, caller.cgroup);
    Ok(table)
}

fn free(kernel: &mut Kernel, caller: &Caller, table: Pfn) -> Result<(), KernelError> {
    kernel.uncharge(table);
    Ok(kernel.free_unchecked(caller.cpu, caller.task, table)?)
}

impl Tables {
    /// None yet, for a region of this many pages.
    pub(crate) fn new(pages: u64) -> Tables {
        let none = |count: u64| vec![NO_PAGE; count as usize];
        Tables { lowest: none(pages.div_ceil(LOWEST)), middle: none(pages.div_ceil(LOWEST * ENTRIES)), upper: none(0) }
    }

    /// The region is the first of its process.
    pub(crate) fn set_first(&mut self) {
        self.upper = vec![NO_PAGE];
    }

    /// Sees to it that a page can be mapped.
    #[inline]
    pub(crate) fn reach(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        page: u64,
    ) -> Result<(), AllocationFailure> {
        let lowest = (page / LOWEST) as usize;
        if self.lowest[lowest] != NO_PAGE {
            return Ok(());
        }
        self.reach_block(kernel, caller, page)?;
        self.lowest[lowest] = table(kernel, caller)?;
        Ok(())
    }

    /// Sees to it that a page's block can be mapped as a huge page, which needs a table of the lowest level after it is
    /// allocated (`pgtable_trans_huge_deposit`).
    pub(crate) fn reach_block(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        page: u64,
    ) -> Result<(), AllocationFailure> {
        let middle = (page / LOWEST / ENTRIES) as usize;
        let places = [self.upper.first_mut(), Some(&mut self.middle[middle])];
        for table in places.into_iter().flatten().filter(|table| **table == NO_PAGE) {
            *table = self::table(kernel, caller)?;
        }
        Ok(())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        let all = self.lowest.iter().chain(&self.middle).chain(&self.upper);
        all.filter(|table| **table != NO_PAGE).count() as u64
    }

    /// Gives the tables of the lowest level back that map nothing but some pages (`free_pgtables`).
    pub(crate) fn free_within(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        pages: std::ops::Range<u64>,
    ) -> Result<(), KernelError> {
        let whole = pages.start.div_ceil(LOWEST)..pages.end / LOWEST;
        for table in whole {
            let table = std::mem::replace(&mut self.lowest[table as usize], NO_PAGE);
            if table != NO_PAGE {
                free(kernel, caller, table)?;
            }
        }
        Ok(())
    }

    /// Gives all tables back.
    pub(crate) fn free(&mut self, kernel: &mut Kernel, caller: &Caller) -> Result<(), KernelError> {
        for level in [&mut self.lowest, &mut self.middle, &mut self.upper] {
            for table in std::mem::take(level).into_iter().filter(|table| *table != NO_PAGE) {
                free(kernel, caller, table)?;
            }
        }
        Ok(())
    }
}
