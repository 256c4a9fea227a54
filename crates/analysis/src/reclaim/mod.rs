//! Page reclaim from the vmscan events: who reclaimed, on whose behalf, from where, and how long it took.
//!
//! Rules (2.6.36 to 6.18): a task is in direct, cgroup, soft-limit or node reclaim between the begin and the end
//! event, soft-limit reclaim may be nested in direct reclaim or kswapd; a kswapd is always in its own context; every
//! event in between belongs to the context of the task that wrote it. A begin that follows a begin means that an end
//! was lost; an end without a begin, or with lost events on its CPU since, has no known duration.
//! kswapd is awake from its first wake to its sleep, further wakes in between are order re-wakeups.
//! Not covered: the multi-generational LRU, whose aging and eviction have no events of their own.
//! Validated: sums equal the kernel's pgscan and pgsteal counters on traces without losses.

mod lists;
mod places;
mod process;
mod totals;
mod writes;

pub use lists::{Isolated, List};
pub use places::{Place, Places, Visit};
pub use process::{Kswapd, Orders, Pages, Process};
pub use totals::{ActiveBatches, Batches, Detail, Reported, Totals};
pub use writes::Writes;

use crate::index::Index;
use crate::losses::Losses;
use crate::tasks::{Context, Open, Task};
use crate::timeline::Timeline;
use lists::Isolation;
use mmtwin_event::value::ReclaimFlags;
use mmtwin_event::vocabulary::*;
use mmtwin_event::{Event, Kind, Source};

/// Durations kept one by one.
const LISTED: usize = 1 << 19;

/// Processes whose reclaim is kept separate, at some kilobytes each; those beyond are merged.
pub const MAX_PROCESSES: usize = 1 << 16;
/// Marks a task whose reclaim is merged with that of others.
const TOGETHER: u32 = u32::MAX;
/// Nodes that kernels are built for; requests for others are counted as those for node -1.
const NODES: u32 = 1024;

/// One finished direct reclaim or awake phase of a kswapd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Position of the process.
    process: u32,
    /// Order of the request.
    pub order: i32,
    /// Duration in microseconds, each end cut to whole microseconds.
    pub us: u64,
}

/// A node as those see it who ask for its kswapd.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its number.
    pub nid: i32,
    /// Requests to wake its kswapd.
    pub requests: u64,
    /// The same by order.
    pub request_orders: Orders,
}

/// All reclaim.
#[derive(Clone, Debug, Default)]
pub struct Reclaim {
    contexts: [Totals; 6],
    processes: Vec<Process>,
    /// Those who have no place of their own in `processes`: how many, and what they did together.
    together: u64,
    others: Option<Box<(Task, Process)>>,
    /// Where pages came from.
    pub places: Places,
    by_nid: Index,
    nodes: Vec<Node>,
    /// Pages reclaimed over time.
    pub reclaimed_over_time: Timeline,
    /// Nanoseconds over time that tasks stalled in reclaim, in total.
    pub stalled_over_time: Timeline,
    /// Pages chosen from outside (madvise, DAMON) that went through reclaim.
    pub chosen: Batches,
    /// Direct reclaims begun while a kswapd was awake.
    pub begun_while_kswapd_awake: u64,
    /// kswapds that are awake now.
    awake: u64,
    listed: Vec<Listed>,
    /// Durations that were not kept one by one.
    pub unlisted: u64,
    /// Which details the events have.
    pub reported: Reported,
    mode_bits: bool,
}

impl Reclaim {
    /// Takes note of what decides how old events are read.
    pub fn start(&mut self, source: &Source) {
        self.mode_bits = source.kernel.as_deref().is_some_and(|k| k == "3.2" || k.starts_with("3.2."));
    }

    /// Sums of a context.
    pub fn context(&self, context: Context) -> &Totals {
        &self.contexts[context as usize]
    }

    /// Reclaims of a context (for kswapd, awake phases) whose duration is not known: the begin or the end is missing,
    /// also because the trace ended first, or events were lost in between.
    pub fn without_duration(&self, context: Context) -> u64 {
        let totals = self.context(context);
        // Further wakes of a kswapd that is awake begin nothing.
        let begun = match context {
            Context::Kswapd => self.processes.iter().filter_map(|p| p.kswapd.as_ref()).map(|k| k.wakes).sum(),
            _ => totals.begins,
        };
        totals.unpaired + begun.saturating_sub(totals.durations().count() + totals.torn)
    }

    /// True if every isolation told its list, so that scans can be counted from them.
    pub fn lists_are_reported(&self) -> bool {
        self.contexts.iter().all(|totals| totals.isolated[List::Unknown as usize].batches == 0)
    }

    /// What a task did, if it had to do with reclaim.
    pub fn process(&self, task: &Task) -> Option<&Process> {
        self.processes.get(task.process.checked_sub(1)? as usize)
    }

    /// What those did together who are merged, under a task of no thread.
    pub fn others(&self) -> Option<(&Task, &Process)> {
        self.others.as_deref().map(|(task, process)| (task, process))
    }

    /// How many are merged, for there are more than [`MAX_PROCESSES`].
    pub fn together(&self) -> u64 {
        self.together
    }

    /// Nodes whose kswapd was asked for, by number.
    pub fn nodes(&self) -> Vec<&Node> {
        let mut nodes: Vec<&Node> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| node.nid);
        nodes
    }

    /// The finished direct reclaims and awake phases of a task one by one, as far as they were kept.
    pub fn listed(&self, task: &Task) -> impl Iterator<Item = &Listed> {
        let position = task.process.checked_sub(1);
        self.listed.iter().filter(move |listed| Some(listed.process) == position)
    }

    /// Takes one vmscan event, but those of [`Reclaim::isolate`], [`Reclaim::shrink_inactive`], slab and throttling.
    pub fn event(&mut self, ev: &Event<'_>, task: &mut Task, losses: &Losses) {
        match ev.kind {
            Kind::MmVmscanMemcgIsolate => {
                self.isolated(&Isolation::of_memcg(&ev.typed(), self.mode_bits), task);
            }
            Kind::MmVmscanLruShrinkActive => self.shrink_active(&ev.typed(), task),
            Kind::MmVmscanWriteFolio => {
                let e: MmVmscanWriteFolio = ev.typed();
                self.contexts[task.context as usize].writes.add(e.flags);
                self.of(task).writes.add(e.flags);
            }
            Kind::MmVmscanReclaimPages => self.reclaim_pages(&ev.typed()),
            Kind::MmVmscanDirectReclaimBegin => {
                let order = ev.typed::<MmVmscanDirectReclaimBegin>().order;
                self.of(task).direct_orders.add(order);
                self.begun_while_kswapd_awake += u64::from(self.awake > 0);
                self.begin(ev, task, Context::Direct, order);
            }
            Kind::MmVmscanMemcgReclaimBegin => {
                self.begin(ev, task, Context::Memcg, ev.typed::<MmVmscanMemcgReclaimBegin>().order);
            }
            Kind::MmVmscanMemcgSoftlimitReclaimBegin => {
                let order = ev.typed::<MmVmscanMemcgSoftlimitReclaimBegin>().order;
                self.begin(ev, task, Context::MemcgSoftlimit, order);
            }
            Kind::MmVmscanNodeReclaimBegin => {
                self.begin(ev, task, Context::Node, ev.typed::<MmVmscanNodeReclaimBegin>().order);
            }
            Kind::MmVmscanDirectReclaimEnd => {
                let reclaimed = ev.typed::<MmVmscanDirectReclaimEnd>().nr_reclaimed;
                self.end(ev, task, Context::Direct, reclaimed, losses);
            }
            Kind::MmVmscanMemcgReclaimEnd => {
                let reclaimed = ev.typed::<MmVmscanMemcgReclaimEnd>().nr_reclaimed;
                self.end(ev, task, Context::Memcg, reclaimed, losses);
            }
            Kind::MmVmscanMemcgSoftlimitReclaimEnd => {
                let reclaimed = ev.typed::<MmVmscanMemcgSoftlimitReclaimEnd>().nr_reclaimed;
                self.end(ev, task, Context::MemcgSoftlimit, reclaimed, losses);
            }
            Kind::MmVmscanNodeReclaimEnd => {
                let reclaimed = ev.typed::<MmVmscanNodeReclaimEnd>().nr_reclaimed;
                self.end(ev, task, Context::Node, reclaimed, losses);
            }
            Kind::MmVmscanKswapdWake => self.kswapd_wake(ev, task),
            Kind::MmVmscanKswapdSleep => self.kswapd_sleep(ev, task, losses),
            Kind::MmVmscanWakeupKswapd => self.wakeup(&ev.typed(), task),
            _ => {}
        }
    }

    #[inline]
    fn of(&mut self, task: &mut Task) -> &mut Process {
        if task.process == 0 {
            task.process = self.place(task);
        }
        match self.processes.get_mut(task.process as usize - 1) {
            Some(process) => process,
            None => &mut self.others.get_or_insert_with(|| Box::new((Task::others(), Process::default()))).1,
        }
    }

    /// A place for what a task does, plus 1; there is none at [`TOGETHER`].
    #[cold]
    fn place(&mut self, task: &Task) -> u32 {
        if self.processes.len() >= MAX_PROCESSES + if task.kswapd { NODES as usize } else { 0 } {
            self.together += 1;
            return TOGETHER;
        }
        self.processes.push(Process::default());
        self.processes.len() as u32
    }

    /// Takes an isolation from an LRU list.
    #[inline]
    pub fn isolate(&mut self, e: &MmVmscanLruIsolate, task: &mut Task) {
        let one = Isolation::of(e, self.mode_bits);
        self.isolated(&one, task);
        if one.list.counts_as_scanned() {
            let file = match one.list {
                List::InactiveAnon => Some(false),
                List::InactiveFile => Some(true),
                _ => None,
            };
            self.of(task).isolated.add(one.scanned, file);
        }
    }

    #[inline]
    fn isolated(&mut self, one: &Isolation, task: &Task) {
        self.reported.note(Detail::Skipped, one.skipped.is_some());
        self.contexts[task.context as usize].isolated[one.list as usize].add(one);
    }

    /// Takes a batch of inactive pages that was shrunk at a time of the trace clock.
    #[inline]
    pub fn shrink_inactive(&mut self, at: u64, e: &MmVmscanLruShrinkInactive, task: &mut Task) {
        self.reclaimed_over_time.add(at, e.nr_reclaimed);
        let context = task.context;
        let file = Some(e.flags.has(ReclaimFlags::FILE));
        let sums = &mut self.contexts[context as usize].inactive;
        sums.count += 1;
        sums.scanned.add(e.nr_scanned, file);
        sums.reclaimed.add(e.nr_reclaimed, file);
        let reported = &mut self.reported;
        let mut add = |sum: &mut u64, value: Option<u64>, detail: Detail| {
            reported.note(detail, value.is_some());
            *sum = sum.saturating_add(value.unwrap_or(0));
        };
        add(&mut sums.dirty, e.nr_dirty, Detail::Dirty);
        add(&mut sums.writeback, e.nr_writeback, Detail::Writeback);
        add(&mut sums.congested, e.nr_congested, Detail::Congested);
        add(&mut sums.immediate, e.nr_immediate, Detail::Immediate);
        add(&mut sums.activated_anon, e.nr_activate_anon, Detail::ActivatedAnon);
        add(&mut sums.activated_file, e.nr_activate_file, Detail::ActivatedFile);
        add(&mut sums.kept, e.nr_ref_keep, Detail::Kept);
        add(&mut sums.unmap_failed, e.nr_unmap_fail, Detail::UnmapFailed);
        let place = Place { nid: e.nid, zid: e.zid, context, priority: e.priority, flags: e.flags };
        let visit = self.places.at(place);
        visit.batches += 1;
        visit.scanned = visit.scanned.saturating_add(e.nr_scanned);
        visit.reclaimed = visit.reclaimed.saturating_add(e.nr_reclaimed);
        let process = self.of(task);
        process.scanned.add(e.nr_scanned, file);
        process.reclaimed.add(e.nr_reclaimed, file);
    }

    fn shrink_active(&mut self, e: &MmVmscanLruShrinkActive, task: &Task) {
        let context = task.context;
        let totals = &mut self.contexts[context as usize];
        let file = e.flags.has(ReclaimFlags::FILE);
        let sums = if file { &mut totals.active_file } else { &mut totals.active_anon };
        sums.merge(&ActiveBatches {
            count: 1,
            taken: e.nr_taken,
            active: e.nr_active,
            deactivated: e.nr_deactivated,
            referenced: e.nr_referenced,
        });
        let place = Place { nid: e.nid, zid: None, context, priority: e.priority, flags: e.flags };
        let visit = self.places.at(place);
        visit.active_batches += 1;
        visit.active_isolated = visit.active_isolated.saturating_add(e.nr_taken);
        visit.deactivated = visit.deactivated.saturating_add(e.nr_deactivated);
    }

    fn reclaim_pages(&mut self, e: &MmVmscanReclaimPages) {
        let sums = &mut self.chosen;
        sums.count += 1;
        sums.scanned.add(e.nr_scanned, None);
        sums.reclaimed.add(e.nr_reclaimed, None);
        for (sum, value) in [
            (&mut sums.dirty, e.nr_dirty),
            (&mut sums.writeback, e.nr_writeback),
            (&mut sums.congested, e.nr_congested),
            (&mut sums.immediate, e.nr_immediate),
            (&mut sums.activated_anon, e.nr_activate_anon),
            (&mut sums.activated_file, e.nr_activate_file),
            (&mut sums.kept, e.nr_ref_keep),
            (&mut sums.unmap_failed, e.nr_unmap_fail),
        ] {
            *sum = sum.saturating_add(value);
        }
    }

    fn begin(&mut self, ev: &Event<'_>, task: &mut Task, context: Context, order: i32) {
        self.contexts[context as usize].begins += 1;
        self.of(task).begins[context as usize] += 1;
        task.enter(Open { context, begin: ev.ts, cpu: ev.cpu, order });
    }

    fn end(&mut self, ev: &Event<'_>, task: &mut Task, context: Context, reclaimed: u64, losses: &Losses) {
        let (open, nested) = task.leave();
        let whole = open.context == context
            && !losses.since(open.cpu, open.begin)
            && (open.cpu == ev.cpu || !losses.since(ev.cpu, open.begin));
        let totals = &mut self.contexts[context as usize];
        totals.ends += 1;
        totals.reclaimed_by_end = totals.reclaimed_by_end.saturating_add(reclaimed);
        if !whole {
            totals.unpaired += 1;
            totals.torn += u64::from(open.context == context);
            return;
        }
        let ns = ev.ts.saturating_sub(open.begin);
        totals.took(open.order, ns);
        if !nested {
            self.stalled_over_time.add_interval(open.begin, ev.ts);
        }
        let process = self.of(task);
        if !nested {
            process.stalls.add(ns);
            let waited = &mut process.waited[context as usize];
            *waited = waited.saturating_add(ns);
        }
        if context == Context::Direct {
            let us = (ev.ts / 1000).saturating_sub(open.begin / 1000);
            process.direct_us = process.direct_us.saturating_add(us);
            self.list(task, open.order, us);
        }
    }

    fn list(&mut self, task: &Task, order: i32, us: u64) {
        match task.process.checked_sub(1) {
            Some(process) if self.listed.len() < LISTED => self.listed.push(Listed { process, order, us }),
            _ => self.unlisted += 1,
        }
    }

    fn kswapd_wake(&mut self, ev: &Event<'_>, task: &mut Task) {
        let e: MmVmscanKswapdWake = ev.typed();
        self.contexts[Context::Kswapd as usize].begins += 1;
        task.is_kswapd();
        let kswapd = self.of(task).kswapd.get_or_insert_default();
        kswapd.nid = e.nid;
        kswapd.order = e.order;
        if kswapd.awake_since.is_some() {
            kswapd.rewakes += 1;
            kswapd.rewake_orders.add(e.order);
        } else {
            kswapd.wakes += 1;
            kswapd.wake_orders.add(e.order);
            kswapd.awake_since = Some(ev.ts);
            self.awake += 1;
        }
    }

    fn kswapd_sleep(&mut self, ev: &Event<'_>, task: &mut Task, losses: &Losses) {
        let e: MmVmscanKswapdSleep = ev.typed();
        task.is_kswapd();
        self.contexts[Context::Kswapd as usize].ends += 1;
        let kswapd = self.of(task).kswapd.get_or_insert_default();
        kswapd.nid = e.nid;
        kswapd.sleeps += 1;
        let Some(begin) = kswapd.awake_since.take() else {
            if kswapd.sleeps == 1 && !losses.any() {
                kswapd.first_sleep = Some(ev.ts);
            }
            self.contexts[Context::Kswapd as usize].unpaired += 1;
            return;
        };
        let us = (ev.ts / 1000).saturating_sub(begin / 1000);
        let (order, ns) = (kswapd.order, ev.ts.saturating_sub(begin));
        kswapd.awake.add(ns);
        kswapd.awake_us = kswapd.awake_us.saturating_add(us);
        self.contexts[Context::Kswapd as usize].took(order, ns);
        self.awake = self.awake.saturating_sub(1);
        self.list(task, order, us);
    }

    fn wakeup(&mut self, e: &MmVmscanWakeupKswapd, task: &mut Task) {
        let process = self.of(task);
        process.wakeups += 1;
        process.wakeup_orders.add(e.order);
        let (position, new) = self.by_nid.insert_up_to(e.nid as u32 as u64, NODES);
        if new {
            let nid = if self.nodes.len() < NODES as usize { e.nid } else { -1 };
            self.nodes.push(Node { nid, requests: 0, request_orders: Orders::default() });
        }
        let node = &mut self.nodes[position as usize];
        node.requests += 1;
        node.request_orders.add(e.order);
    }
}

/// The context of reclaim that begins with an event of a kind.
pub(crate) fn begins(kind: Kind) -> Option<Context> {
    Some(match kind {
        Kind::MmVmscanDirectReclaimBegin => Context::Direct,
        Kind::MmVmscanMemcgReclaimBegin => Context::Memcg,
        Kind::MmVmscanMemcgSoftlimitReclaimBegin => Context::MemcgSoftlimit,
        Kind::MmVmscanNodeReclaimBegin => Context::Node,
        _ => return None,
    })
}

/// True if reclaim other than that of kswapd ends with an event of a kind.
pub(crate) fn ends(kind: Kind) -> bool {
    use Kind::*;
    matches!(
        kind,
        MmVmscanDirectReclaimEnd | MmVmscanMemcgReclaimEnd | MmVmscanMemcgSoftlimitReclaimEnd | MmVmscanNodeReclaimEnd
    )
}

/// Moves a task into the context of reclaim in which [`Reclaim::event`] leaves it, without any sums.
pub(crate) fn follow(ev: &Event<'_>, task: &mut Task) {
    match begins(ev.kind) {
        Some(context) => task.enter(Open { context, begin: ev.ts, cpu: ev.cpu, order: 0 }),
        None if ends(ev.kind) => {
            task.leave();
        }
        None => task.is_kswapd(),
    }
}

#[cfg(test)]
mod tests;
