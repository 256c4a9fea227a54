//! Every touch by itself, in the order of the program.

use super::{AccessState, Accessing, Accessor, Came, Entry, Touched};
use crate::alloc::{AllocationFailure, Caller};
use crate::kernel::{Kernel, PS_PER_NS, Ps};
use mmtwin_scenario::workload::Via;
use mmtwin_workload::Access as Touch;

/// Touches until a time, or until others have to hear of something. A touch that has begun is completed, with its think
/// time; one that fails or has to wait is made again.
pub(super) fn run(
    accessor: &mut Accessor,
    state: &mut AccessState,
    kernel: &mut Kernel,
    caller: &mut Caller,
    until: Ps,
) -> Result<Came, AllocationFailure> {
    let (cpu, count) = (caller.cpu, accessor.list.len());
    let from = kernel.machine.node_of(cpu);
    while kernel.clock(cpu) < until && !kernel.wants_attention() {
        if let Some(until) = kernel.go_on_writing(cpu, caller.task, &mut caller.writer) {
            return Ok(Came::Asleep(until * PS_PER_NS));
        }
        let turn = (0..count).map(|i| (accessor.turn + i) % count).find(|&i| accessor.list[i].active());
        let Some(turn) = turn else { return Ok(Came::Done) };
        let access = &mut accessor.list[turn];
        let Some(touch) = access.touching.stream.next() else { return Ok(Came::Done) };
        let (page, start) = (access.touching.pages.start + touch.page, kernel.clock(cpu));
        let came = come_to(access, state, kernel, caller, (page, touch));
        let marked = access.mapping.and_then(|mapping| Some((mapping, state.mappings[mapping].marked_at(page)?)));
        match came {
            Ok(Touched::Done) if marked.is_none() => {}
            again => {
                access.touching.stream.count -= 1;
                accessor.turn = turn;
                return match (again?, marked) {
                    (Touched::Wait(until), _) => Ok(Came::Asleep(until)),
                    (Touched::Done, Some((mapping, unit))) => Ok(Came::Marked(mapping, unit)),
                    (Touched::Done, None) => Ok(Came::On),
                };
            }
        }
        accessor.turn = (turn + 1) % count;
        let region = &mut state.regions[access.region];
        let node = match region.entry(page) {
            Entry::Present(pfn) => kernel.machine.node_of_page(pfn.into()).unwrap_or(from),
            // The zero page is in every cache.
            Entry::Absent | Entry::Zero | Entry::Gone(_) => from,
        };
        let lines = f64::from(access.touching.lines);
        state.load.touch(from, node, lines, f64::from(u8::from(touch.write)));
        kernel.spend(cpu, (state.load.latency(from, node) * lines) as Ps + access.touching.think * PS_PER_NS);
        access.time += kernel.clock(cpu) - start;
        if touch.write
            && state.regions[access.region].file
            && let Some(until) = kernel.balance_dirty_pages(cpu, caller.task, &mut caller.writer)
        {
            return Ok(Came::Asleep(until * PS_PER_NS));
        }
        if access.touching.sleep > 0 {
            return Ok(Came::Asleep(kernel.clock(cpu) + access.touching.sleep * PS_PER_NS));
        }
    }
    Ok(if accessor.list.iter().any(|access| access.active()) { Came::On } else { Came::Done })
}

/// Sees to it that a page is there, and touches it.
fn come_to(
    access: &mut Accessing,
    state: &mut AccessState,
    kernel: &mut Kernel,
    caller: &mut Caller,
    (page, touch): (u64, Touch),
) -> Result<Touched, AllocationFailure> {
    let region = access.region;
    if access.touching.via == Via::Syscall && state.regions[region].file {
        return state.file_call(kernel, caller, (region, &mut access.reader), page, touch.write);
    }
    while !state.regions[region].is_mapped(page, touch.write) {
        match state.fault(kernel, caller, (region, &mut access.reader), page, touch.write)? {
            Touched::Done => access.faults += 1,
            wait @ Touched::Wait(_) => return Ok(wait),
        }
    }
    let of = &mut state.regions[region];
    of.touch(page);
    if of.file && touch.write && state.dirty_mapped(kernel, caller, region, page) {
        // It was mapped for reading only.
        access.faults += 1;
        kernel.stat.events.faults += 1;
        kernel.spend(caller.cpu, state.costs.fault);
    }
    Ok(Touched::Done)
}
