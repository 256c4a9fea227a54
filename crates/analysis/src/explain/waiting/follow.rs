//! One wait step by step, by a second reading: what the task did from the start of the wait to its end, what kswapd did
//! meanwhile, what the counters around it say.

use super::target::Target;
use super::{Cause, Chain};
use crate::explain::{Step, Steps};
use crate::findings::words::{count, counted, pages, time};
use crate::tasks::Tasks;
use mmtwin_event::event::Symbol;
use mmtwin_event::vocabulary::{
    MmCompactionEnd, MmMigratePages, MmPageAlloc, MmShrinkSlabEnd, MmVmscanKswapdSleep, MmVmscanKswapdWake,
    MmVmscanLruShrinkInactive, MmVmscanThrottled, MmVmscanWakeupKswapd, WritebackCongestionWait,
    WritebackWaitIffCongested,
};
use mmtwin_event::{Event, Kind, Order, Sink, Source};
use std::collections::BTreeMap;

/// Asking kswapd so long before the wait belongs to it.
const BEFORE: u64 = 100_000_000;
/// The first allocation within so long after the wait is what it waited for.
const AFTER: u64 = 10_000_000;

/// A sleep below this part of the wait has no step of its own.
const NAP: u64 = 50;

/// Counts an event, and keeps the time of the first.
fn tally(of: &mut (u64, u64), at: u64) {
    *of = (if of.1 == 0 { at } else { of.0 }, of.1 + 1);
}

/// Scans of a node that follow one another.
#[derive(Default)]
struct Scans {
    at: u64,
    until: u64,
    batches: u64,
    nid: i32,
    priority: (i32, i32),
    scanned: u64,
    freed: u64,
    /// Dirty, under writeback, to be written at once, activated, referenced.
    kept: [u64; 5],
}

/// Collects the steps of a wait.
pub struct Follow {
    target: Target,
    source: Source,
    tasks: Tasks,
    steps: Steps,
    scans: Option<Scans>,
    /// Node and order of the last request to kswapd before the wait.
    asked: Option<(u64, i32, i32)>,
    /// Since when the kswapd of a node is awake.
    awake: BTreeMap<i32, u64>,
    began: bool,
    ended: bool,
    allocated: bool,
    /// By shrinker: first time, calls, nanoseconds, objects freed.
    slab: BTreeMap<String, (u64, u64, u64, u64)>,
    /// First time and number of shrinks of active lists, and of sleeps too short for a step of their own.
    active: (u64, u64),
    naps: (u64, u64),
    shrinking: Option<u64>,
    written: (u64, u64),
    others: BTreeMap<String, (u64, u64)>,
    /// The last event of the task in the wait, and the longest time without one: its begin and its length.
    last: u64,
    silence: (u64, u64),
}

/// From this part of the wait and this length on a time without events is a step.
const SILENCE: u64 = 4;
const LONG: u64 = 1_000_000;

impl Follow {
    /// Follows a wait that a survey found.
    pub fn new(target: Target) -> Follow {
        let (source, tasks, steps, awake, slab, others) = Default::default();
        Follow {
            target,
            source,
            tasks,
            steps,
            scans: None,
            asked: None,
            awake,
            began: false,
            ended: false,
            allocated: false,
            slab,
            active: (0, 0),
            naps: (0, 0),
            shrinking: None,
            written: (0, 0),
            others,
            last: 0,
            silence: (0, 0),
        }
    }

    /// The chain, when everything has been read.
    pub fn chain(mut self) -> Chain {
        self.flush();
        let (mut steps, _) = self.steps.finish();
        let Target { title, answer, around, gaps, .. } = self.target;
        steps.extend(around);
        super::chain(title, steps, gaps, answer)
    }

    fn push(&mut self, ev: &Event<'_>, what: String) {
        self.flush_scans();
        self.steps.push(Step::new(ev.ts, ev.kind, None, what));
    }

    /// What kswapd was doing when the wait began, and who asked it.
    fn begin(&mut self, ev: &Event<'_>) {
        self.began = true;
        if let Some((at, nid, order)) = self.asked.filter(|(at, ..)| ev.ts.saturating_sub(*at) <= BEFORE) {
            let ago = time(ev.ts.saturating_sub(at) as f64);
            let what =
                format!("wakeup_kswapd: asks the kswapd of node {nid} for order {order}, {ago} before it waits itself");
            self.steps.push(Step::new(at, Kind::MmVmscanWakeupKswapd, None, what));
        }
        for (nid, since) in &self.awake {
            let what = format!("kswapd of node {nid} is awake, since {}", time(ev.ts.saturating_sub(*since) as f64));
            self.steps.push(Step::new(ev.ts, Kind::MmVmscanKswapdWake, None, what));
        }
        let wait = &self.target.wait;
        let order = wait.order.map_or(String::new(), |order| format!(" for order {order}"));
        let why = match wait.cause {
            Cause::Direct => "no zone has enough free pages".to_string(),
            Cause::Cgroup => "its cgroup is at its limit".into(),
            Cause::Node => "its node has too few free pages".into(),
            Cause::Compaction => "memory is fragmented".into(),
            Cause::Dirty => "too many pages are dirty".into(),
            Cause::Throttled => "reclaim makes no progress or waits for writeback".into(),
        };
        let what = format!("{}{order} on CPU {}: {why}", wait.cause.function(), ev.cpu);
        self.steps.push(Step::new(ev.ts, ev.kind, None, what));
    }

    fn flush_scans(&mut self) {
        let Some(of) = self.scans.take() else { return };
        const WORDS: [&str; 5] = ["dirty", "under writeback", "written next", "activated", "referenced"];
        let kept = WORDS.iter().zip(of.kept).filter(|(_, n)| *n > 0);
        let kept: Vec<String> = kept.map(|(word, n)| format!("{} {word}", count(n))).collect();
        let kept = if kept.is_empty() { String::new() } else { format!("; kept {}", kept.join(", ")) };
        let priority = match of.priority {
            (from, to) if from == to => format!("priority {from}"),
            (from, to) => format!("priority {from} to {to}"),
        };
        let what = format!(
            "shrink_inactive_list of node {}, {priority}: {} scanned, {} freed{kept}",
            of.nid,
            pages(of.scanned),
            pages(of.freed)
        );
        let mut step = Step::new(of.at, Kind::MmVmscanLruShrinkInactive, None, what);
        (step.times, step.until) = (of.batches, of.until);
        self.steps.push(step);
    }

    fn scan(&mut self, ev: &Event<'_>) {
        let e: MmVmscanLruShrinkInactive = ev.typed();
        if self.scans.as_ref().is_some_and(|of| of.nid != e.nid) {
            self.flush_scans();
        }
        let of = self.scans.get_or_insert(Scans {
            at: ev.ts,
            nid: e.nid,
            priority: (e.priority, e.priority),
            ..Scans::default()
        });
        (of.until, of.batches) = (ev.ts, of.batches + 1);
        of.priority = (of.priority.0.max(e.priority), of.priority.1.min(e.priority));
        of.scanned = of.scanned.saturating_add(e.nr_scanned);
        of.freed = of.freed.saturating_add(e.nr_reclaimed);
        let activated = e.nr_activate_anon.unwrap_or(0).saturating_add(e.nr_activate_file.unwrap_or(0));
        let kept = [e.nr_dirty, e.nr_writeback, e.nr_immediate, Some(activated), e.nr_ref_keep];
        for (sum, n) in of.kept.iter_mut().zip(kept) {
            *sum = sum.saturating_add(n.unwrap_or(0));
        }
    }

    /// What is told once, at the end.
    fn flush(&mut self) {
        self.flush_scans();
        for (shrinker, (at, calls, ns, freed)) in std::mem::take(&mut self.slab) {
            let took = time(ns as f64);
            let what = format!(
                "shrink_slab, {shrinker}: {}, {took}, {} freed",
                counted(calls, "call"),
                counted(freed, "object")
            );
            self.steps.push(Step::new(at, Kind::MmShrinkSlabEnd, None, what));
        }
        let (at, silent) = self.silence;
        if silent >= LONG && silent.saturating_mul(SILENCE) >= self.target.wait.length() {
            let what = format!(
                "no event for {}: it worked on, did not run, or waited for a disk (record sched:sched_switch, block:*)",
                time(silent as f64)
            );
            let mut step = Step::new(at, Kind::Other, None, what);
            step.event = "silence";
            self.steps.push(step);
        }
        if self.active.1 > 0 {
            let what = format!("shrink_active_list, {}", counted(self.active.1, "time"));
            self.steps.push(Step::new(self.active.0, Kind::MmVmscanLruShrinkActive, None, what));
        }
        if self.naps.1 > 0 {
            let what = format!("reclaim_throttle: {} too short to tell", counted(self.naps.1, "sleep"));
            self.steps.push(Step::new(self.naps.0, Kind::MmVmscanThrottled, None, what));
        }
        if self.written.1 > 0 {
            let what = format!("pageout: {} written", counted(self.written.1, "page"));
            self.steps.push(Step::new(self.written.0, Kind::MmVmscanWriteFolio, None, what));
        }
        for (name, (at, n)) in std::mem::take(&mut self.others) {
            let mut step = Step::new(at, Kind::Other, None, format!("{name} by it, {}", counted(n, "time")));
            step.event = "other events";
            self.steps.push(step);
        }
    }

    /// An event of the task during the wait.
    fn inside(&mut self, ev: &Event<'_>) {
        match ev.kind {
            Kind::MmVmscanLruShrinkInactive => self.scan(ev),
            Kind::MmVmscanLruShrinkActive => tally(&mut self.active, ev.ts),
            Kind::MmShrinkSlabStart => self.shrinking = Some(ev.ts),
            Kind::MmShrinkSlabEnd => {
                let e: MmShrinkSlabEnd = ev.typed();
                let name = match ev.symbol(e.shrink) {
                    Symbol::Name(name) => String::from_utf8_lossy(name).into_owned(),
                    Symbol::Address(address) => match self.source.symbol(address) {
                        Some(name) => name.to_owned(),
                        None => format!("{address:#x}"),
                    },
                };
                let from = self.shrinking.take().unwrap_or(ev.ts);
                let of = self.slab.entry(name).or_insert((from, 0, 0, 0));
                of.1 += 1;
                of.2 = of.2.saturating_add(ev.ts.saturating_sub(from));
                of.3 = of.3.saturating_add(u64::try_from(e.retval).unwrap_or(0));
            }
            Kind::MmVmscanWriteFolio => {
                tally(&mut self.written, ev.ts);
            }
            Kind::MmVmscanThrottled => {
                let e: MmVmscanThrottled = ev.typed();
                let slept = u64::try_from(e.usec_delayed).unwrap_or(0).saturating_mul(1000);
                if slept.saturating_mul(NAP) < self.target.wait.length() {
                    return tally(&mut self.naps, ev.ts);
                }
                let ms = |us: i32| time(f64::from(us.max(0)) * 1e3);
                let reason = mmtwin_event::names::THROTTLE.word(e.reason.0.into());
                let what = format!(
                    "reclaim_throttle: slept {} of at most {}, {reason}",
                    ms(e.usec_delayed),
                    ms(e.usec_timeout)
                );
                self.push(ev, what);
            }
            Kind::WritebackCongestionWait => {
                let e: WritebackCongestionWait = ev.typed();
                self.push(ev, format!("congestion_wait: slept {}", time(f64::from(e.usec_delayed) * 1e3)));
            }
            Kind::WritebackWaitIffCongested => {
                let e: WritebackWaitIffCongested = ev.typed();
                self.push(ev, format!("wait_iff_congested: slept {}", time(f64::from(e.usec_delayed) * 1e3)));
            }
            Kind::MmVmscanWakeupKswapd => {
                let e: MmVmscanWakeupKswapd = ev.typed();
                self.push(ev, format!("wakeup_kswapd of node {}, order {}", e.nid, e.order));
            }
            Kind::FolioWaitWriteback => {
                self.flush_scans();
                let what = "folio_wait_writeback: waits for the disk to write a folio".to_string();
                self.steps.push(Step::new(ev.ts, ev.kind, None, what).like([0; 4]));
            }
            Kind::MmMigratePages => {
                let e: MmMigratePages = ev.typed();
                self.push(ev, format!("migrate_pages: {} moved, {} not", count(e.nr_succeeded), count(e.nr_failed)));
            }
            Kind::MmCompactionEnd if self.target.wait.cause != Cause::Compaction => {
                let e: MmCompactionEnd = ev.typed();
                let how = if e.sync { "sync" } else { "async" };
                self.push(ev, format!("compact_zone: {how} compaction ends"));
            }
            Kind::Other if !ev.name.is_empty() => {
                let of = self.others.entry(ev.name.to_owned()).or_insert((ev.ts, 0));
                of.1 += 1;
            }
            _ => {}
        }
    }

    fn end(&mut self, ev: &Event<'_>) {
        self.flush_scans();
        self.ended = true;
        let wait = &self.target.wait;
        let freed = wait.returned.map_or(String::new(), |n| format!("{} freed, ", pages(n)));
        let what = format!("returns: {freed}{} after its begin", time(wait.length() as f64));
        self.steps.push(Step::new(wait.until.max(ev.ts.min(wait.until)), ev.kind, None, what));
    }
}

impl Sink for Follow {
    fn start(&mut self, source: &Source) {
        self.source = source.clone();
    }

    fn task(&mut self, task: &mmtwin_event::Task<'_>) {
        self.tasks.announce(task.pid, task.tgid, task.comm);
    }

    fn order(&self, _: Kind) -> Order {
        Order::Time
    }

    fn event(&mut self, ev: &Event<'_>) {
        let (from, until, pid) = (self.target.wait.from, self.target.wait.until, self.target.wait.pid);
        if ev.ts > until.saturating_add(AFTER) {
            return;
        }
        match ev.kind {
            Kind::MmVmscanKswapdWake => {
                let e: MmVmscanKswapdWake = ev.typed();
                self.awake.entry(e.nid).or_insert(ev.ts);
                if self.began && !self.ended && ev.pid != pid {
                    self.push(ev, format!("kswapd of node {} wakes for order {}", e.nid, e.order));
                }
            }
            Kind::MmVmscanKswapdSleep => {
                let e: MmVmscanKswapdSleep = ev.typed();
                self.awake.remove(&e.nid);
                if self.began && !self.ended {
                    self.push(ev, format!("kswapd of node {} goes to sleep", e.nid));
                }
            }
            Kind::WritebackStart | Kind::WritebackWritten if self.began && !self.ended && ev.pid != pid => {
                self.flush_scans();
                let what = "the flusher writes meanwhile".to_string();
                self.steps.push(Step::new(ev.ts, ev.kind, None, what).like([1, 0, 0, 0]));
            }
            _ => {}
        }
        if ev.pid != pid {
            return;
        }
        if ev.ts < from {
            if ev.kind == Kind::MmVmscanWakeupKswapd {
                let e: MmVmscanWakeupKswapd = ev.typed();
                self.asked = Some((ev.ts, e.nid, e.order));
            }
            return;
        }
        if self.began && !self.ended {
            // A sleep that was told is no silence.
            let told = match ev.kind {
                Kind::MmVmscanThrottled => {
                    let e: MmVmscanThrottled = ev.typed();
                    u64::try_from(e.usec_delayed).unwrap_or(0).saturating_mul(1000)
                }
                _ => 0,
            };
            let silent = ev.ts.saturating_sub(self.last).saturating_sub(told);
            if silent > self.silence.1 {
                self.silence = (self.last, silent);
            }
        }
        self.last = ev.ts;
        // A sleep is told by one event, at its end, or at its begin.
        if matches!(self.target.wait.cause, Cause::Dirty | Cause::Throttled) {
            if !self.began && (ev.ts == from || ev.ts == until) {
                self.begin(ev);
                self.inside(ev);
                self.end(ev);
            }
        } else if ev.ts == from && !self.began {
            self.begin(ev);
        } else if ev.ts <= until && self.began && !self.ended {
            if ev.ts == until && is_end(ev.kind) {
                self.end(ev);
            } else {
                self.inside(ev);
            }
        } else if self.ended && !self.allocated && ev.kind == Kind::MmPageAlloc {
            self.allocated = true;
            let e: MmPageAlloc = ev.typed();
            let after = time(ev.ts.saturating_sub(until) as f64);
            self.push(ev, format!("gets the page of order {}, {after} after reclaim", e.order));
        }
    }
}

fn is_end(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::MmVmscanDirectReclaimEnd
            | Kind::MmVmscanMemcgReclaimEnd
            | Kind::MmVmscanNodeReclaimEnd
            | Kind::MmCompactionEnd
    )
}
