//! Sums of the events of one interval: who waited for memory and why, kswapd, purges, NUMA moves, kills.
//!
//! A wait counts in each interval as long as it lasted in it, so one that goes on is seen before it ends. Rules are those
//! of [`reclaim`](crate::reclaim) and [`throttle`](crate::throttle): what happens between the begin and the end of a
//! reclaim belongs to it, but for throttling, which has its own row. A writer's pause counts when it begins.
//! A reclaim whose end may be lost is forgotten.

use mmtwin_event::vocabulary::*;
use mmtwin_event::{Event, Kind};
use std::collections::BTreeMap;

/// Tasks of one interval, and reclaims that go on, that are told apart; the waits of others are not counted.
const MOST: usize = 1 << 14;
/// CPUs are read one after another: an end is known so much before its begin, in nanoseconds, at most.
const LATE: u64 = 2_000_000_000;

/// What a task waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// Direct reclaim: a zone is below its min watermark.
    Direct,
    /// Reclaim from a cgroup at its limit.
    Cgroup,
    /// Reclaim from a cgroup above its soft limit.
    SoftLimit,
    /// Reclaim on the own node (`zone_reclaim_mode`).
    Node,
    /// Compaction.
    Compaction,
    /// Throttled while reclaiming.
    Throttled,
    /// Paused for having dirtied pages faster than they are written.
    DirtyPages,
}

impl WaitReason {
    /// All of them.
    pub const ALL: [WaitReason; 7] = [
        WaitReason::Direct,
        WaitReason::Cgroup,
        WaitReason::SoftLimit,
        WaitReason::Node,
        WaitReason::Compaction,
        WaitReason::Throttled,
        WaitReason::DirtyPages,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            WaitReason::Direct => "direct reclaim",
            WaitReason::Cgroup => "cgroup limit",
            WaitReason::SoftLimit => "soft limit",
            WaitReason::Node => "node reclaim",
            WaitReason::Compaction => "compaction",
            WaitReason::Throttled => "throttled",
            WaitReason::DirtyPages => "dirty pages",
        }
    }
}

/// Waits of a task, or of several, in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Nanoseconds by [`WaitReason`].
    pub time: [u64; 7],
    /// Waits that began.
    pub begun: u64,
    /// Pages that it reclaimed.
    pub reclaimed: u64,
    /// Highest order of a request that reclaim began for.
    pub order: i32,
}

impl Waited {
    /// Nanoseconds.
    pub fn total(&self) -> u64 {
        self.time.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// What most of the time was waited for; `None` if none was.
    pub fn main_reason(&self) -> Option<WaitReason> {
        // The first of equal ones.
        let most = WaitReason::ALL.into_iter().rev().max_by_key(|why| self.time[*why as usize])?;
        (self.time[most as usize] > 0).then_some(most)
    }

    /// Adds the waits of another task.
    pub fn merge(&mut self, other: &Waited) {
        self.time.iter_mut().zip(other.time).for_each(|(sum, ns)| *sum = sum.saturating_add(ns));
        self.begun += other.begun;
        self.reclaimed = self.reclaimed.saturating_add(other.reclaimed);
        self.order = self.order.max(other.order);
    }

    fn add(&mut self, why: WaitReason, ns: u64) {
        let sum = &mut self.time[why as usize];
        *sum = sum.saturating_add(ns);
    }
}

/// A kswapd in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kswapd {
    /// How often it was woken.
    pub wakes: u64,
    /// Nanoseconds that it was awake.
    pub awake: u64,
}

/// Sums of one interval.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// By thread id.
    pub tasks: BTreeMap<i32, Waited>,
    /// By node.
    pub kswapds: BTreeMap<u32, Kswapd>,
    /// Purges of vmalloc areas, those that found none included.
    pub purges: u64,
    /// Areas that were purged.
    pub purged: u64,
    /// Tasks that NUMA balancing moved, or swapped, to another node.
    pub moves: u64,
    /// Victims of the OOM killer.
    pub victims: u64,
    /// Events that the kernel lost; gaps of unknown size count as one.
    pub lost: u64,
}

/// Reads events.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    sums: Sums,
    /// Since when a task waits, and for what; the part of it that was throttled, in nanoseconds.
    open: BTreeMap<i32, (WaitReason, u64, u64)>,
    /// Ends whose begin was not seen yet.
    ended: BTreeMap<i32, u64>,
    /// Since when a kswapd is awake.
    awake: BTreeMap<u32, u64>,
    /// Start of the interval.
    from: u64,
}

impl Waits {
    /// Takes an event.
    pub fn event(&mut self, ev: &Event<'_>) {
        match ev.kind {
            Kind::MmVmscanDirectReclaimBegin => {
                self.begin(ev, WaitReason::Direct, ev.typed::<MmVmscanDirectReclaimBegin>().order);
            }
            Kind::MmVmscanMemcgReclaimBegin => {
                self.begin(ev, WaitReason::Cgroup, ev.typed::<MmVmscanMemcgReclaimBegin>().order)
            }
            Kind::MmVmscanMemcgSoftlimitReclaimBegin => {
                self.begin(ev, WaitReason::SoftLimit, ev.typed::<MmVmscanMemcgSoftlimitReclaimBegin>().order);
            }
            Kind::MmVmscanNodeReclaimBegin => {
                self.begin(ev, WaitReason::Node, ev.typed::<MmVmscanNodeReclaimBegin>().order)
            }
            Kind::MmCompactionBegin => self.begin(ev, WaitReason::Compaction, 0),
            Kind::MmVmscanDirectReclaimEnd => {
                self.end(ev, WaitReason::Direct, ev.typed::<MmVmscanDirectReclaimEnd>().nr_reclaimed);
            }
            Kind::MmVmscanMemcgReclaimEnd => {
                self.end(ev, WaitReason::Cgroup, ev.typed::<MmVmscanMemcgReclaimEnd>().nr_reclaimed)
            }
            Kind::MmVmscanMemcgSoftlimitReclaimEnd => {
                self.end(ev, WaitReason::SoftLimit, ev.typed::<MmVmscanMemcgSoftlimitReclaimEnd>().nr_reclaimed);
            }
            Kind::MmVmscanNodeReclaimEnd => {
                self.end(ev, WaitReason::Node, ev.typed::<MmVmscanNodeReclaimEnd>().nr_reclaimed)
            }
            Kind::MmCompactionEnd => self.end(ev, WaitReason::Compaction, 0),
            Kind::MmVmscanThrottled => {
                let ns = u64::from(ev.typed::<MmVmscanThrottled>().usec_delayed.max(0).unsigned_abs()) * 1000;
                if let Some((_, _, throttled)) = self.open.get_mut(&ev.pid) {
                    *throttled = throttled.saturating_add(ns);
                }
                self.waited(ev.pid, |waited| waited.add(WaitReason::Throttled, ns));
            }
            Kind::BalanceDirtyPages => {
                let ms = ev.typed::<BalanceDirtyPages>().pause.max(0).unsigned_abs();
                if ms > 0 {
                    self.waited(ev.pid, |waited| {
                        waited.begun += 1;
                        waited.add(WaitReason::DirtyPages, ms.saturating_mul(1_000_000));
                    });
                }
            }
            Kind::MmVmscanKswapdWake => {
                let Ok(nid) = u32::try_from(ev.typed::<MmVmscanKswapdWake>().nid) else { return };
                self.sums.kswapds.entry(nid).or_default().wakes += 1;
                self.awake.entry(nid).or_insert(ev.ts);
            }
            Kind::MmVmscanKswapdSleep => {
                let Ok(nid) = u32::try_from(ev.typed::<MmVmscanKswapdSleep>().nid) else { return };
                if let Some(since) = self.awake.remove(&nid) {
                    let ns = ev.ts.saturating_sub(since.max(self.from));
                    self.sums.kswapds.entry(nid).or_default().awake += ns;
                }
            }
            Kind::PurgeVmapAreaLazy => {
                self.sums.purges += 1;
                self.sums.purged += u64::from(ev.typed::<PurgeVmapAreaLazy>().num_purged);
            }
            Kind::SchedMoveNuma | Kind::SchedSwapNuma => self.sums.moves += 1,
            Kind::MarkVictim => self.sums.victims += 1,
            _ => {}
        }
    }

    /// The kernel lost events: ends of what goes on may be among them.
    pub fn lost(&mut self, events: Option<u64>) {
        self.sums.lost = self.sums.lost.saturating_add(events.unwrap_or(1));
        self.open.clear();
        self.awake.clear();
    }

    /// Ends the interval at a time in nanoseconds of the trace clock, and gives its sums.
    pub fn close(&mut self, at: u64) -> Sums {
        let open = std::mem::take(&mut self.open);
        for (pid, (why, since, throttled)) in &open {
            let ns = at.saturating_sub((*since).max(self.from)).saturating_sub(*throttled);
            self.waited(*pid, |waited| waited.add(*why, ns));
        }
        self.open = open;
        self.open.values_mut().for_each(|(_, _, throttled)| *throttled = 0);
        for (nid, since) in &self.awake {
            self.sums.kswapds.entry(*nid).or_default().awake += at.saturating_sub((*since).max(self.from));
        }
        self.ended.retain(|_, ended| ended.saturating_add(LATE) >= at);
        self.from = at;
        std::mem::take(&mut self.sums)
    }

    fn waited(&mut self, pid: i32, change: impl FnOnce(&mut Waited)) {
        if self.sums.tasks.len() < MOST || self.sums.tasks.contains_key(&pid) {
            change(self.sums.tasks.entry(pid).or_default());
        }
    }

    fn begin(&mut self, ev: &Event<'_>, why: WaitReason, order: i32) {
        self.waited(ev.pid, |waited| {
            waited.begun += 1;
            waited.order = waited.order.max(order);
        });
        // Its end, on another CPU, was read before it.
        if let Some(ended) = self.ended.remove(&ev.pid).filter(|ended| *ended >= ev.ts) {
            let ns = ended - ev.ts.max(self.from).min(ended);
            return self.waited(ev.pid, |waited| waited.add(why, ns));
        }
        let nested = why == WaitReason::SoftLimit && self.open.contains_key(&ev.pid);
        if !nested && (self.open.len() < MOST || self.open.contains_key(&ev.pid)) {
            self.open.insert(ev.pid, (why, ev.ts, 0));
        }
    }

    fn end(&mut self, ev: &Event<'_>, why: WaitReason, reclaimed: u64) {
        self.waited(ev.pid, |waited| waited.reclaimed = waited.reclaimed.saturating_add(reclaimed));
        match self.open.get(&ev.pid) {
            Some((open, since, throttled)) if *open == why => {
                let ns = ev.ts.saturating_sub((*since).max(self.from)).saturating_sub(*throttled);
                self.open.remove(&ev.pid);
                self.waited(ev.pid, |waited| waited.add(why, ns));
            }
            Some(_) => {}
            None if self.ended.len() < MOST => _ = self.ended.insert(ev.pid, ev.ts),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;

    fn at(kind: Kind, ts: u64, pid: i32) -> EventBuilder {
        EventBuilder::new(kind).at(ts).pid(pid)
    }

    #[test]
    fn a_wait_counts_where_it_passed() {
        let mut waits = Waits::default();
        waits.event(&at(Kind::MmVmscanMemcgReclaimBegin, 10, 7).set("order", 2).event());
        let first = waits.close(100).tasks[&7];
        assert_eq!(
            (first.total(), first.main_reason(), first.begun, first.order),
            (90, Some(WaitReason::Cgroup), 1, 2)
        );
        waits.event(&at(Kind::MmVmscanMemcgReclaimEnd, 130, 7).set("nr_reclaimed", 32).event());
        let second = waits.close(200).tasks[&7];
        assert_eq!((second.total(), second.begun, second.reclaimed), (30, 0, 32));
        assert!(waits.close(300).tasks.is_empty(), "nothing goes on");
    }

    #[test]
    fn an_end_may_be_read_before_its_begin() {
        let mut waits = Waits::default();
        waits.event(&at(Kind::MmVmscanDirectReclaimEnd, 50, 7).event());
        waits.close(60);
        waits.event(&at(Kind::MmVmscanDirectReclaimBegin, 40, 7).event());
        assert_eq!(waits.close(100).tasks[&7].total(), 0, "it ended in the interval before");
        assert!(waits.close(200).tasks.is_empty(), "it does not go on");
    }

    #[test]
    fn throttling_is_told_apart_and_a_loss_ends_what_goes_on() {
        let mut waits = Waits::default();
        waits.event(&at(Kind::MmVmscanDirectReclaimBegin, 0, 7).event());
        waits.event(&at(Kind::MmVmscanThrottled, 4_000, 7).set("usec_delayed", 3).event());
        waits.event(&at(Kind::MmVmscanDirectReclaimEnd, 5_000, 7).event());
        waits.event(&at(Kind::BalanceDirtyPages, 6_000, 8).set("pause", 2).event());
        waits.event(&at(Kind::MmVmscanDirectReclaimBegin, 7_000, 9).event());
        waits.lost(None);
        let sums = waits.close(8_000);
        let time = sums.tasks[&7].time;
        assert_eq!((time[WaitReason::Direct as usize], time[WaitReason::Throttled as usize]), (2_000, 3_000));
        assert_eq!(sums.tasks[&8].main_reason(), Some(WaitReason::DirtyPages));
        assert_eq!((sums.tasks[&9].total(), sums.lost), (0, 1));
    }

    #[test]
    fn a_kswapd_is_awake_from_its_wake_to_its_sleep() {
        let mut waits = Waits::default();
        waits.event(&at(Kind::MmVmscanKswapdWake, 10, 50).set("nid", 1).event());
        waits.event(&at(Kind::MmVmscanKswapdWake, 20, 50).set("nid", 1).event());
        assert_eq!(waits.close(100).kswapds[&1], Kswapd { wakes: 2, awake: 90 });
        waits.event(&at(Kind::MmVmscanKswapdSleep, 140, 50).set("nid", 1).event());
        assert_eq!(waits.close(200).kswapds[&1], Kswapd { wakes: 0, awake: 40 });
        assert!(waits.close(300).kswapds.is_empty());
    }
}
