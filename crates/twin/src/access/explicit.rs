//! Every touch by itself, in the order of the program.

use super::{AccessState, Accessor, Came, Entry};
use crate::alloc::{AllocationFailure, Caller};
use crate::kernel::{Kernel, PS_PER_NS, Ps};

/// Touches until a time. A touch that has begun is completed, with its think time.
pub(super) fn run(
    accessor: &mut Accessor,
    state: &mut AccessState,
    kernel: &mut Kernel,
    caller: &mut Caller,
    until: Ps,
) -> Result<Came, AllocationFailure> {
    let (cpu, count) = (caller.cpu, accessor.list.len());
    let from = kernel.machine.node_of(cpu);
    while kernel.clock(cpu) < until {
        let turn = (0..count).map(|i| (accessor.turn + i) % count).find(|&i| accessor.list[i].active());
        let Some(turn) = turn else { return Ok(Came::Done) };
        accessor.turn = (turn + 1) % count;
        let access = &mut accessor.list[turn];
        let Some(touch) = access.touching.stream.next() else { return Ok(Came::Done) };
        let (page, start) = (access.touching.pages.start + touch.page, kernel.clock(cpu));
        let region = &mut state.regions[access.region];
        while !region.is_mapped(page, touch.write) {
            access.faults += 1;
            region.fault(kernel, caller, &state.costs, page, touch.write)?;
        }
        if let Some(mapping) = access.mapping
            && let Some(unit) = state.mappings[mapping].marked_at(page)
        {
            // The same touch again after the fault.
            access.touching.stream.count -= 1;
            accessor.turn = turn;
            return Ok(Came::Marked(mapping, unit));
        }
        let node = match region.entry(page) {
            Entry::Present(pfn) => kernel.machine.node_of_page(pfn.into()).unwrap_or(from),
            // The zero page is in every cache.
            Entry::Absent | Entry::Zero => from,
        };
        let lines = f64::from(access.touching.lines);
        state.load.touch(from, node, lines, f64::from(u8::from(touch.write)));
        kernel.spend(cpu, (state.load.latency(from, node) * lines) as Ps + access.touching.think * PS_PER_NS);
        access.time += kernel.clock(cpu) - start;
        if access.touching.sleep > 0 {
            return Ok(Came::Asleep(kernel.clock(cpu) + access.touching.sleep * PS_PER_NS));
        }
    }
    Ok(if accessor.list.iter().any(|access| access.active()) { Came::On } else { Came::Done })
}
