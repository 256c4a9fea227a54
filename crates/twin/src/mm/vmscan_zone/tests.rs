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
use crate::mm::vmscan::{Control, Poll, Reclaimer, TaskCtx};
use crate::page_alloc::{Caller, Policy, Request};
use crate::probe::{Probe, Task};
use crate::time::PS_PER_NS;
use mmtwin_event::{Event, Kind, Sink};
use std::path::Path;

pub(super) const DMA32: usize = 1;
const SINGLE_PAGES: Work = Work { order: 0, highest: DMA32 };

/// 256 MiB without swap, and what a task of CPU 0, the first of two, does there.
pub(in crate::mm) fn on<T>(release: &str, then: impl FnOnce(&mut TaskCtx<'_>) -> T) -> (T, Vec<(Kind, u64)>) {
    let text = format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
         [kernel]\nrelease = \"{release}\"\n"
    );
    let scenario = mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap();
    let kinds = [
        Kind::MmVmscanWakeupKswapd,
        Kind::WritebackCongestionWait,
        Kind::WritebackWaitIffCongested,
        Kind::MmVmscanWriteFolio,
    ];
    let mut kernel: Kernel =
        build::kernel_of(&scenario, (&scenario.machine, &Default::default()), Probe::new(kinds)).unwrap();
    let load = Load::new(build::memory(&scenario.machine).unwrap());
    let mut memory = AccessState::new(load, build::fault_costs(&scenario), 1);
    let task = Task { pid: 7, tgid: 7 };
    let came = then(&mut TaskCtx { kernel: &mut kernel, memory: &mut memory, cpu: 0, task });
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
pub(super) fn empty(ctx: &mut TaskCtx<'_>, zone: usize, free: u64) {
    let mut caller = Caller::new(0, ctx.task, Policy::Default);
    while ctx.kernel.alloc.free_pages(zone) > free {
        ctx.kernel.allocate(&mut caller, &Request { may_wait: false, kswapd: false, ..Request::KERNEL }).unwrap();
    }
}

/// Allocates the pages of one block of an order, of a type.
pub(in crate::mm) fn block(ctx: &mut TaskCtx<'_>, file: bool, order: u32) -> Vec<Pfn> {
    let base = ctx.memory.next_base();
    let (pages, policy) = (1 << order, Policy::Default);
    let shape = Shape { pages, parts: 1, anon: !file, file, huge: Vec::new(), exec: false, locked: false, policy };
    let mut region = Region::new(shape, 1, base);
    let mut caller = Caller::new(0, ctx.task, policy);
    let first = ctx.kernel.allocate(&mut caller, &Request::USER.of_order(order)).unwrap();
    let flags: &[Flag] = if file { &[] } else { &[Flag::Swapbacked] };
    for (page, pfn) in (0..).zip(first..first + pages as Pfn) {
        ctx.kernel.alloc.frames.set(pfn, State::Allocated, 0, Migratetype::Movable, DMA32);
        region.put(page, pfn, 0);
        ctx.kernel.adopt(&caller, pfn, region.content(page), flags, false);
    }
    ctx.memory.regions.push(region);
    ctx.drain();
    (first..first + pages as Pfn).collect()
}

pub(super) fn control(order: u32, priority: u32) -> Control {
    Control { priority, ..Control::new(Reclaimer::Direct, order, ZoneKind::Normal, "GFP_KERNEL") }
}

pub(super) fn run_to_end(ctx: &mut TaskCtx<'_>, mut step: impl FnMut(&mut TaskCtx<'_>) -> Poll<u64>) -> (u64, u32) {
    let mut sleeps = 0;
    loop {
        match step(ctx) {
            Poll::On => {}
            Poll::Sleep(until, _) => {
                ctx.kernel.wait(0, until);
                sleeps += 1;
                // Stands for the engine.
                for (_, number) in std::mem::take(&mut ctx.memory.ends).into_iter().filter(|end| end.0 <= until) {
                    ctx.memory.requests.leave_queue(number);
                    ctx.memory.requests.end(ctx.kernel, (0, ctx.task), number);
                }
            }
            Poll::Done(pages) => return (pages, sleeps),
        }
    }
}

#[test]
fn every_request_for_kswapd_is_an_event_and_one_wakes_it() {
    let (wakes, events) = on("2.6.36", |ctx| {
        let (kernel, task) = (&mut *ctx.kernel, ctx.task);
        kernel.wakeup_kswapd_of_zone(0, task, DMA32, 0, ZoneKind::Dma32);
        assert!(kernel.reclaim.wakes.is_empty(), "nothing is low");
        let low = kernel.alloc.zones[DMA32].marks.low;
        empty(ctx, DMA32, low);
        (0..3).for_each(|_| ctx.kernel.wakeup_kswapd_of_zone(0, task, DMA32, 2, ZoneKind::Dma32));
        assert!(!ctx.is_above(DMA32, 0, low, NO_RESERVE) && ctx.kernel.reclaim.nodes[0].kswapd_order == 2);
        ctx.kernel.reclaim.wakes.len()
    });
    assert_eq!((wakes, events.len()), (1, 3));
}

#[test]
fn waits_take_their_time_or_none() {
    let ((), events) = on("2.6.36", |ctx| {
        let (wait, until) = ctx.wait_between_tries(50, DMA32).expect("it waits");
        assert_eq!(until, 20_000_000 * PS_PER_NS);
        ctx.kernel.wait(0, until);
        ctx.end_wait(wait);
    });
    assert_eq!(events, [(Kind::WritebackCongestionWait, 20_000_000)]);
    let (waits, events) = on("2.6.37", |ctx| (ctx.wait_between_tries(50, DMA32).is_some(), ctx.congestion_wait(10).1));
    assert_eq!(waits, (false, 100_000_000 * PS_PER_NS));
    assert_eq!(events, [(Kind::WritebackWaitIffCongested, 0)]);
}

#[test]
fn a_task_gives_up_when_there_is_nothing_to_reclaim() {
    let ((reclaimed, sleeps), _) = on("2.6.36", |ctx| {
        let control = Control::new(Reclaimer::Direct, 0, ZoneKind::Normal, "GFP_KERNEL");
        let mut direct = Direct::new(ctx, control, vec![DMA32, 0], false);
        run_to_end(ctx, |ctx| direct.step(ctx))
    });
    // Pages that were not scanned are not awaited.
    assert_eq!((reclaimed, sleeps), (0, 0));
    let ((_, sleeps), events) = on("2.6.36", |ctx| {
        let control = Control::new(Reclaimer::Direct, 0, ZoneKind::Normal, "GFP_KERNEL");
        let mut direct = Direct::new(ctx, control, vec![DMA32, 0], true);
        run_to_end(ctx, |ctx| direct.step(ctx))
    });
    // Another try waits first.
    assert_eq!((sleeps, events), (1, vec![(Kind::WritebackCongestionWait, 20_000_000)]));
}

#[test]
fn kswapd_gives_hopeless_zones_up_and_sleeps() {
    let ((), _) = on("2.6.36", |ctx| {
        let mut balance = Balance::new(0, SINGLE_PAGES);
        let step = |ctx: &mut TaskCtx<'_>, balance: &mut Balance| match balance.step(ctx) {
            Poll::On => Poll::On,
            Poll::Sleep(until, why) => Poll::Sleep(until, why),
            Poll::Done(_) => Poll::Done(0),
        };
        assert_eq!(run_to_end(ctx, |ctx| step(ctx, &mut balance)), (0, 0));
        assert_eq!(ctx.kernel.stat.events.reclaim.pageoutrun, 1);
        let min = ctx.kernel.alloc.zones[DMA32].marks.min;
        empty(ctx, DMA32, min);
        let mut balance = Balance::new(0, SINGLE_PAGES);
        assert_eq!(run_to_end(ctx, |ctx| step(ctx, &mut balance)), (0, 0));
        // Nothing of it can be reclaimed, so that its free pages count no more.
        assert!(ctx.is_given_up(DMA32));
        let mut kswapd = Kswapd::new(0);
        let mut steps = 0;
        while kswapd.step(ctx) == Poll::On {
            steps += 1;
        }
        assert!(steps < 100 && ctx.kernel.reclaim.nodes[0].kswapd_waits);
    });
}

#[test]
fn neighbours_are_taken_up_to_one_that_is_in_use() {
    type Prepare = fn(&mut TaskCtx<'_>, Pfn);
    let as_it_is: Prepare = |_, _| {};
    let held: Prepare = |ctx, page| {
        let kernel = &mut *ctx.kernel;
        kernel.reclaim.forget(&mut kernel.alloc.frames, &mut kernel.stat, 0, page);
    };
    let free: Prepare = |ctx, page| {
        let caller = Caller::new(0, ctx.task, Policy::Default);
        ctx.kernel.release(&caller, page).unwrap();
        ctx.kernel.drain_pages(0);
    };
    let active: Prepare = |ctx, page| {
        for _ in 0..2 {
            ctx.kernel.mark_accessed(0, page);
        }
        ctx.drain();
    };
    let take = |release, mode, order, prepare: Prepare| {
        let ((scanned, taken), _) = on(release, |ctx| {
            let pages = block(ctx, true, 4);
            prepare(ctx, pages[5]);
            let isolated = isolate(ctx, &control(order, 12), DMA32, List::InactiveFile, 1, mode);
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
        on("2.6.36", |ctx| {
            let pages = block(ctx, true, 5);
            for &page in &pages[1..] {
                for _ in 0..2 {
                    ctx.kernel.mark_accessed(0, page);
                }
            }
            ctx.drain();
            let (zone, mut control) = (DMA32, control(order, priority));
            let mut batch = Batch::new(&control, zone, List::InactiveFile, 32);
            let reclaimed = run_to_end(ctx, |ctx| batch.step(ctx, &mut control)).0;
            (reclaimed, ctx.kernel.stat.events.reclaim.pgdeactivate, ctx.kernel.reclaim.zones[zone].isolated)
        })
        .0
    };
    // All but the first are active.
    assert_eq!(reclaimed(5, 12), (32, 31, [0; 2]));
    assert_eq!(reclaimed(3, 10), (1, 0, [0; 2]));
    // Lumpy mode for small blocks starts at priority 9.
    assert_eq!(reclaimed(3, 9), (8, 7, [0; 2]));
}

#[test]
fn pages_not_freed_at_once_are_scanned_again() {
    let second = |release| {
        on(release, |ctx| {
            ctx.memory.disk = Device::new(1_000_000, 0, false);
            let pages = block(ctx, true, 4);
            let mut caller = Caller::new(0, ctx.task, Policy::Default);
            (0..16).for_each(|page| assert!(ctx.memory.dirty(ctx.kernel, &mut caller, 0, page)));
            ctx.memory.write_out(ctx.kernel, (0, ctx.task), pages[3], IoClass::Async);
            let mut control = control(4, 12);
            let mut batch = Batch::new(&control, DMA32, List::InactiveFile, 32);
            let reclaimed = run_to_end(ctx, |ctx| batch.step(ctx, &mut control)).0;
            assert_eq!(ctx.kernel.reclaim.isolated.len() + ctx.kernel.reclaim.awaited.len(), 0);
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

/// Makes pages of a file, this many requests of which are under writeback.
fn queue(ctx: &mut TaskCtx<'_>, requests: u64) {
    ctx.memory.disk = Device::new(1_000_000, 0, false);
    let (region, pages) = (ctx.memory.regions.len(), block(ctx, true, 8));
    let mut caller = Caller::new(0, ctx.task, Policy::Default);
    // They do not follow each other.
    for page in (0..2 * requests).step_by(2) {
        assert!(ctx.memory.dirty(ctx.kernel, &mut caller, region, page));
        ctx.memory.write_out(ctx.kernel, (0, ctx.task), pages[page as usize], IoClass::Async);
    }
}

/// Makes pages of a file that are dirty.
fn dirty(ctx: &mut TaskCtx<'_>, order: u32) {
    let region = ctx.memory.regions.len();
    block(ctx, true, order);
    let mut caller = Caller::new(0, ctx.task, Policy::Default);
    (0..1 << order).for_each(|page| assert!(ctx.memory.dirty(ctx.kernel, &mut caller, region, page)));
}

#[test]
fn a_congested_disk_takes_writes_of_kswapd_and_late_in_2010_for_large_blocks() {
    let written = |release, reclaimer, order, requests| {
        let (zone_congested, events) = on(release, |ctx| {
            dirty(ctx, 4);
            queue(ctx, requests);
            let mut control = Control { reclaimer, ..control(order, 12) };
            let mut batch = Batch::new(&control, DMA32, List::InactiveFile, 16);
            while batch.step(ctx, &mut control) == Poll::On {}
            ctx.kernel.reclaim.zones[DMA32].congested
        });
        (events.iter().filter(|event| event.0 == Kind::MmVmscanWriteFolio).count(), zone_congested)
    };
    use Reclaimer::{Direct, Kswapd};
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
            on(release, |ctx| {
                queue(ctx, requests);
                ctx.kernel.reclaim.zones[DMA32].congested = zone;
                ctx.wait_between_tries(50, DMA32).is_some()
            })
            .0
        })
    };
    assert_eq!(waits("2.6.36-lowlumpy"), [true; 4]);
    assert_eq!(waits("2.6.36-waitcongest"), [false, true, false, true]);
    assert_eq!(waits("2.6.37"), [false, false, false, true]);
    // Nothing is under writeback.
    assert_eq!(waits("2.6.36-nocongest"), [false, true, false, true]);
}

#[test]
fn reclaim_waits_conditionally_from_the_last_patch_of_2010_on() {
    let events = |release| {
        let wait = |ctx: &mut TaskCtx<'_>| {
            block(ctx, true, 4);
            ctx.wait_in_reclaim(10, DMA32).inspect(|(wait, _)| ctx.end_wait(*wait)).is_some()
        };
        let (waits, events) = on(release, wait);
        (waits, events.iter().map(|event| event.0).collect::<Vec<_>>())
    };
    let always = (true, vec![Kind::WritebackCongestionWait]);
    assert_eq!(["2.6.36", "2.6.36-lowlumpy", "2.6.36-waitcongest"].map(events), [(); 3].map(|()| always.clone()));
    let never = (false, vec![Kind::WritebackWaitIffCongested]);
    assert_eq!(["2.6.37", "3.3", "2.6.36-nodirect"].map(events), [(); 3].map(|()| never.clone()));
}

#[test]
fn a_batch_without_dirty_pages_marks_its_zone_in_2_6_37_only() {
    let marks = |release| {
        let marked = |ctx: &mut TaskCtx<'_>| {
            block(ctx, true, 4);
            let mut control = control(0, 12);
            let mut batch = Batch::new(&control, DMA32, List::InactiveFile, 16);
            while batch.step(ctx, &mut control) == Poll::On {}
            ctx.kernel.reclaim.zones[DMA32].congested
        };
        on(release, marked).0
    };
    assert_eq!(["2.6.37", "3.3", "3.5"].map(marks), [true, false, false]);
}

#[test]
fn tasks_wait_while_too_many_pages_are_isolated() {
    let ((first, reclaimed), events) = on("2.6.37", |ctx| {
        block(ctx, true, 4);
        ctx.kernel.reclaim.zones[DMA32].isolated = [0, 17];
        let mut control = control(0, 12);
        let mut batch = Batch::new(&control, DMA32, List::InactiveFile, 16);
        let first = batch.step(ctx, &mut control);
        ctx.kernel.reclaim.zones[DMA32].isolated = [0, 16];
        (first, run_to_end(ctx, |ctx| batch.step(ctx, &mut control)).0)
    });
    assert!(matches!(first, Poll::Sleep(..)) && reclaimed == 16);
    // It waits whether a device is congested or not.
    assert_eq!(events.iter().map(|event| event.0).collect::<Vec<_>>(), [Kind::WritebackCongestionWait]);
}

#[test]
fn pages_that_are_freed_while_a_task_sleeps_are_not_its_any_more() {
    let (left, _) = on("2.6.36-lowlumpy", |ctx| {
        ctx.memory.disk = Device::new(1_000_000, 0, false);
        dirty(ctx, 4);
        let mut control = control(4, 12);
        let mut batch = Batch::new(&control, DMA32, List::InactiveFile, 16);
        while batch.step(ctx, &mut control) == Poll::On {}
        let caller = Caller::new(0, ctx.task, Policy::Default);
        let all = 0..ctx.memory.regions[0].len();
        ctx.memory.regions[0].unmap_shared(ctx.kernel, &caller, 0, all);
        assert_eq!(ctx.kernel.reclaim.isolated[&7].pages.len(), 16);
        let freed = *ctx.kernel.reclaim.isolated[&7].pages.first().unwrap();
        ctx.memory.discard(ctx.kernel, &caller, 0, 0..1).unwrap();
        assert!(!ctx.kernel.reclaim.isolated[&7].pages.contains(&freed));
        // The task is taken from what it does.
        ctx.kernel.release_isolated(7);
        (ctx.list_size(DMA32, List::InactiveFile), ctx.kernel.reclaim.zones[DMA32].isolated)
    });
    assert_eq!(left, (15, [0; 2]));
}

#[test]
fn kswapd_ends_the_congestion_of_a_zone_that_has_enough() {
    let (congested, _) = on("2.6.37", |ctx| {
        (0..4).for_each(|_| drop(block(ctx, true, 8)));
        let high = ctx.kernel.alloc.zones[DMA32].marks.high;
        empty(ctx, DMA32, high);
        ctx.kernel.reclaim.zones[DMA32].congested = true;
        let mut balance = Balance::new(0, SINGLE_PAGES);
        run_to_end(ctx, |ctx| match balance.step(ctx) {
            Poll::On => Poll::On,
            Poll::Sleep(until, why) => Poll::Sleep(until, why),
            Poll::Done(_) => Poll::Done(0),
        });
        ctx.kernel.reclaim.zones[DMA32].congested
    });
    assert!(!congested);
}
