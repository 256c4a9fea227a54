//! Single accesses, in the order of the program.

use super::accessor::{AccessProgress, Accessing, Accessor};
use crate::mm::filemap::Touched;
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::region::Entry;
use crate::page_alloc::{AllocationFailure, Caller};
use crate::time::{PS_PER_NS, Ps};
use mmtwin_scenario::program::Access as Touch;
use mmtwin_scenario::workload::Via;

/// Makes accesses until a time, or until there are effects for the engine. An access that has begun is completed, with
/// its think time; one that fails or has to wait is repeated.
pub(super) fn run(
    accessor: &mut Accessor,
    state: &mut AccessState,
    kernel: &mut Kernel,
    caller: &mut Caller,
    until: Ps,
) -> Result<AccessProgress, AllocationFailure> {
    let (cpu, count) = (caller.cpu, accessor.list.len());
    while kernel.clock(cpu) < until && !kernel.has_effects() {
        if let Some(until) = kernel.go_on_writing(caller) {
            return Ok(AccessProgress::Asleep(until * PS_PER_NS));
        }
        let turn = (0..count).map(|i| (accessor.turn + i) % count).find(|&i| accessor.list[i].active());
        let Some(turn) = turn else { return Ok(AccessProgress::Done) };
        let access = &mut accessor.list[turn];
        if let Some(due) = access.arrives(kernel.clock(cpu)).filter(|due| *due > kernel.clock(cpu)) {
            return Ok(AccessProgress::Asleep(due + state.costs.wakeup));
        }
        access.begin(kernel.clock(cpu));
        // Pages that it frees are its own.
        let given = access.renew(state, kernel, caller);
        debug_assert!(given.is_ok());
        let Some(next) = access.plan.stream.next() else { return Ok(AccessProgress::Done) };
        let next = Touch { page: access.plan.pages.start + next.page, ..next };
        match touch(access, state, kernel, caller, next) {
            Ok(None) => {}
            again => {
                access.plan.stream.count -= 1;
                accessor.turn = turn;
                return Ok(again?.unwrap_or(AccessProgress::On));
            }
        }
        access.end(kernel, cpu, &state.costs);
        accessor.turn = (turn + 1) % count;
        if let Some(until) = after(access, state, kernel, caller, next) {
            return Ok(AccessProgress::Asleep(until));
        }
        if access.plan.sleep > 0 {
            return Ok(AccessProgress::Asleep(kernel.clock(cpu) + access.plan.sleep * PS_PER_NS));
        }
    }
    Ok(if accessor.list.iter().any(|access| access.active()) { AccessProgress::On } else { AccessProgress::Done })
}

/// Accesses a page of the region; `None`: done, with its think time. Else it has to be repeated after this.
pub(super) fn touch(
    access: &mut Accessing,
    state: &mut AccessState,
    kernel: &mut Kernel,
    caller: &mut Caller,
    touch: Touch,
) -> Result<Option<AccessProgress>, AllocationFailure> {
    let (cpu, start) = (caller.cpu, kernel.clock(caller.cpu));
    let from = kernel.machine.node_of(cpu);
    let came = come_to(access, state, kernel, caller, touch);
    // Completed parts of an access that is repeated are not repeated.
    let there = kernel.clock(cpu);
    access.time += there - start;
    match came? {
        Touched::Done => {}
        Touched::Wait(until) => return Ok(Some(AccessProgress::Asleep(until))),
        Touched::Again => return Ok(Some(AccessProgress::On)),
        Touched::Locked => return Ok(Some(AccessProgress::Waiting)),
    }
    // Calls do not go through page tables.
    let via_table = access.plan.via == Via::Mmap || state.regions[access.region].anon;
    if let Some(mapping) = access.mapping.filter(|_| via_table)
        && let Some(unit) = state.mappings[mapping].marked_at(touch.page)
    {
        return Ok(Some(AccessProgress::Marked(mapping, unit)));
    }
    let node = match state.regions[access.region].entry(touch.page) {
        Entry::Present(pfn) => kernel.machine.node_of_page(pfn.into()).unwrap_or(from),
        // The zero page is in every cache.
        Entry::Absent | Entry::Zero | Entry::Gone(_) => from,
    };
    let lines = f64::from(access.plan.lines);
    state.load.touch(from, node, lines, f64::from(u8::from(touch.write)));
    // An access takes some time, so that the loop ends.
    let time = (state.load.latency(from, node) * lines) as Ps + access.plan.think * PS_PER_NS;
    kernel.spend(cpu, time.max(1));
    let own = kernel.clock(cpu) - there;
    (access.time, access.user) = (access.time + own, access.user + own);
    Ok(None)
}

/// After an access: a task that has dirtied many file pages pauses until then.
pub(super) fn after(
    access: &Accessing,
    state: &mut AccessState,
    kernel: &mut Kernel,
    caller: &mut Caller,
    touch: Touch,
) -> Option<Ps> {
    let of = &mut state.regions[access.region];
    if !touch.write || !of.file {
        return None;
    }
    let until = kernel.balance_dirty_pages(caller)? * PS_PER_NS;
    if access.plan.via == Via::Syscall {
        // The call pauses with the file locked.
        of.lock.hold(until);
    }
    Some(until)
}

/// Faults a page in if needed, and accesses it.
fn come_to(
    access: &mut Accessing,
    state: &mut AccessState,
    kernel: &mut Kernel,
    caller: &mut Caller,
    touch: Touch,
) -> Result<Touched, AllocationFailure> {
    let (region, mapper, page) = (access.region, access.mapper, touch.page);
    if access.plan.via == Via::Syscall && !state.regions[region].anon {
        let done = match state.regions[region].file {
            true => state.file_call(kernel, caller, (region, mapper, &mut access.reader), page, touch.write),
            false => state.shmem_call(kernel, caller, (region, mapper, &mut access.reader), page, touch.write),
        };
        if access.threaded && matches!(done, Ok(Touched::Done)) {
            kernel.spend(caller.cpu, state.costs.file_reference);
        }
        return done;
    }
    while !state.regions[region].is_mapped(mapper, page, touch.write) {
        match state.fault(kernel, caller, (region, mapper, &mut access.reader), page, touch.write)? {
            Touched::Done => access.note_fault(),
            later => return Ok(later),
        }
    }
    let of = &mut state.regions[region];
    of.touch(mapper, page);
    if touch.write {
        of.note_write(page);
    }
    if of.file && touch.write && state.dirty_mapped(kernel, caller, region, page) {
        // It was mapped for reading only.
        access.note_fault();
        kernel.stat.events.faults += 1;
        kernel.spend(caller.cpu, state.costs.cached_fault + state.costs.mkwrite);
    }
    Ok(Touched::Done)
}
