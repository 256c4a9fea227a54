//! Steps of reclaim where 2012 differs from 2010.

use super::balance_pgdat::{Balance, Work};
use super::block::{compaction_ready, should_continue_reclaim};
use super::isolate::{Mode, isolate};
use super::shrink_inactive::Batch;
use super::tests::{DMA32, block, control, empty, on, run_to_end};
use crate::frame::{Flag, Pfn, ZoneKind};
use crate::hw::Device;
use crate::mm::lru::List;
use crate::mm::vmscan::{Control, Poll, Reclaimer, TaskCtx};
use crate::page_alloc::{Caller, Policy, Request};
use crate::vmstat::{NodeItem, ZoneItem};
use mmtwin_event::Kind;

/// Takes all pages and frees every second one of zone DMA32: half of it is free, in single pages. Zone DMA is free.
fn scatter(ctx: &mut TaskCtx<'_>) {
    let mut caller = Caller::new(0, ctx.task, Policy::Default);
    let request = Request { may_wait: false, kswapd: false, ..Request::USER };
    let mut pages: Vec<Pfn> = Vec::new();
    while let Ok(got) = ctx.kernel.allocate(&mut caller, &request) {
        pages.push(got);
    }
    // Pages below the watermarks are not allocated.
    while ctx.kernel.alloc.occupy(DMA32, 0) {
        ctx.kernel.stat.add(DMA32, 0, ZoneItem::FreePages, -1);
    }
    let zone = &ctx.kernel.alloc.zones[DMA32];
    pages.retain(|&page| !zone.spans(page.into()) || page % 2 == 0);
    for page in pages {
        ctx.kernel.release(&caller, page).unwrap();
    }
    ctx.kernel.drain_pages(0);
}

#[test]
fn only_a_wakeup_of_a_sleeping_kswapd_is_an_event() {
    let ((wakes, order, highest), events) = on("3.3", |ctx| {
        let low = ctx.kernel.alloc.zones[DMA32].marks.low;
        empty(ctx, DMA32, low);
        let task = ctx.task;
        for order in [2, 3, 1] {
            ctx.kernel.wakeup_kswapd_of_zone(0, task, DMA32, order, ZoneKind::Dma32);
        }
        let of = &ctx.kernel.reclaim.nodes[0];
        (ctx.kernel.reclaim.wakes.len(), of.kswapd_order, of.kswapd_highest)
    });
    assert_eq!((wakes, order, highest, events.len()), (1, 3, Some(ZoneKind::Dma32), 1));
}

#[test]
fn neighbours_are_of_the_same_list_in_3_3_and_left_in_3_4() {
    let take = |release| {
        on(release, |ctx| {
            let pages = block(ctx, true, 4);
            for _ in 0..2 {
                ctx.kernel.mark_accessed(0, pages[5]);
            }
            ctx.drain();
            isolate(ctx, &control(4, 12), DMA32, List::InactiveFile, 1, Mode::Inactive).pages.len()
        })
        .0
    };
    // The sixth page is active, where the search ends.
    assert_eq!(["3.3", "3.4", "3.4-lumpyremove", "3.5"].map(take), [5, 1, 1, 1]);
}

#[test]
fn dirty_pages_of_files_are_left_to_the_flusher_but_by_kswapd_in_trouble() {
    let written = |reclaimer, priority| {
        let (left, events) = on("3.3", |ctx| {
            ctx.memory.disk = Device::new(1_000_000, 0, false);
            let pages = block(ctx, true, 4);
            let mut caller = Caller::new(0, ctx.task, Policy::Default);
            (0..16).for_each(|page| assert!(ctx.memory.dirty(ctx.kernel, &mut caller, 0, page)));
            let mut control = Control { priority, ..Control::new(reclaimer, 0, ZoneKind::Normal, "GFP_KERNEL") };
            let mut batch = Batch::new(&control, DMA32, List::InactiveFile, 32);
            assert_eq!(run_to_end(ctx, |ctx| batch.step(ctx, &mut control)), (0, 0));
            assert!(pages.iter().all(|&page| ctx.kernel.alloc.frames.has(page, Flag::Reclaim)));
            assert!(pages.iter().all(|&page| !ctx.kernel.alloc.frames.has(page, Flag::Active)));
            ctx.kernel.stat.pages.sum(NodeItem::VmscanImmediate)
        });
        (events.iter().filter(|event| event.0 == Kind::MmVmscanWriteFolio).count(), left)
    };
    assert_eq!(written(Reclaimer::Kswapd, 9), (16, 0));
    assert_eq!([written(Reclaimer::Kswapd, 10), written(Reclaimer::Direct, 9)], [(0, 16); 2]);
}

#[test]
fn a_batch_under_writeback_is_waited_after_if_its_device_is_congested() {
    let waits = |release| {
        on(release, |ctx| {
            ctx.memory.disk = Device::new(1_000_000, 0, false);
            let pages = block(ctx, true, 4);
            pages.iter().for_each(|&page| ctx.kernel.begin_writeback(page));
            let mut control = control(0, 12);
            let mut batch = Batch::new(&control, DMA32, List::InactiveFile, 32);
            run_to_end(ctx, |ctx| batch.step(ctx, &mut control))
        })
    };
    let (came, events) = waits("3.3");
    // No device is congested, so that the wait takes no time.
    assert_eq!((came, events.len(), events[0].0), ((0, 0), 1, Kind::WritebackWaitIffCongested));
    assert_eq!(waits("2.6.37").1, []);
}

#[test]
fn kswapd_of_3_4_leaves_blocks_to_compaction() {
    let run = |release| {
        on(release, |ctx| {
            scatter(ctx);
            assert!(!ctx.kernel.early_has_block(DMA32, 9));
            let mut balance = Balance::new(0, Work { order: 9, highest: DMA32 });
            let mut came = None;
            for _ in 0..10_000 {
                match balance.step(ctx) {
                    Poll::On => {}
                    Poll::Sleep(until, _) => ctx.kernel.wait(0, until),
                    Poll::Done(work) => {
                        came = Some(work.order);
                        break;
                    }
                }
            }
            (came, ctx.is_given_up(DMA32))
        })
        .0
    };
    // There is nothing to reclaim: reclaim for blocks gives up the zone, and then the order.
    assert!(run("3.3").1);
    assert_eq!(run("3.4"), (Some(9), false));
}

#[test]
fn a_zone_is_shrunk_until_compaction_has_room() {
    let (came, _) = on("3.4", |ctx| {
        let in_mode = Control { in_mode: true, reclaimed: 32, ..control(9, 12) };
        // All of memory is free.
        let mut came = vec![should_continue_reclaim(ctx, &in_mode, DMA32, 32, 32), compaction_ready(ctx, DMA32, 9)];
        let low = ctx.kernel.alloc.zones[DMA32].marks.low;
        empty(ctx, DMA32, low);
        came.extend([
            should_continue_reclaim(ctx, &in_mode, DMA32, 32, 32),
            should_continue_reclaim(ctx, &in_mode, DMA32, 0, 32),
        ]);
        came.push(should_continue_reclaim(ctx, &Control { repeat: true, ..in_mode }, DMA32, 0, 32));
        came.push(should_continue_reclaim(ctx, &Control { in_mode: false, ..in_mode }, DMA32, 32, 32));
        came.push(compaction_ready(ctx, DMA32, 9));
        came
    });
    assert_eq!(came, [false, true, true, false, true, false, false]);
    let (always, _) = on("3.5", |ctx| {
        let low = ctx.kernel.alloc.zones[DMA32].marks.low;
        empty(ctx, DMA32, low);
        [9, 3].map(|order| should_continue_reclaim(ctx, &control(order, 12), DMA32, 32, 32))
    });
    assert_eq!(always, [true, false]);
}

#[test]
fn compaction_moves_pages_to_the_end_of_the_zone() {
    let ((status, moved, has_block), _) = on("3.4", |ctx| {
        // The first blocks are from the end of the zone, which is free again behind the pages of a file.
        let (mut caller, request) = (Caller::new(0, ctx.task, Policy::Default), Request::USER.of_order(5));
        let mut end: Vec<Pfn> = Vec::new();
        while end.last().is_none_or(|&page| page > 10_000) {
            end.push(ctx.kernel.allocate(&mut caller, &request).unwrap());
        }
        block(ctx, true, 5);
        end.into_iter().for_each(|page| ctx.kernel.release(&caller, page).unwrap());
        scatter(ctx);
        let request = Request::USER.of_order(9);
        let mut compact = crate::mm::compaction::early::Direct::new(ctx, request, true, vec![DMA32]);
        let status = loop {
            match compact.step(ctx) {
                Poll::On => {}
                Poll::Sleep(until, _) => ctx.kernel.wait(0, until),
                Poll::Done(status) => break status,
            }
        };
        let events = &ctx.kernel.stat.events.reclaim;
        (status, events.compact_pages_moved, ctx.kernel.early_has_block(DMA32, 9))
    });
    // Only the pages of the file can be moved; the others are the kernel's to the scanner.
    assert_eq!((status, moved, has_block), (crate::mm::compaction::Status::Complete, 32, false));
}
