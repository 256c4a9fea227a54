//! Steps of reclaim on a machine that has just booted, or whose zones have been emptied.

use super::balance::Balance;
use super::state::NO_RESERVE;
use super::{Direct, Kswapd};
use crate::access::{AccessState, Load};
use crate::alloc::{Caller, Policy, Request, ZoneKind};
use crate::build;
use crate::kernel::{Kernel, PS_PER_NS};
use crate::probe::{Probe, Task};
use crate::reclaim::{Control, Poll, Who, World};
use mmtwin_event::{Event, Kind, Sink};
use std::path::Path;

const DMA32: usize = 1;

/// 256 MiB without swap, and what a task of CPU 0 does there.
fn on<T>(release: &str, then: impl FnOnce(&mut World<'_>) -> T) -> (T, Vec<(Kind, u64)>) {
    let text = format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"256 MiB\"\n\
         [kernel]\nrelease = \"{release}\"\n"
    );
    let scenario = mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap();
    let kinds = [Kind::MmVmscanWakeupKswapd, Kind::WritebackCongestionWait, Kind::WritebackWaitIffCongested];
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
fn empty(world: &mut World<'_>, zone: usize, free: u64) {
    let mut caller = Caller::new(0, world.task, Policy::Default);
    while world.kernel.alloc.free_pages(zone) > free {
        world.kernel.allocate(&mut caller, &Request { may_wait: false, kswapd: false, ..Request::KERNEL }).unwrap();
    }
}

fn run_to_end(world: &mut World<'_>, mut step: impl FnMut(&mut World<'_>) -> Poll<u64>) -> (u64, u32) {
    let mut sleeps = 0;
    loop {
        match step(world) {
            Poll::On => {}
            Poll::Sleep(until, _) => {
                world.kernel.wait(0, until);
                sleeps += 1;
            }
            Poll::Done(pages) => return (pages, sleeps),
        }
    }
}

#[test]
fn every_request_for_kswapd_is_an_event_and_one_wakes_it() {
    let (wakes, events) = on("2.6.36", |world| {
        let (kernel, task) = (&mut *world.kernel, world.task);
        kernel.wakeup_kswapd_of_zone(0, task, DMA32, 0);
        assert!(kernel.reclaim.wakes.is_empty(), "nothing is low");
        let low = kernel.alloc.zones[DMA32].marks.low;
        empty(world, DMA32, low);
        (0..3).for_each(|_| world.kernel.wakeup_kswapd_of_zone(0, task, DMA32, 2));
        assert!(!world.is_above(DMA32, 0, low, NO_RESERVE) && world.kernel.reclaim.nodes[0].kswapd_order == 2);
        world.kernel.reclaim.wakes.len()
    });
    assert_eq!((wakes, events.len()), (1, 3));
}

#[test]
fn waits_take_their_time_or_none() {
    let ((), events) = on("2.6.36", |world| {
        let (wait, until) = world.task_waits(50).expect("it waits");
        assert_eq!(until, 20_000_000 * PS_PER_NS);
        world.kernel.wait(0, until);
        world.end_wait(wait);
    });
    assert_eq!(events, [(Kind::WritebackCongestionWait, 20_000_000)]);
    let (waits, events) = on("2.6.37", |world| (world.task_waits(50).is_some(), world.congestion_wait(10).1));
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
        let mut balance = Balance::new(0, 0);
        let step = |world: &mut World<'_>, balance: &mut Balance| match balance.step(world) {
            Poll::On => Poll::On,
            Poll::Sleep(until, why) => Poll::Sleep(until, why),
            Poll::Done(()) => Poll::Done(0),
        };
        assert_eq!(run_to_end(world, |world| step(world, &mut balance)), (0, 0));
        assert_eq!(world.kernel.stat.events.reclaim.pageoutrun, 1);
        let min = world.kernel.alloc.zones[DMA32].marks.min;
        empty(world, DMA32, min);
        let mut balance = Balance::new(0, 0);
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
