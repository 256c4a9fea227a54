//! Writeback of dirty pages of files: `mm/page-writeback.c`, `fs/fs-writeback.c`. Reference is 6.1.
//!
//! | subject | file |
//! |---|---|
//! | how much may be dirty | [`dirty_limits`] |
//! | how fast the disk writes and tasks may dirty | [`rate`], [`position`] |
//! | writers that are slowed down | [`throttle`] |
//! | files with dirty pages | [`inodes`] |
//! | the file system's journal, for which writers wait | [`journal`] |
//! | the thread that writes them | [`flusher`] |
//! | a request to the disk, the memory that it takes, and its end | [`request`] |
//!
//! There is one disk below all files, with one flusher. It is a thread that advances page by page, as kswapd does batch
//! by batch; the engine wakes it ([`Writeback::wake`]).

pub(crate) mod dirty;
mod flusher;
mod inodes;
mod journal;
mod position;
mod rate;
mod request;
mod throttle;

pub use crate::page_alloc::dirty_limits::{Limit, Limits, Thresholds};
pub(crate) use flusher::Flusher;
pub(crate) use journal::Journal;
pub(crate) use request::{BioEndIo, Destination, JOURNAL, Pages, RequestLimits, Requests};

use crate::mm::kernel::Kernel;
use crate::page_alloc::dirty_limits;
use crate::time::Ns;
use crate::vmstat::NodeItem;
use inodes::Inodes;
use mmtwin_event::value::{Bytes, Str};
use rate::Rate;
use request::MOST;

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
    /// Writes end on any free CPU, not on the one where the first one did: a delayed disk has a thread for that from
    /// 6.7 on, before a bound worker.
    pub ends_anywhere: bool,
    /// Most pages of a request of the flusher: what a request has room for, or where kernels of 2010 and 2012 are
    /// modelled those that are looked up together.
    pub request_pages: usize,
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
        ends_anywhere: false,
        request_pages: MOST,
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
    pub(crate) rate: Rate,
    /// Pages that a CPU may dirty before its task checks the limits, and the count of each.
    ratelimit_pages: u64,
    by_cpu: Vec<u64>,
    /// Writers are above the hard limit.
    exceeded: bool,
    /// Pages of files that are dirty; that ever became dirty; whose writes have ended.
    dirty_now: u64,
    dirtied: u64,
    written: u64,
    inodes: Inodes,
    /// All that is dirty is to be written (`WB_start_all`).
    start_all: bool,
    /// Pages whose writeback tasks in reclaim have requested (before 4.15).
    asked: u64,
    /// The flusher is at work, and was woken meanwhile.
    running: bool,
    again: bool,
    /// When a later wake-up is due; `None`: none is set.
    pub timer: Option<Ns>,
    /// Time of its last check for old pages.
    last_old: Ns,
    /// To be done ([`Effects`](super::effects::Effects)): wake the flusher, tasks that have been given a file's lock, write
    /// the journal.
    pub wake: Option<Wake>,
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
            rate: Rate::new(),
            ratelimit_pages: 32,
            by_cpu: vec![0; cpus],
            exceeded: false,
            dirty_now: 0,
            dirtied: 0,
            written: 0,
            inodes: Inodes::default(),
            start_all: false,
            asked: 0,
            running: false,
            again: false,
            timer: None,
            last_old: 0,
            wake: None,
            granted: Vec::new(),
            commit_at: None,
            journal: Journal::default(),
        }
    }

    /// Wakes the flusher (`wb_wakeup`).
    fn wake_now(&mut self) {
        if self.running {
            self.again = true;
        } else {
            (self.wake, self.timer) = (Some(Wake::Now), None);
        }
    }

    /// The interval of periodic wakeups is written (`dirty_writeback_centisecs_handler`); a new one wakes the flusher.
    pub(crate) fn set_interval(&mut self, interval: Ns) {
        if std::mem::replace(&mut self.rules.interval, interval) != interval && interval > 0 {
            self.wake_now();
        }
    }

    /// Wakes the flusher after a delay (`wb_wakeup_delayed`).
    fn wake_later(&mut self, now: Ns) {
        if !self.inodes.is_empty() && self.rules.interval > 0 && self.timer.is_none() && self.wake.is_none() {
            let at = now + self.rules.interval;
            (self.wake, self.timer) = (Some(Wake::At(at)), Some(at));
        }
    }

    /// A delayed wakeup is due; true if it was not moved forward.
    pub(crate) fn timer_is_due(&mut self, at: Ns) -> bool {
        self.timer.take_if(|due| *due == at).is_some()
    }

    #[cfg(test)]
    fn wants_wake(&self) -> bool {
        self.wake == Some(Wake::Now)
    }

    /// Period of three seconds that a tick belongs to.
    fn period(&self, tick: u64) -> u64 {
        tick / (3 * self.rules.hz)
    }

    /// True if something is to be done at once.
    pub(crate) fn has_effects(&self) -> bool {
        self.wake.is_some() || !self.granted.is_empty() || self.commit_at.is_some()
    }

    /// Writes all dirty pages, for a reclaimer that found dirty pages (`wakeup_flusher_threads`).
    pub(crate) fn write_all(&mut self) {
        if !self.inodes.is_empty() && !self.start_all {
            self.start_all = true;
            self.wake_now();
        }
    }

    /// So many dirty pages are to be written, for a reclaimer that has scanned as many (`wakeup_flusher_threads` before 4.15).
    pub(crate) fn write_some(&mut self, pages: u64) {
        if !self.inodes.is_empty() {
            self.asked += pages;
            self.wake_now();
        }
    }

    /// A page of a file has become dirty, on a CPU; the file's first one if `first`.
    pub(crate) fn page_dirtied(&mut self, cpu: u32, region: usize, first: bool, now: Ns) {
        self.dirty_now += 1;
        self.dirtied += 1;
        self.by_cpu[cpu as usize] += 1;
        if first && self.inodes.add(region, now) {
            self.wake_later(now);
        }
    }

    /// A file has no dirty pages any more, and none is being written.
    pub(crate) fn file_is_clean(&mut self, region: usize) {
        self.inodes.remove(region);
    }

    /// Pages are no longer dirty: they are under writeback, or removed.
    pub(crate) fn pages_cleaned(&mut self, pages: u64) {
        self.dirty_now -= pages;
    }

    /// No file is being written any more.
    pub(crate) fn writes_end(&mut self, now: Ns) {
        self.rate.writes_end(now * self.rules.hz / 1_000_000_000, self.rules.hz);
    }

    /// Writes of pages have ended.
    pub(crate) fn pages_written(&mut self, pages: u64, now: Ns) {
        self.written += pages;
        let period = self.period(now * self.rules.hz / 1_000_000_000);
        self.rate.completed(pages, period);
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
        self.writeback.rate.set_limit(hard);
    }

    fn dirty_pages(&self) -> u64 {
        self.stat.pages.sum(NodeItem::Dirty)
    }

    fn pages_under_writeback(&self) -> u64 {
        self.stat.pages.sum(NodeItem::Writeback)
    }
}
