//! Writeback of dirty pages of files: `mm/page-writeback.c`, `fs/fs-writeback.c`. Reference is 6.1.
//!
//! | subject | file |
//! |---|---|
//! | how much may be dirty, in all and of a cgroup | [`dirty_limits`], [`cgroup_limits`] |
//! | how fast the disk writes and tasks may dirty | [`rate`], [`position`] |
//! | writers that are slowed down | [`throttle`] |
//! | files with dirty pages | [`inodes`] |
//! | the file system's journal, for which writers wait | [`journal`] |
//! | files of each cgroup, and what is to be done for them | [`wb`] |
//! | files that tasks of other cgroups write to | [`foreign`] |
//! | the thread that writes them | [`flusher`] |
//! | a request to the disk, the memory that it takes, and its end | [`request`] |
//!
//! There is one disk below all files, with a flusher for each cgroup. It is a thread that advances page by page, as
//! kswapd does batch by batch; the engine wakes it ([`Writeback::wake`]).

mod cgroup_limits;
pub(crate) mod dirty;
mod flusher;
pub(crate) mod foreign;
mod inodes;
mod journal;
mod position;
mod rate;
mod request;
mod throttle;
mod wb;

pub use crate::page_alloc::dirty_limits::{Limit, Limits, Thresholds};
pub(crate) use flusher::Flusher;
pub(crate) use journal::Journal;
pub(crate) use request::{BioEndIo, Destination, JOURNAL, Pages, RequestLimits, Requests};

use crate::mm::kernel::Kernel;
use crate::page_alloc::dirty_limits;
use crate::time::Ns;
use crate::vmstat::NodeItem;
use mmtwin_event::value::{Bytes, Str};
use request::MOST;
use wb::{Charged, Wb};

/// The disk as events name it: the first one of its kind.
const BDI: &str = "8:0";

fn bdi() -> Str {
    Str(Bytes { start: 0, len: BDI.len() as u32 }.to_slot())
}

/// When and how much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `vm.dirty_ratio` and `vm.dirty_background_ratio`, or their like in bytes.
    pub limits: Limits,
    /// Age from which on pages are written anyway (`vm.dirty_expire_centisecs`).
    pub expire: Ns,
    /// Interval of these checks (`vm.dirty_writeback_centisecs`); 0: never.
    pub interval: Ns,
    /// `vm.laptop_mode`.
    pub laptop_mode: bool,
    /// Periodic writing leaves files alone that are not old, even those that other works have begun (6.10 and later).
    pub only_expired: bool,
    /// Tasks have the flushers of other cgroups write what they dirty in their files (5.4 and later).
    pub foreign_flush: bool,
    /// Writes end on any free CPU, not on the one where the first one did: a delayed disk has a thread for that from
    /// 6.7 on, before a bound worker.
    pub ends_anywhere: bool,
    /// Most pages of a request of the flusher: what a request has room for, or where kernels of 2010 and 2012 are
    /// modelled those that are looked up together.
    pub request_pages: usize,
    /// Files belong to cgroups, each of which has limits and a flusher (4.2 and later, version 2).
    pub by_cgroup: bool,
    /// Statistics of cgroups are those of their last flush.
    pub statistics_lag: bool,
    /// Ticks per second.
    pub hz: u64,
}

impl Rules {
    /// Default sysctls, 250 ticks a second.
    pub const DEFAULT: Rules = Rules {
        limits: Limits { background: Limit::Percent(10), hard: Limit::Percent(20), anon: false },
        expire: 30_000_000_000,
        interval: 5_000_000_000,
        laptop_mode: false,
        only_expired: false,
        foreign_flush: true,
        ends_anywhere: false,
        request_pages: MOST,
        by_cgroup: false,
        statistics_lag: false,
        hz: 250,
    };
}

/// When the flusher is to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    Now,
    At(Ns),
}

/// Writeback state of the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Writeback {
    pub rules: Rules,
    /// By cgroup, the root first; the root's alone where files do not belong to cgroups.
    wbs: Vec<Wb>,
    /// Pages that a CPU may dirty before its task checks the limits, and the count of each.
    ratelimit_pages: u64,
    by_cpu: Vec<u64>,
    /// To be done ([`Effects`](super::effects::Effects)): wake flushers, tasks that have been given a file's lock, write
    /// the journal.
    pub wake: Vec<(usize, Wake)>,
    pub granted: Vec<i32>,
    pub commit_at: Option<Ns>,
    /// The file system's journal.
    pub journal: Journal,
}

impl Writeback {
    /// Nothing is dirty.
    pub(crate) fn new(rules: Rules, cpus: usize) -> Writeback {
        Writeback {
            rules,
            wbs: vec![Wb::default()],
            ratelimit_pages: 32,
            by_cpu: vec![0; cpus],
            wake: Vec::new(),
            granted: Vec::new(),
            commit_at: None,
            journal: Journal::default(),
        }
    }

    /// There are so many cgroups.
    pub(crate) fn set_cgroups(&mut self, cgroups: usize) {
        if self.rules.by_cgroup {
            self.wbs.resize(cgroups, Wb::default());
        }
    }

    /// Whose files a new file of a cgroup belongs to, and whose limits its tasks have.
    pub(crate) fn wb_of(&self, cgroup: usize) -> usize {
        if self.rules.by_cgroup { cgroup } else { 0 }
    }

    /// How many flushers there are.
    pub(crate) fn flushers(&self) -> usize {
        self.wbs.len()
    }

    /// Wakes a flusher (`wb_wakeup`).
    fn wake_now(&mut self, number: usize) {
        let wb = &mut self.wbs[number];
        if wb.running {
            wb.again = true;
        } else {
            wb.timer = None;
            self.wake.retain(|(of, _)| *of != number);
            self.wake.push((number, Wake::Now));
        }
    }

    /// The interval of periodic wakeups is written (`dirty_writeback_centisecs_handler`); a new one wakes the flushers.
    pub(crate) fn set_interval(&mut self, interval: Ns) {
        if std::mem::replace(&mut self.rules.interval, interval) != interval && interval > 0 {
            (0..self.wbs.len()).for_each(|number| self.wake_now(number));
        }
    }

    /// Wakes a flusher after a delay (`wb_wakeup_delayed`).
    fn wake_later(&mut self, number: usize, now: Ns) {
        let wb = &mut self.wbs[number];
        let set = wb.timer.is_some() || self.wake.iter().any(|(of, _)| *of == number);
        if !wb.inodes.is_empty() && self.rules.interval > 0 && !set {
            let at = now + self.rules.interval;
            wb.timer = Some(at);
            self.wake.push((number, Wake::At(at)));
        }
    }

    /// The first periodic wakeup of a flusher is due then.
    pub(crate) fn set_timer(&mut self, number: usize, at: Ns) {
        self.wbs[number].timer = Some(at);
    }

    /// A delayed wakeup is due; true if it was not moved forward.
    pub(crate) fn timer_is_due(&mut self, number: usize, at: Ns) -> bool {
        self.wbs[number].timer.take_if(|due| *due == at).is_some()
    }

    #[cfg(test)]
    fn wants_wake(&self) -> bool {
        self.wake == [(0, Wake::Now)]
    }

    /// Period of three seconds that a tick belongs to.
    fn period(&self, tick: u64) -> u64 {
        tick / (3 * self.rules.hz)
    }

    /// The part that files of a cgroup have of a threshold of all memory (`wb_calc_thresh`): that of the recent writes to
    /// the disk; nothing before any has ended.
    fn part(&mut self, number: usize, threshold: u64, tick: u64) -> u64 {
        let period = self.period(tick);
        let all: u64 = self.wbs.iter_mut().map(|wb| wb.rate.completions(period)).sum();
        let own = self.wbs[number].rate.completions(period);
        if all > 0 { (u128::from(threshold) * u128::from(own) / u128::from(all)) as u64 } else { 0 }
    }

    /// The same of a threshold of the cgroup, whose writes are all its own.
    fn part_of_cgroup(&mut self, number: usize, threshold: u64, tick: u64) -> u64 {
        let period = self.period(tick);
        if self.wbs[number].rate.completions(period) > 0 { threshold } else { 0 }
    }

    /// True if something is to be done at once.
    pub(crate) fn has_effects(&self) -> bool {
        !self.wake.is_empty() || !self.granted.is_empty() || self.commit_at.is_some()
    }

    /// Writes all dirty pages, for a reclaimer that found dirty pages (`wakeup_flusher_threads`).
    pub(crate) fn write_all(&mut self) {
        for number in 0..self.wbs.len() {
            let wb = &mut self.wbs[number];
            if !wb.inodes.is_empty() && !wb.start_all {
                wb.start_all = true;
                self.wake_now(number);
            }
        }
    }

    /// So many dirty pages are to be written, for a reclaimer that has scanned as many (`wakeup_flusher_threads` before 4.15).
    pub(crate) fn write_some(&mut self, pages: u64) {
        let wb = &mut self.wbs[0];
        if !wb.inodes.is_empty() {
            wb.asked += pages;
            self.wake_now(0);
        }
    }

    /// A page of a file has become dirty, on a CPU, and is charged to a cgroup; the file's first one if `first`.
    pub(crate) fn page_dirtied(
        &mut self,
        cpu: u32,
        (region, number): (usize, usize),
        cgroup: usize,
        first: bool,
        now: Ns,
    ) {
        let wb = &mut self.wbs[number];
        wb.dirty += 1;
        wb.dirtied += 1;
        self.by_cpu[cpu as usize] += 1;
        if first && wb.inodes.add(region, now) {
            self.wake_later(number, now);
        }
        if cgroup != number && self.rules.by_cgroup {
            self.track_foreign_dirty(cgroup, number, now);
        }
    }

    /// A file has no dirty pages any more, and none is being written.
    pub(crate) fn file_is_clean(&mut self, region: usize, number: usize) {
        self.wbs[number].inodes.remove(region);
    }

    /// Pages of a file are no longer dirty: they are under writeback, or removed.
    pub(crate) fn pages_cleaned(&mut self, number: usize, pages: u64) {
        self.wbs[number].dirty -= pages;
    }

    /// Pages that are charged to a cgroup have become dirty, or clean.
    pub(crate) fn count_dirty(&mut self, cgroup: usize, pages: i64) {
        if let Some(wb) = self.wbs.get_mut(cgroup) {
            wb.charged.dirty = wb.charged.dirty.saturating_add_signed(pages);
        }
    }

    /// The same of pages under writeback.
    pub(crate) fn count_under(&mut self, cgroup: usize, pages: i64) {
        if let Some(wb) = self.wbs.get_mut(cgroup) {
            wb.charged.under = wb.charged.under.saturating_add_signed(pages);
        }
    }

    /// The statistics of cgroups are flushed.
    pub(crate) fn flush_statistics(&mut self) {
        self.wbs.iter_mut().for_each(|wb| wb.flushed = wb.charged);
    }

    /// Pages that are charged to a cgroup, as its statistics show them.
    fn charged(&self, cgroup: usize) -> Charged {
        let wb = &self.wbs[cgroup];
        if self.rules.statistics_lag { wb.flushed } else { wb.charged }
    }

    /// No file is being written any more.
    pub(crate) fn writes_end(&mut self, number: usize, now: Ns) {
        self.wbs[number].rate.writes_end(now * self.rules.hz / 1_000_000_000, self.rules.hz);
    }

    /// Writes of pages of files begin.
    pub(crate) fn writes_begin(&mut self, number: usize, pages: u64) {
        self.wbs[number].under += pages;
    }

    /// They have ended.
    pub(crate) fn pages_written(&mut self, number: usize, pages: u64, now: Ns) {
        let period = self.period(now * self.rules.hz / 1_000_000_000);
        let wb = &mut self.wbs[number];
        wb.written += pages;
        wb.under = wb.under.saturating_sub(pages);
        wb.rate.completed(pages, period);
    }

    /// Pages of all files that are dirty.
    fn dirty(&self) -> u64 {
        self.wbs.iter().map(|wb| wb.dirty).sum()
    }
}

impl Kernel {
    /// The limits now.
    pub(crate) fn thresholds(&self) -> Thresholds {
        self.writeback.rules.limits.now(&self.alloc, &self.stat)
    }

    /// Limits have been set, or CPUs have started.
    pub(crate) fn set_dirty_limits(&mut self) {
        self.limit_writers(self.thresholds().hard);
    }

    /// The limits are those that were set at boot.
    pub(crate) fn set_dirty_limits_of_boot(&mut self) {
        self.limit_writers(self.writeback.rules.limits.at_boot(&self.alloc, &self.stat).hard);
    }

    /// What follows from a hard limit (`writeback_set_ratelimit`).
    fn limit_writers(&mut self, hard: u64) {
        self.writeback.ratelimit_pages = dirty_limits::ratelimit_pages(hard, self.stat.online().len());
        self.writeback.wbs[0].domain.set(hard);
    }

    fn dirty_pages(&self) -> u64 {
        self.stat.pages.sum(NodeItem::Dirty)
    }

    fn pages_under_writeback(&self) -> u64 {
        self.stat.pages.sum(NodeItem::Writeback)
    }
}
