//! The machine: memory ranges from zones, costs in cycles.

use crate::frame::ZoneKind;
use crate::hw::{
    Cpu, Curve, Device, LoopCosts, Machine, MachineError, Memory, MemoryError, Node, PAGE_SIZE, PageCosts, Path,
};
use crate::lab_guest::image::Heap;
use crate::mm::costs::FaultCosts;
use crate::mm::kernel::ZoneState;
use crate::mm::swap::Swap;
use crate::mm::writeback::RequestLimits;
use crate::time::PS_PER_NS;
use mmtwin_event::counters::Iomem;
use mmtwin_scenario::kernel::DmDelay;
use mmtwin_scenario::units::Cost;
use mmtwin_scenario::{Scenario, machine as say};
use std::ops::Range;

/// Page frames of the first 640 KiB without frame 0; the kernel gives none of them to the allocator.
const BIOS: Range<u64> = 1..0x9f;
/// First page frame behind the first MiB.
const FIRST_MIB_END: u64 = 256;

/// Nodes, CPUs and distances. A zone's memory is where `/proc/iomem` has it, if that is known and agrees, else at its
/// start. Its reserved pages are those of the kernel's image and the last ones, as the kernel reserves memory from the
/// top down while it boots (memblock), except in zone DMA of a PC, whose reserved pages are the firmware's.
pub fn machine(of: &say::Machine, iomem: &Iomem) -> Result<Machine, MachineError> {
    let image: Vec<Range<u64>> =
        if iomem.kernel.is_empty() { of.memory.kernel_image.frames().collect() } else { iomem.kernel.clone() };
    let nodes = of.nodes.iter().map(|node| {
        let (mut memory, mut reserved) = (Vec::<Range<u64>>::new(), Vec::new());
        for zone in &node.zones {
            let bios = BIOS.end - BIOS.start;
            if zone.start_pfn == BIOS.start && zone.present > bios && zone.present - zone.managed == bios {
                memory.extend([BIOS, FIRST_MIB_END..FIRST_MIB_END + zone.managed]);
                reserved.push(BIOS);
                continue;
            }
            let ranges = memory_of(zone, iomem);
            reserved.extend(reserved_of(zone, &ranges, &image));
            for range in ranges {
                match memory.last_mut() {
                    Some(before) if before.end == range.start => before.end = range.end,
                    _ => memory.push(range),
                }
            }
        }
        Node { memory, reserved }
    });
    let cpus = of.cpus.iter().map(|cpu| Cpu { node: cpu.node, core: cpu.core });
    // Validation keeps distances below 255.
    let row = |row: &Vec<u32>| row.iter().map(|&distance| distance.min(u8::MAX.into()) as u8).collect();
    Machine::new(nodes.collect(), cpus.collect(), of.distance.iter().map(row).collect())
}

/// Where a zone's memory is.
fn memory_of(zone: &say::Zone, iomem: &Iomem) -> Vec<Range<u64>> {
    let (start, end) = (zone.start_pfn, zone.start_pfn + zone.spanned);
    let within = iomem.ram.iter().map(|range| range.start.max(start)..range.end.min(end));
    let within: Vec<Range<u64>> = within.filter(|range| !range.is_empty()).collect();
    match pages(&within) == zone.present {
        true => within,
        false => std::iter::once(start..start + zone.present).collect(),
    }
}

/// The pages of a zone's memory that it does not manage, ascending.
fn reserved_of(zone: &say::Zone, memory: &[Range<u64>], image: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = zone.present - zone.managed;
    let mut reserved = Vec::new();
    for image in image {
        let of = memory.iter().find(|range| range.contains(&image.start));
        let length = of.map_or(0, |range| (image.end.min(range.end) - image.start).min(left));
        if length > 0 {
            reserved.push(image.start..image.start + length);
            left -= length;
        }
    }
    // The rest from the top down, between the parts of the image.
    let mut between = Vec::new();
    for range in memory {
        let within = reserved.iter().filter(|image| range.contains(&image.start));
        let end = within.fold(range.start, |at, image| {
            between.push(at..image.start);
            image.end
        });
        between.push(end..range.end);
    }
    for range in between.into_iter().rev().filter(|range| !range.is_empty()) {
        let length = left.min(range.end - range.start);
        left -= length;
        reserved.extend(Some(range.end - length..range.end).filter(|_| length > 0));
    }
    reserved.sort_unstable_by_key(|range| range.start);
    reserved
}

fn pages(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// The machine with the zones that a running kernel had, if it is known; they are of this machine
/// ([`crate::engine::check_state`]).
pub fn with_zones(of: &say::Machine, state: &[ZoneState]) -> say::Machine {
    let mut machine = of.clone();
    for (number, node) in machine.nodes.iter_mut().enumerate() {
        let mut zones: Vec<&ZoneState> = state.iter().filter(|zone| zone.node == number).collect();
        zones.sort_by_key(|zone| zone.kind);
        let zone = |state: &&ZoneState| {
            let kind = match state.kind {
                ZoneKind::Dma => say::ZoneKind::Dma,
                ZoneKind::Dma32 => say::ZoneKind::Dma32,
                ZoneKind::Normal => say::ZoneKind::Normal,
                ZoneKind::Movable => say::ZoneKind::Movable,
                // Memory of devices is not allocated.
                ZoneKind::Device => return None,
            };
            let ZoneState { start_pfn, spanned, present, managed, .. } = **state;
            Some(say::Zone { kind, start_pfn, spanned, present, managed })
        };
        if !zones.is_empty() {
            node.zones = zones.iter().filter_map(zone).collect();
        }
    }
    machine
}

/// Swap and the disk below files.
pub(crate) fn disks(scenario: &Scenario) -> (Swap, Device) {
    let of = &scenario.machine;
    // One that takes no time by itself is memory, which the CPU copies; for any other its reader sleeps.
    let synchronous = of.disk.latency.0 == 0 && of.disk.seek.0 == 0;
    let disk = Device::new(of.disk.latency.0, of.disk.bandwidth.0, synchronous);
    let swap = of.swap.map_or(Swap::new(Some(Device::new(0, 0, true)), 0), |swap| {
        let own = Device::new(swap.latency.0, swap.bandwidth.0, swap.synchronous);
        let own = own.memory_backed(of.disk.memory_backed);
        Swap::new(Some(own).filter(|_| !swap.on_disk), swap.size.pages())
    });
    let swap = if scenario.kernel.reclaim.swap_nonfull_first { swap.nonfull_first() } else { swap };
    (swap, disk.seeking(of.disk.seek.0).memory_backed(of.disk.memory_backed))
}

/// Memory and time of requests to the disk of files.
pub(crate) fn request_limits(of: &say::Machine) -> RequestLimits {
    let say::Disk { queue_depth, bios_per_page, journal_blocks, .. } = of.disk;
    RequestLimits {
        queue_depth: queue_depth.into(),
        bios_per_page: bios_per_page.get().into(),
        journal_blocks: journal_blocks.get().into(),
    }
}

/// The heap of a process.
pub(crate) fn heap(of: &say::Machine) -> Heap {
    let say::Worker {
        heap_pages,
        heap_pages_per_thread,
        heap_absent_pages,
        heap_hot_pages,
        access: _,
        access_in_order: _,
        chance: _,
        think_excess: _,
        fault_count: _,
        module_load: _,
        module_wait: _,
    } = of.worker;
    Heap { pages: heap_pages.get(), per_thread: heap_pages_per_thread, absent: heap_absent_pages, hot: heap_hot_pages }
}

/// The disk of files with a kernel's ticks, which dm-delay counts.
pub(crate) fn behind_dm_delay(disk: Device, of: &Scenario) -> Device {
    const NS_PER_S: u64 = 1_000_000_000;
    let tick = NS_PER_S / u64::from(of.kernel.hz).max(1);
    let timer_wheel = of.kernel.writeback.dm_delay == DmDelay::Timer;
    if of.machine.disk.ticks { disk.at_ticks(tick, timer_wheel) } else { disk }
}

/// Costs of faults, calls and reclaim.
pub(crate) fn fault_costs(scenario: &Scenario) -> FaultCosts {
    let of = &scenario.machine;
    let cost = &of.cost;
    let or = |own: Cost, other: Cost| if own.0 == 0 { other.0 } else { own.0 };
    FaultCosts {
        fault: cost.page_fault.0,
        cached_fault: or(cost.cached_page_fault, cost.page_fault),
        fault_count: of.worker.fault_count.0 * PS_PER_NS,
        wakeup: cost.wakeup_latency.0 * PS_PER_NS,
        map_around: cost.map_around.0,
        map_further: cost.map_further.0,
        retry: cost.fault_retry.0,
        retry_alone: cost.fault_retry_alone.0,
        mkwrite: cost.page_mkwrite.0,
        mkwrite_dirty: or(cost.page_mkwrite_dirty, cost.page_mkwrite),
        zero_fault: or(cost.zero_page_fault, cost.page_fault),
        zero_write: cost.zero_page_write.0,
        clear_huge: if scenario.kernel.page_alloc.thp_cleared_twice { clear_huge(of) } else { clear_huge_once(of) },
        file_call: cost.file_call.0,
        file_reference: cost.file_reference.0,
        file_request: cost.file_request.0,
        file_folio: cost.file_folio.0,
        file_page: cost.file_page.0,
        scan_page: cost.reclaim_scan_page.0,
        rmap_page: cost.reclaim_rmap_page.0,
        unmap_page: cost.reclaim_unmap_page.0,
        batch: cost.reclaim_batch.0,
        pass: cost.reclaim_pass.0,
        swap_write: cost.swap_write.0,
        swap_write_async: cost.swap_write_async.0,
        swap_write_plugged: cost.swap_write_plugged.0,
        swap_write_further: cost.swap_write_further.0,
        pass_slot: cost.swap_slot_scan.0,
        swap_read: cost.swap_read.0,
        io_schedule: cost.io_schedule.0,
        read_end: cost.read_end.0,
        count_objects: cost.slab_count.0,
        shootdown: cost.tlb_shootdown.0,
        interrupt: cost.tlb_interrupt.0,
        free_page: cost.reclaim_free_page.0,
        unmap_further: cost.reclaim_unmap_further.0,
        free_further: cost.reclaim_free_further.0,
        free_buffers: cost.reclaim_free_buffers.0,
        scan_object: cost.slab_scan_object.0,
        init_page: cost.page_init.0,
        compact_scan: cost.compact_scan_page.0,
        compact_block: cost.compact_pageblock.0,
        migrate_page: cost.migrate_page.0,
        copy_page: copy_page(of),
        lookup: cost.name_lookup.0,
        file_write: cost.file_write.0,
        file_create: cost.file_create.0,
        file_dirty: cost.file_dirty.0,
        file_buffers: cost.file_buffers.0,
        shmem_create: cost.shmem_create.0,
        shmem_add: cost.shmem_add.0,
        shmem_write_fault: or(cost.shmem_write_fault, cost.page_fault),
        shmem_read_fault: or(cost.shmem_read_fault, cost.page_fault),
        shmem_look_around: cost.shmem_look_around.0,
        shmem_swap_write: cost.shmem_swap_write.0,
        shmem_swap_read: cost.shmem_swap_read.0,
        activate: cost.page_activate.0,
        write_page: cost.writeback_page.0,
        write_request: cost.writeback_request.0,
        write_mapped: cost.writeback_mapped.0,
        write_end: cost.writeback_end.0,
        zap_page: cost.zap_page.0,
        zap_shared: cost.zap_shared.0,
        zap_further: cost.zap_further.0,
        zap_huge: cost.zap_huge.0,
        huge_fault: cost.huge_fault.0,
    }
}

/// Costs of allocations. A CPU whose core has another busy thread takes `smt_slowdown` times as long for its own work;
/// a line of another CPU's counters costs the mean of fetching it from every other CPU.
pub fn costs(of: &say::Machine) -> PageCosts {
    let clock_khz = of.cpu.frequency.0 / 1000;
    let cycles = |cost: Cost| cost.0 as f64 * clock_khz as f64 / 1e9;
    // The scenario counts an allocation's two counters together.
    let count = |cost: Cost| cycles(cost) / 2.0;
    let cost = &of.cost;
    let alone = LoopCosts {
        work: cycles(cost.page_alloc_free),
        free_to_buddy: cycles(cost.page_bulk),
        count_s8: count(cost.numa_counters_s8),
        count_u16: count(cost.numa_counters_u16),
        count_word: count(cost.numa_counters_events),
    };
    let slow = of.cpu.smt_slowdown;
    let shared_core = LoopCosts {
        work: alone.work * slow,
        free_to_buddy: alone.free_to_buddy * slow,
        count_s8: alone.count_s8 * slow,
        count_u16: alone.count_u16 * slow,
        count_word: alone.count_word * slow,
    };
    let (refill, lru_add) = (cost.pcp_refill.0, cost.lru_add.0);
    let others = of.cpus.len().saturating_sub(1).max(1) as f64;
    let fetched: f64 = (1..of.cpus.len() as u32).map(|cpu| cycles(of.line.transfer.of(of.between(0, cpu)))).sum();
    let (refetch, interleave) = (cycles(cost.zone_reread), cost.interleave.0);
    PageCosts { clock_khz, alone, shared_core, refetch, read_line: fetched / others, interleave, refill, lru_add }
}

/// Latency and bandwidth of memory.
pub fn memory(of: &say::Machine) -> Result<Memory, MemoryError> {
    let curve = |curve: &say::Curve| {
        // The first point, no load, is understood.
        Curve::new(&curve.points()[1..].iter().map(|&[share, multiple]| (share, multiple)).collect::<Vec<_>>())
    };
    let nodes = of.nodes.len();
    let path = |from: usize, to: usize| Path {
        idle_ns: of.memory.latency[from][to].0 as f64 / 1e3,
        peak: of.memory.bandwidth[from][to].0 as f64,
    };
    let paths = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))).map(|(from, to)| path(from, to));
    Memory::new(nodes, paths.collect(), curve(&of.memory.local)?, curve(&of.memory.remote)?)
}

/// Bytes of a huge page, and of a cache line.
const HUGE: u64 = 2 << 20;
const LINE: u64 = 64;

/// Line fill buffers of a core, Nehalem to Broadwell (Optimization Reference Manual of their maker); assumed of the others.
const LINES_UNDER_WAY: u64 = 10;

/// Picoseconds to clear a huge page: its size over the bandwidth of a node, shared by the node's CPUs as they are when
/// all are busy; where the kernel clears what it gives (`init_on_alloc`), that comes before.
pub fn clear_huge(of: &say::Machine) -> u64 {
    let node = of.cpus.first().map_or(0, |cpu| cpu.node as usize);
    clear_huge_on(of, node, node)
}

/// The same if it is cleared once, by the allocator where that clears what it gives.
fn clear_huge_once(of: &say::Machine) -> u64 {
    let init = of.cost.page_init.0 * HUGE / PAGE_SIZE;
    if init > 0 { init } else { clear_huge(of) }
}

/// Picoseconds to copy a page by one task: each of its lines is fetched, and that of the new page, with as many under way as a
/// core has buffers for. CPUs of which one runs at a time take what they take to clear it.
fn copy_page(of: &say::Machine) -> u64 {
    if of.cpu.single_threaded_tcg {
        return clear_huge(of) / (HUGE / PAGE_SIZE);
    }
    let node = of.cpus.first().map_or(0, |cpu| cpu.node as usize);
    2 * (PAGE_SIZE / LINE) * of.memory.latency[node][node].0 / LINES_UNDER_WAY
}

/// The same of moving a huge page's bytes between the CPUs of node `to` and the memory of node `from`, into a new one. CPUs
/// of which one runs at a time do not share the bandwidth.
pub(crate) fn clear_huge_on(of: &say::Machine, from: usize, to: usize) -> u64 {
    let sharing = if of.cpu.single_threaded_tcg { 1 } else { of.nodes[to].cpus.len().max(1) };
    let bandwidth = of.memory.bandwidth[to][from].0.max(1);
    let moved = (u128::from(HUGE) * sharing as u128 * 1_000_000_000_000 / u128::from(bandwidth)) as u64;
    moved + of.cost.page_init.0 * (HUGE / PAGE_SIZE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn preset(name: &str) -> say::Machine {
        let text = format!("[machine]\npreset = \"{name}\"\n[kernel]\nrelease = \"4.13\"\n");
        mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap().machine
    }

    #[test]
    fn every_preset_has_the_pages_of_its_zones() {
        // `base` is what the others build on, no machine.
        for name in mmtwin_scenario::preset_names().filter(|name| *name != "base") {
            let said = preset(name);
            assert!(memory(&said).is_ok(), "{name}");
            let built = machine(&said, &Iomem::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
            for (node, of) in built.nodes.iter().zip(&said.nodes) {
                assert_eq!(node.pages(), of.zones.iter().map(|zone| zone.present).sum::<u64>(), "{name}");
                let reserved: u64 = node.reserved.iter().map(|range| range.end - range.start).sum();
                let managed: u64 = of.zones.iter().map(|zone| zone.managed).sum();
                assert_eq!(node.pages() - reserved, managed, "{name}");
            }
        }
    }

    #[test]
    fn reserved_pages_are_the_image_and_the_last_ones() {
        let zone = |spanned, present, managed| say::Zone {
            kind: say::ZoneKind::Dma32,
            start_pfn: 4096,
            spanned,
            present,
            managed,
        };
        let iomem = Iomem { ram: vec![256..0x2000, 0x3000..0x3100], kernel: vec![0x1000..0x1200, 0x1400..0x1500] };
        let of = |zone: say::Zone| {
            let memory = memory_of(&zone, &iomem);
            (memory.clone(), reserved_of(&zone, &memory, &iomem.kernel))
        };
        let (memory, reserved) = of(zone(0x2100, 0x1100, 0xc00));
        assert_eq!(memory, [0x1000..0x2000, 0x3000..0x3100]);
        assert_eq!(reserved, [0x1000..0x1200, 0x1400..0x1500, 0x1f00..0x2000, 0x3000..0x3100]);
        // The ranges are of another machine; there is less than the image; all is reserved.
        let (memory, reserved) = of(zone(0x2100, 0x1000, 0xff0));
        assert_eq!((memory.len(), &memory[0]), (1, &(0x1000..0x2000)));
        assert_eq!((reserved.len(), &reserved[0]), (1, &(0x1000..0x1010)));
        let all = of(zone(0x2100, 0x1100, 0)).1;
        assert_eq!((pages(&all), all.len()), (0x1100, 5));
    }

    #[test]
    fn the_published_machine_has_the_published_cycles() {
        let costs = costs(&preset("broadwell-2s-88"));
        assert_eq!(costs.clock_khz, 2_194_000);
        assert!((costs.alone.work - 176.0).abs() < 0.01 && (costs.shared_core.work - 342.0).abs() < 0.02);
        assert!((costs.shared_core.count_u16 - 13.25).abs() < 0.01);
    }
}
