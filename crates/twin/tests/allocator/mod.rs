//! The page allocator and its counters as a whole.

mod batches;
mod counters;
mod migratetypes;
mod nodes;
mod schedules;

use mmtwin_event::vocabulary::{MmPageAlloc, MmPageAllocExtfrag, MmPagePcpuDrain};
use mmtwin_event::{Event, Kind, Sink};
use mmtwin_twin::hw::{Cpu, Machine, Node};
use mmtwin_twin::mm::kernel::Kernel;
use mmtwin_twin::page_alloc::{Caller, Policy, Rules};
use mmtwin_twin::probe::Task;
use mmtwin_twin::vmstat::NUMA_ITEMS;
use std::ops::Range;

const RULES: [Rules; 3] = [Rules::V4_13, Rules::V6_1, Rules::V6_12];

fn caller(cpu: u32, policy: Policy) -> Caller {
    Caller::new(cpu, Task { pid: 100 + cpu as i32, tgid: 100 }, policy)
}

/// A machine of three nodes: node 2 without CPUs, all small, so that allocations fail and fall back.
fn small() -> Machine {
    let node = |memory: Range<u64>| Node { memory: vec![memory], reserved: Vec::new() };
    let nodes = vec![node(1..6144), node(6144..8200), node(8200..10_000)];
    let cpus = (0..6).map(|cpu| Cpu { node: cpu / 3, core: cpu }).collect();
    let distance = vec![vec![10, 20, 30], vec![20, 10, 20], vec![30, 20, 10]];
    Machine::new(nodes, cpus, distance).unwrap()
}

fn snapshots(kernel: &Kernel) -> Vec<[u64; NUMA_ITEMS]> {
    let zones = 0..kernel.alloc.zones.len();
    zones.map(|zone| kernel.stat.numa.snapshot(zone, kernel.stat.online())).collect()
}

/// Events of the allocator: runs of one kind, steals, drained pages, and the gfp flags of the last allocation.
#[derive(Default)]
struct Seen {
    kinds: Vec<(Kind, u64)>,
    stolen: Vec<MmPageAllocExtfrag>,
    gfp: Vec<u8>,
    drained: Vec<u64>,
}

impl Sink for Seen {
    fn event(&mut self, event: &Event<'_>) {
        match self.kinds.last_mut() {
            Some((kind, count)) if *kind == event.kind => *count += 1,
            _ => self.kinds.push((event.kind, 1)),
        }
        match event.kind {
            Kind::MmPageAllocExtfrag => self.stolen.push(event.typed()),
            Kind::MmPagePcpuDrain => self.drained.push(event.typed::<MmPagePcpuDrain>().pfn.unwrap()),
            Kind::MmPageAlloc => {
                assert!(event.typed::<MmPageAlloc>().pfn.is_some());
                self.gfp = event.raw.to_vec();
            }
            _ => {}
        }
    }
}
