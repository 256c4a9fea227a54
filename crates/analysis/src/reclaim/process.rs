//! Reclaim by one process: what it did, for whom it waited, and, if it is a kswapd, when it was awake.

use super::writes::Writes;
use crate::Span;
use crate::tasks::Context;
use mmtwin_event::durations::Durations;

/// Counts by order of request; orders no kernel has are merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    counts: Vec<u64>,
    /// Requests of orders below 0 or above 31.
    pub odd: u64,
}

/// Orders from here on do not exist.
pub(crate) const ORDERS: usize = 32;

impl Orders {
    #[inline]
    pub(crate) fn add(&mut self, order: i32) {
        match usize::try_from(order) {
            Ok(order) if order < ORDERS => {
                if order >= self.counts.len() {
                    self.counts.resize(order + 1, 0);
                }
                self.counts[order] += 1;
            }
            _ => self.odd += 1,
        }
    }

    /// (order, count) of the orders that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.counts.iter().copied().enumerate().filter(|(_, n)| *n > 0)
    }
}

/// Pages by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// All pages.
    pub all: u64,
    /// Of these, pages of files, as far as the kernel tells.
    pub file: u64,
    /// Of these, anonymous pages, as far as the kernel tells.
    pub anon: u64,
}

impl Pages {
    #[inline]
    pub(crate) fn add(&mut self, pages: u64, file: Option<bool>) {
        self.all = self.all.saturating_add(pages);
        match file {
            Some(true) => self.file = self.file.saturating_add(pages),
            Some(false) => self.anon = self.anon.saturating_add(pages),
            None => {}
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: Pages) {
        self.all = self.all.saturating_add(other.all);
        self.file = self.file.saturating_add(other.file);
        self.anon = self.anon.saturating_add(other.anon);
    }
}

/// When a kswapd was awake.
#[derive(Clone, Debug, Default)]
pub struct Kswapd {
    /// Its node.
    pub nid: i32,
    /// Wakes out of sleep.
    pub wakes: u64,
    /// Wakes while it was awake: a new request before it slept.
    pub rewakes: u64,
    /// Times it went to sleep.
    pub sleeps: u64,
    /// Wakes by order.
    pub wake_orders: Orders,
    /// Wakes while awake, by order.
    pub rewake_orders: Orders,
    /// Complete phases from wake to sleep.
    pub awake: Durations,
    /// Their sum in microseconds, each end cut to whole microseconds as printed traces have them.
    pub awake_us: u64,
    /// Begin of the phase that has not ended.
    pub awake_since: Option<u64>,
    /// End of the phase that began before the trace, if the first thing seen was sleep.
    pub first_sleep: Option<u64>,
    /// Order of the last wake.
    pub(crate) order: i32,
}

impl Kswapd {
    /// Nanoseconds awake in a trace: whole phases, the one before its first sleep and the one that has not ended.
    pub fn awake_within(&self, trace: Span) -> u128 {
        let before = self.first_sleep.zip(trace.first).map_or(0, |(sleep, first)| sleep.saturating_sub(first));
        let after = self.awake_since.map_or(0, |wake| trace.last.saturating_sub(wake));
        self.awake.sum + u128::from(before) + u128::from(after)
    }
}

/// Reclaim by one process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Reclaims begun, by [`Context`] number.
    pub begins: [u64; 6],
    /// Direct reclaims begun, by order.
    pub direct_orders: Orders,
    /// Requests to wake a kswapd.
    pub wakeups: u64,
    /// The same by order.
    pub wakeup_orders: Orders,
    /// Pages isolated from lists that count as scanned.
    pub isolated: Pages,
    /// Pages scanned as the shrink events count them.
    pub scanned: Pages,
    /// Pages reclaimed.
    pub reclaimed: Pages,
    /// Pages written.
    pub writes: Writes,
    /// Complete direct reclaims in microseconds, each end cut to whole microseconds as printed traces have them.
    pub direct_us: u64,
    /// Complete reclaims of all contexts but kswapd; a soft-limit reclaim inside another is part of that one.
    pub stalls: Durations,
    /// Nanoseconds of the same by [`Context`] number.
    pub waited: [u64; 6],
    /// Set for a kswapd.
    pub kswapd: Option<Box<Kswapd>>,
}

impl Process {
    /// Nanoseconds of complete reclaims in a context.
    pub fn waited(&self, context: Context) -> u64 {
        self.waited[context as usize]
    }

    /// Reclaims begun in a context.
    pub fn begun(&self, context: Context) -> u64 {
        self.begins[context as usize]
    }
}
