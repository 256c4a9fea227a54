//! Throttling: who was throttled, why, and for how long.
//!
//! mm_vmscan_throttled (5.16 on; before, see [`congestion`](crate::congestion)) are reclaimers; balance_dirty_pages
//! are writers that are kept from dirtying pages faster than they are written.
//! Delays are whole jiffies. A wait is full if it lasted its whole timeout: nothing happened that would have ended it.

use crate::tasks::{Context, Task};
use crate::waits::Waits;
use mmtwin_event::durations::Durations;
use mmtwin_event::names::THROTTLE;
use mmtwin_event::vocabulary::{BalanceDirtyPages, MmVmscanThrottled};
use mmtwin_event::{Event, Kind};
use std::collections::BTreeMap;

/// Why a reclaimer slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Too many pages of the node under writeback.
    Writeback,
    /// Too many pages isolated from the lists.
    Isolated,
    /// Nothing was reclaimed.
    NoProgress,
    /// All dirty pages of the node met congestion.
    Congested,
    /// A reason newer than the vocabulary.
    Unnamed,
}

impl Reason {
    /// The kernel's word.
    pub fn word(self) -> &'static str {
        THROTTLE.words.get(self as usize).unwrap_or(&"(unnamed)")
    }
}

/// Throttling of reclaimers and writers.
#[derive(Clone, Debug, Default)]
pub struct Throttle {
    /// Reclaimers, by reason and by on whose behalf they reclaimed.
    pub reclaimers: BTreeMap<(Reason, Context), Throttled>,
    /// Pauses of writers; their timeout is the pause, so all count as full.
    pub writers: Throttled,
    /// Reclaimers that waited for writeback or congestion, by name.
    pub waits: Waits,
    /// Writers, by name.
    pub writer_waits: Waits,
}

/// Sums over waits.
#[derive(Clone, Debug, Default)]
pub struct Throttled {
    /// Waits that lasted their whole timeout.
    pub full: u64,
    /// Microseconds slept.
    pub usecs: Durations,
}

impl Throttled {
    fn add(&mut self, timeout: u64, delayed: u64) {
        self.full += u64::from(delayed >= timeout);
        self.usecs.add(delayed);
    }
}

impl Throttle {
    /// Takes one event of this subject.
    pub fn event(&mut self, ev: &Event<'_>, task: &Task) {
        let (reason, timeout, delayed) = match ev.kind {
            Kind::MmVmscanThrottled => {
                let ev: MmVmscanThrottled = ev.typed();
                let reason = match ev.reason.0 {
                    0 => Reason::Writeback,
                    1 => Reason::Isolated,
                    2 => Reason::NoProgress,
                    3 => Reason::Congested,
                    _ => Reason::Unnamed,
                };
                (reason, ev.usec_timeout.max(0) as u64, ev.usec_delayed.max(0) as u64)
            }
            Kind::BalanceDirtyPages => {
                let usecs = ev.typed::<BalanceDirtyPages>().pause.max(0) as u64;
                if usecs > 0 {
                    let usecs = usecs.saturating_mul(1000);
                    self.writers.add(usecs, usecs);
                    self.writer_waits.add(task, usecs.saturating_mul(1000));
                }
                return;
            }
            _ => return,
        };
        let context = if task.kswapd && task.context == Context::Other { Context::Kswapd } else { task.context };
        if matches!(reason, Reason::Writeback | Reason::Congested) {
            self.waits.add(task, delayed.saturating_mul(1000));
        }
        self.reclaimers.entry((reason, context)).or_default().add(timeout, delayed);
    }

    /// Waits and microseconds slept of reclaimers for any of some reasons.
    pub fn total(&self, reasons: &[Reason]) -> (u64, u128) {
        let chosen = self.reclaimers.iter().filter(|((reason, _), _)| reasons.contains(reason));
        chosen.fold((0, 0), |(n, usecs), (_, t)| (n + t.usecs.count(), usecs + t.usecs.sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{EventBuilder, task};

    fn throttled(reason: i64, timeout: i64, delayed: i64) -> EventBuilder {
        let made = EventBuilder::new(Kind::MmVmscanThrottled).set("reason", reason);
        made.set("usec_timeout", timeout).set("usect_delayed", delayed)
    }

    #[test]
    fn reasons_and_contexts_are_kept_apart() {
        let mut t = Throttle::default();
        let direct = task(1, Context::Direct);
        let kswapd = task(2, Context::Kswapd);
        t.event(&throttled(0, 100_000, 100_000).event(), &direct);
        t.event(&throttled(0, 100_000, 8_000).event(), &direct);
        t.event(&throttled(0, 100_000, 4_000).event(), &kswapd);
        t.event(&throttled(2, 4_000, -4).event(), &direct);
        t.event(&throttled(77, 4_000, 4_000).event(), &direct);
        let writeback = &t.reclaimers[&(Reason::Writeback, Context::Direct)];
        assert_eq!((writeback.full, writeback.usecs.count(), writeback.usecs.sum), (1, 2, 108_000));
        assert_eq!(t.total(&[Reason::Writeback, Reason::NoProgress]), (4, 112_000));
        assert!(t.reclaimers.contains_key(&(Reason::Writeback, Context::Kswapd)));
        assert!(t.reclaimers.contains_key(&(Reason::Unnamed, Context::Direct)));
        assert_eq!(Reason::NoProgress.word(), "VMSCAN_THROTTLE_NOPROGRESS");
    }

    #[test]
    fn writers_that_need_not_pause_are_not_throttled() {
        let mut t = Throttle::default();
        for pause in [-3, 0, 12] {
            t.event(&EventBuilder::new(Kind::BalanceDirtyPages).set("pause", pause).event(), &Task::default());
        }
        assert_eq!((t.writers.usecs.count(), t.writers.usecs.sum), (1, 12_000));
    }
}
