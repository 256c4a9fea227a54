//! System calls on shared memory: `shmem_file_read_iter`, `shmem_write_begin`, `shmem_get_folio` (6.1 to 6.12); faults of
//! mappings are in [`super::region`].
//!
//! A read of a page that was never written copies zeros and allocates nothing; a write allocates the page, which no page
//! table maps. Not modelled: a call on a page that is swapped out, which maps the page here. Checked by
//! `tests/numa_files.rs`.

use super::filemap::{Reader, Touched};
use super::kernel::Kernel;
use super::memory::AccessState;
use super::region::Entry;
use crate::frame::Flag;
use crate::page_alloc::{AllocationFailure, Caller};

impl AccessState {
    /// A call reads or writes a page of shared memory. On failure the same call continues where it was.
    pub(crate) fn shmem_call(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        (region, mapper, reader): (usize, usize, &mut Reader),
        page: u64,
        write: bool,
    ) -> Result<Touched, AllocationFailure> {
        if let Entry::Gone(_) = self.regions[region].entry(page) {
            match self.swap_in(kernel, caller, (region, mapper, reader), page, write)? {
                Touched::Done => {}
                later => return Ok(later),
            }
        }
        match self.regions[region].entry(page) {
            Entry::Present(pfn) => {
                kernel.spend(caller.cpu, if write { self.costs.file_write } else { self.costs.file_call });
                self.mark_accessed(kernel, caller.cpu, pfn);
            }
            _ if write => {
                let pfn = self.regions[region].allocate(kernel, caller, page)?;
                kernel.alloc.frames.set_flag(pfn, Flag::Referenced, true);
                kernel.spend(caller.cpu, self.costs.shmem_create + self.costs.file_write);
            }
            _ => kernel.spend(caller.cpu, self.costs.file_call),
        }
        Ok(Touched::Done)
    }
}
