//! Steps of reclaim on a machine that has just booted, or whose zones have been emptied.

use super::balance_pgdat::{Balance, Work};
use super::isolate::{Mode, isolate};
use super::shrink_inactive::Batch;
use super::state::NO_RESERVE;
use super::{Direct, Kswapd};
use crate::build;
use crate::frame::{Flag, Migratetype, Pfn, State, ZoneKind};
use crate::hw::load::Load;
use crate::hw::{Device, IoClass};
use crate::mm::kernel::Kernel;
use crate::mm::lru::List;
use crate::mm::memory::AccessState;
use crate::mm::region::{Region, Shape};
use crate::mm::vmscan::{Control, Poll, Who, World};
use crate::page_alloc::{Caller, Policy, Request};
use crate::probe::{Probe, Task};
use crate::time::PS_PER_NS;
use mmtwin_event::{Event, Kind, Sink};
use std::path::Path;

pub(super) const DMA32: usize = 1;
const SINGLE_PAGES: Work = Work { order: 0, highest: DMA32 };

/// 256 MiB without swap, and what a task of CPU 0 does there.
pub(super) fn on<T>(release: &str, then: impl FnOnce(&mut World<'_>) -> T) -> (T, Vec<(Kind, u64)>) {
    let text = format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"256 MiB\"\n\
         [kernel]\nrelease = \"{release}\"\n"
    );
    let scenario = mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap();
    let kinds = [
        Kind::MmVmscanWakeupKswapd,
        Kind::WritebackCongestionWait,
        Kind::WritebackWaitIffCongested,
        Kind::MmVmscanWriteFolio,
    ];
    let mut kernel: Kernel = build::kernel_of(&scenario, &scenario.machine, Probe::new(kinds)).unwrap();
    let load = Load::new(build::memory(&scenario.machine).unwrap());
    let mut memory = AccessState::new(load, build::fault_costs(&scenario.machine), 1);
    let task = Task { pid: 7, tgid: 7 };
    let came = then(&mut World { kernel: &mut kernel, memory: &mut memory, cpu: 0, task });
    let mut seen = Seen::default();
    kernel.probe.drain(u64::MAX, &mut seen);
    (came, seen.0)
}

#[derive(Default)]
struct Seen(Vec<(Kind, u64)>);

impl Sink for Seen {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push((event.kind, event.ts));
    }
}

/// Takes pages until a zone has no more free than that.
pub(super) fn empty(world: &mut World<'_>, zone: usize, free: u64) {
    let mut caller = Caller::new(0, world.task, Policy::Default);
    while world.kernel.alloc.free_pages(zone) > free {
        world.kernel.allocate(&mut caller, &Request { may_wait: false, kswapd: false, ..Request::KERNEL }).unwrap();
    }
}

/// Brings pages of memory of a type, as many as a block of an order has, and they are one.
pub(super) fn block(world: &mut World<'_>, file: bool, order: u32) -> Vec<Pfn> {
    let base = world.memory.next_base();
    let (pages, policy) = (1 << order, Policy::Default);
    let shape = Shape { pages, parts: 1, anon: !file, file, huge: Vec::new(), exec: false, locked: false, policy };
    let mut region = Region::new(shape, 1, base);
    let mut caller = Caller::new(0, world.task, policy);
    let first = world.kernel.allocate(&mut caller, &Request::USER.of_order(order)).unwrap();
    let flags: &[Flag] = if file { &[] } else { &[Flag::Swapbacked] };
    for (page, pfn) in (0..).zip(first..first + pages as Pfn) {
        world.kernel.alloc.frames.set(pfn, State::Allocated, 0, Migratetype::Movable, DMA32);
        region.put(page, pfn, 0);
        world.kernel.adopt(&caller, pfn, region.content(page), flags, false);
    }
    world.memory.regions.push(region);
    world.drain();
    (first..first + pages as Pfn).collect()
}

pub(super) fn control(order: u32, priority: u32) -> Control {
    Control { priority, ..Control::new(Who::Direct, order, ZoneKind::Normal, "GFP_KERNEL") }
}

pub(super) fn run_to_end(world: &mut World<'_>, mut step: impl FnMut(&mut World<'_>) -> Poll<u64>) -> (u64, u32) {
    let mut sleeps = 0;
    loop {
        match step(world) {
            Poll::On => {}
            Poll::Sleep(until, _) => {
                world.kernel.wait(0, until);
                sleeps += 1;
                // What the engine does.
                for (_, number) in std::mem::take(&mut world.memory.ends).into_iter().filter(|end| end.0 <= until) {
                    let mut requests = std::mem::take(&mut world.memory.requests);
                    requests.leave_queue(number);
                    requests.end(world.kernel, (0, world.task), number);
                    world.memory.requests = requests;
                }
            }
            Poll::Done(pages) => return (pages, sleeps),
        }
    }
}

#[test]
fn every_request_for_kswapd_is_an_event_and_one_wakes_it() {
    let (wakes, events) = on("2.6.36", |world| {
        let (kernel, task) = (&mut *world.kernel, world.task);
        kernel.wakeup_kswapd_of_zone(0, task, DMA32, 0, ZoneKind::Dma32);
        assert!(kernel.reclaim.wakes.is_empty(), "nothing is low");
        let low = kernel.alloc.zones[DMA32].marks.low;
        empty(world, DMA32, low);
        (0..3).for_each(|_| world.kernel.wakeup_kswapd_of_zone(0, task, DMA32, 2, ZoneKind::Dma32));
        assert!(!world.is_above(DMA32, 0, low, NO_RESERVE) && world.kernel.reclaim.nodes[0].kswapd_order == 2);
        world.kernel.reclaim.wakes.len()
    });
    assert_eq!((wakes, events.len()), (1, 3));
}

#[test]
fn waits_take_their_time_or_none() {
    let ((), events) = on("2.6.36", |world| {
        let (wait, until) = world.task_waits(50, DMA32).expect("it waits");
        assert_eq!(until, 20_000_000 * PS_PER_NS);
        world.kernel.wait(0, until);
        world.end_wait(wait);
    });
    assert_eq!(events, [(Kind::WritebackCongestionWait, 20_000_000)]);
    let (waits, events) = on("2.6.37", |world| (world.task_waits(50, DMA32).is_some(), world.congestion_wait(10).1));
    assert_eq!(waits, (false, 100_000_000 * PS_PER_NS));
    assert_eq!(events, [(Kind::WritebackWaitIffCongested, 0)]);
}

#[test]
fn a_task_gives_up_when_there_is_nothing_to_reclaim() {
    let ((reclaimed, sleeps), _) = on("2.6.36", |world| {
        let control = Control::new(Who::Direct, 0, ZoneKind::Normal, "GFP_KERNEL");
        let mut direct = Direct::new(world, control, vec![DMA32, 0], false);
        run_to_end(world, |world| direct.step(world))
    });
    // What was not scanned is not waited for.
    assert_eq!((reclaimed, sleeps), (0, 0));
    let ((_, sleeps), events) = on("2.6.36", |world| {
        let control = Control::new(Who::Direct, 0, ZoneKind::Normal, "GFP_KERNEL");
        let mut direct = Direct::new(world, control, vec![DMA32, 0], true);
        run_to_end(world, |world| direct.step(world))
    });
    // Another try waits first.
    assert_eq!((sleeps, events), (1, vec![(Kind::WritebackCongestionWait, 20_000_000)]));
}

#[test]
fn kswapd_gives_hopeless_zones_up_and_sleeps() {
    let ((), _) = on("2.6.36", |world| {
        let mut balance = Balance::new(0, SINGLE_PAGES);
        let step = |world: &mut World<'_>, balance: &mut Balance| match balance.step(world) {
            Poll::On => Poll::On,
            Poll::Sleep(until, why) => Poll::Sleep(until, why),
            Poll::Done(_) => Poll::Done(0),
        };
        assert_eq!(run_to_end(world, |world| step(world, &mut balance)), (0, 0));
        assert_eq!(world.kernel.stat.events.reclaim.pageoutrun, 1);
        let min = world.kernel.alloc.zones[DMA32].marks.min;
        empty(world, DMA32, min);
        let mut balance = Balance::new(0, SINGLE_PAGES);
        assert_eq!(run_to_end(world, |world| step(world, &mut balance)), (0, 0));
        // Nothing of it can be reclaimed, so that its free pages count no more.
        assert!(world.is_given_up(DMA32));
        let mut kswapd = Kswapd::new(0);
        let mut steps = 0;
        while kswapd.step(world) == Poll::On {
            steps += 1;
        }
        assert!(steps < 100 && world.kernel.reclaim.nodes[0].kswapd_waits);
    });
}

#[test]
fn neighbours_are_taken_up_to_one_that_is_in_use() {
    type Prepare = fn(&mut World<'_>, Pfn);
    let as_it_is: Prepare = |_, _| {};
    let held: Prepare = |world, page| {
        let kernel = &mut *world.kernel;
        kernel.reclaim.forget(&mut kernel.alloc.frames, &mut kernel.stat, 0, page);
    };
    let free: Prepare = |world, page| {
        let caller = Caller::new(0, world.task, Policy::Default);
        world.kernel.release(&caller, page).unwrap();
        world.kernel.drain_pages(0);
    };
    let active: Prepare = |world, page| {
        (0..2).for_each(|_| world.kernel.mark_accessed(0, page));
        world.drain();
    };
    let take = |release, mode, order, prepare: Prepare| {
        let ((scanned, taken), _) = on(release, |world| {
            let pages = block(world, true, 4);
            prepare(world, pages[5]);
            let isolated = isolate(world, &control(order, 12), DMA32, List::InactiveFile, 1, mode);
            (isolated.scanned, isolated.pages.len())
        });
        assert_eq!(scanned, taken as u64);
        taken
    };
    use Mode::{Both, Inactive};
    assert_eq!(["2.6.36", "2.6.37"].map(|release| take(release, Inactive, 4, as_it_is)), [16; 2]);
    assert_eq!(["2.6.36", "2.6.37"].map(|release| take(release, Inactive, 3, held)), [7, 5]);
    assert_eq!(["2.6.36", "2.6.37"].map(|release| take(release, Both, 4, held)), [15, 5]);
    assert_eq!(["2.6.36", "2.6.37"].map(|release| take(release, Inactive, 4, free)), [15; 2]);
    // Lumpy mode takes active pages too.
    assert_eq!(["2.6.36", "2.6.37"].map(|release| take(release, Inactive, 4, active)), [15, 5]);
    assert_eq!(["2.6.36", "2.6.37"].map(|release| take(release, Both, 4, active)), [16; 2]);
    assert_eq!(take("2.6.36", Inactive, 0, as_it_is), 1);
}

#[test]
fn lumpy_mode_ignores_references_and_takes_active_pages() {
    let reclaimed = |order, priority| {
        on("2.6.36", |world| {
            let pages = block(world, true, 5);
            for &page in &pages[1..] {
                (0..2).for_each(|_| world.kernel.mark_accessed(0, page));
            }
            world.drain();
            let (zone, mut control) = (DMA32, control(order, priority));
            let mut batch = Batch::new(&control, zone, List::InactiveFile, 32);
            let reclaimed = run_to_end(world, |world| batch.step(world, &mut control)).0;
            (reclaimed, world.kernel.stat.events.reclaim.pgdeactivate, world.kernel.reclaim.zones[zone].isolated)
        })
        .0
    };
    // All but the first are active.
    assert_eq!(reclaimed(5, 12), (32, 31, [0; 2]));
    assert_eq!(reclaimed(3, 10), (1, 0, [0; 2]));
    // Small blocks are worth it from priority 9 on.
    assert_eq!(reclaimed(3, 9), (8, 7, [0; 2]));
}

#[test]
fn what_is_not_free_at_once_is_gone_through_again() {
    let second = |release| {
        on(release, |world| {
            world.memory.disk = Device::new(1_000_000, 0, false);
            let pages = block(world, true, 4);
            let mut caller = Caller::new(0, world.task, Policy::Default);
            (0..16).for_each(|page| assert!(world.memory.dirty(world.kernel, &mut caller, 0, page)));
            world.memory.write_out(world.kernel, (0, world.task), pages[3], IoClass::Async);
            let mut control = control(4, 12);
            let mut batch = Batch::new(&control, DMA32, List::InactiveFile, 32);
            let reclaimed = run_to_end(world, |world| batch.step(world, &mut control)).0;
            assert_eq!(world.kernel.reclaim.held.len() + world.kernel.reclaim.awaited.len(), 0);
            reclaimed
        })
    };
    let (reclaimed, events) = second("2.6.36");
    let count = |events: &[(Kind, u64)], kind| events.iter().filter(|event| event.0 == kind).count();
    // The first pass writes 15 pages, which are clean after the wait; nothing has to be written again.
    assert_eq!((reclaimed, count(&events, Kind::MmVmscanWriteFolio)), (16, 15));
    assert_eq!(count(&events, Kind::WritebackCongestionWait), 1);
    let (reclaimed, events) = second("2.6.36-lowlumpy");
    assert_eq!((reclaimed, count(&events, Kind::MmVmscanWriteFolio)), (16, 15));
    assert_eq!(count(&events, Kind::WritebackCongestionWait), 0);
}

/// Makes pages of a file, so many requests of which are being written.
fn queue(world: &mut World<'_>, requests: u64) {
    world.memory.disk = Device::new(1_000_000, 0, false);
    let (region, pages) = (world.memory.regions.len(), block(world, true, 8));
    let mut caller = Caller::new(0, world.task, Policy::Default);
    // They do not follow each other.
    for page in (0..2 * requests).step_by(2) {
        assert!(world.memory.dirty(world.kernel, &mut caller, region, page));
        world.memory.write_out(world.kernel, (0, world.task), pages[page as usize], IoClass::Async);
    }
}

/// Makes pages of a file that are dirty.
fn dirty(world: &mut World<'_>, order: u32) {
    let region = world.memory.regions.len();
    block(world, true, order);
    let mut caller = Caller::new(0, world.task, Policy::Default);
    (0..1 << order).for_each(|page| assert!(world.memory.dirty(world.kernel, &mut caller, region, page)));
}

#[test]
fn a_congested_disk_takes_writes_of_kswapd_and_late_in_2010_for_large_blocks() {
    let written = |release, who, order, requests| {
        let (zone_congested, events) = on(release, |world| {
            dirty(world, 4);
            queue(world, requests);
            let mut control = Control { who, ..control(order, 12) };
            let mut batch = Batch::new(&control, DMA32, List::InactiveFile, 16);
            while batch.step(world, &mut control) == Poll::On {}
            world.kernel.reclaim.zones[DMA32].congested
        });
        (events.iter().filter(|event| event.0 == Kind::MmVmscanWriteFolio).count(), zone_congested)
    };
    use Who::{Direct, Kswapd};
    assert_eq!(written("2.6.36", Direct, 0, 100), (16, false));
    // The first write is one too many for the others.
    assert_eq!(written("2.6.36", Direct, 0, 112), (1, false));
    assert_eq!(written("2.6.36", Direct, 0, 113), (0, true));
    assert_eq!(written("2.6.36", Kswapd, 0, 113), (16, false));
    assert_eq!(["2.6.36", "2.6.36-lowlumpy"].map(|release| written(release, Direct, 4, 113).0), [0, 16]);
    // There is no room at all.
    assert_eq!(written("2.6.36", Kswapd, 0, 128), (0, false));
}

#[test]
fn conditional_waits_need_a_congested_device_and_in_2_6_37_a_congested_zone() {
    let waits = |release| {
        [(0, false), (113, false), (0, true), (113, true)].map(|(requests, zone)| {
            on(release, |world| {
                queue(world, requests);
                world.kernel.reclaim.zones[DMA32].congested = zone;
                world.task_waits(50, DMA32).is_some()
            })
            .0
        })
    };
    assert_eq!(waits("2.6.36-lowlumpy"), [true; 4]);
    assert_eq!(waits("2.6.36-waitcongest"), [false, true, false, true]);
    assert_eq!(waits("2.6.37"), [false, false, false, true]);
}

#[test]
fn who_finds_too_many_pages_in_the_hands_of_others_waits() {
    let ((first, reclaimed), events) = on("2.6.37", |world| {
        block(world, true, 4);
        world.kernel.reclaim.zones[DMA32].isolated = [0, 17];
        let mut control = control(0, 12);
        let mut batch = Batch::new(&control, DMA32, List::InactiveFile, 16);
        let first = batch.step(world, &mut control);
        world.kernel.reclaim.zones[DMA32].isolated = [0, 16];
        (first, run_to_end(world, |world| batch.step(world, &mut control)).0)
    });
    assert!(matches!(first, Poll::Sleep(..)) && reclaimed == 16);
    // It waits whether a device is congested or not.
    assert_eq!(events.iter().map(|event| event.0).collect::<Vec<_>>(), [Kind::WritebackCongestionWait]);
}

#[test]
fn pages_that_are_freed_while_a_task_sleeps_are_not_its_any_more() {
    let (left, _) = on("2.6.36-lowlumpy", |world| {
        world.memory.disk = Device::new(1_000_000, 0, false);
        dirty(world, 4);
        let mut control = control(4, 12);
        let mut batch = Batch::new(&control, DMA32, List::InactiveFile, 16);
        while batch.step(world, &mut control) == Poll::On {}
        let caller = Caller::new(0, world.task, Policy::Default);
        world.memory.regions[0].unmap_shared(world.kernel, &caller, 0);
        assert_eq!(world.kernel.reclaim.held[&7].pages.len(), 16);
        let freed = *world.kernel.reclaim.held[&7].pages.first().unwrap();
        world.memory.discard(world.kernel, &caller, 0, 0..1).unwrap();
        assert!(!world.kernel.reclaim.held[&7].pages.contains(&freed));
        // The task is taken from what it does.
        world.kernel.give_up_held(7);
        (world.list_size(DMA32, List::InactiveFile), world.kernel.reclaim.zones[DMA32].isolated)
    });
    assert_eq!(left, (15, [0; 2]));
}

#[test]
fn kswapd_ends_the_congestion_of_a_zone_that_has_enough() {
    let (congested, _) = on("2.6.37", |world| {
        (0..4).for_each(|_| drop(block(world, true, 8)));
        let high = world.kernel.alloc.zones[DMA32].marks.high;
        empty(world, DMA32, high);
        world.kernel.reclaim.zones[DMA32].congested = true;
        let mut balance = Balance::new(0, SINGLE_PAGES);
        run_to_end(world, |world| match balance.step(world) {
            Poll::On => Poll::On,
            Poll::Sleep(until, why) => Poll::Sleep(until, why),
            Poll::Done(_) => Poll::Done(0),
        });
        world.kernel.reclaim.zones[DMA32].congested
    });
    assert!(!congested);
}
