//! Which pages were accessed since reclaim last checked: the accessed bit of page tables, where accesses are drawn by rates.
//!
//! A page is stamped with the epoch in which reclaim checked it. The number of accesses of every pool and walk at the
//! end of each epoch is logged from the first check on, so that the next check of the page has the number of accesses
//! since: a page with probability p of each is young with 1 - (1 - p)^n, and a walk has passed it or not. Nothing is
//! kept of accesses before reclaim first checks. A fault sets the bit itself. Checked against single accesses in
//! `tests/reclaim.rs`.

pub(crate) mod binomial;
pub(crate) mod hints;
pub(crate) mod pool;

use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::region::Entry;
use binomial::at_least_once;
use mmtwin_scenario::program::Cursor;
use std::ops::Range;

/// Access pattern of a region.
#[derive(Clone, Debug)]
pub(crate) enum How {
    /// Draws of a pool.
    Pool(usize),
    /// A walk over some pages.
    Walk(Cursor, Range<u64>),
}

/// A log of a region's accesses, and which pages they can reach by which mapping. Reclaim looks through those of a region
/// for each page, and rarely needs the log itself.
#[derive(Clone, Debug)]
pub(crate) struct LogOf {
    pages: Range<u64>,
    mapper: usize,
    number: usize,
}

/// Accesses of a stream so far.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    how: How,
    /// Share of writes among them.
    writes: f64,
    now: u64,
    /// At the end of each epoch, from this one on.
    first: u32,
    counts: Vec<u64>,
}

impl Log {
    /// Accesses between the end of an epoch and the end of the last one.
    fn since(&self, epoch: u32) -> (u64, u64) {
        let last = self.counts.last().copied().unwrap_or(0);
        let before = epoch.checked_sub(self.first).and_then(|at| self.counts.get(at as usize)).copied();
        (before.unwrap_or(if epoch < self.first { 0 } else { last }), last)
    }
}

impl AccessState {
    /// An access of a mapping to a region begins: the number of its log. All accesses that draw from one pool have one.
    pub(crate) fn open_log(&mut self, region: usize, mapper: usize, how: How, writes: f64) -> usize {
        let pool = if let How::Pool(pool) = how { Some(pool) } else { None };
        let of_pool = |log: &&LogOf| {
            log.mapper == mapper && matches!(self.logs[log.number].how, How::Pool(at) if Some(at) == pool)
        };
        if let Some(known) = self.regions[region].logs.iter().find(of_pool) {
            return known.number;
        }
        let pages = match &how {
            How::Pool(pool) => self.pools[*pool].as_ref().map_or(0..0, |pool| pool.pages().clone()),
            How::Walk(_, pages) => pages.clone(),
        };
        let number = self.logs.len();
        self.regions[region].logs.push(LogOf { pages, mapper, number });
        self.logs.push(Log { how, writes, now: 0, first: self.epoch, counts: Vec::new() });
        number
    }

    /// An epoch ends; `touches` are those since the last call, by log. They are not read before reclaim has checked a
    /// page.
    pub(crate) fn end_epoch(&mut self, touches: impl Iterator<Item = (usize, u64)>) {
        if !self.looked {
            return;
        }
        self.epoch += 1;
        for (log, count) in touches {
            self.logs[log].now += count;
        }
        for log in &mut self.logs {
            if log.counts.is_empty() {
                log.first = self.epoch;
            }
            // A log that has ended keeps its last count.
            let ended = log.counts.len() > 1 && matches!(log.how, How::Pool(pool) if self.pools[pool].is_none());
            if !ended {
                log.counts.push(log.now);
            }
        }
    }

    /// A phase ends, with the accesses that it has made by log since the last call of [`AccessState::end_epoch`].
    pub(crate) fn settle(&mut self, touches: &[(usize, u64)]) {
        let next = self.epoch + 1;
        for &(log, count) in touches {
            let log = &mut self.logs[log];
            log.now += count;
            match log.counts.last_mut() {
                Some(last) => *last = log.now,
                None => (log.first, log.counts) = (next, vec![log.now]),
            }
        }
    }

    /// A phase ends: whether a mapping has accessed pages of a region since reclaim last checked them is drawn now, as the
    /// rates are forgotten.
    pub(crate) fn settle_region(&mut self, kernel: &Kernel, region: usize, mapper: usize) {
        if self.regions[region].logs.is_empty() {
            return;
        }
        let mut page = 0;
        while page < self.regions[region].len() {
            let Entry::Present(pfn) = self.regions[region].entry(page) else {
                page += 1;
                continue;
            };
            let (first, pfn) = self.regions[region].block(kernel, page, pfn);
            let pages = first..first + (1 << kernel.alloc.frames.order(pfn));
            page = pages.end;
            // Of pages that were not checked the fault has set the bit.
            let checked = self.regions[region].stamped(&pages);
            if checked.is_some_and(|before| self.touched_by(region, mapper, &pages, before)) {
                self.regions[region].touch(mapper, first);
            }
        }
    }

    /// Number of mappings that have accessed pages of a region since the last call.
    pub(crate) fn touched(&mut self, region: usize, pages: Range<u64>) -> usize {
        self.looked = true;
        let young = self.regions[region].test_and_clear_young(pages.clone());
        let before = self.regions[region].stamp(&pages, self.epoch);
        let (of, all) = (&self.regions[region], 0..self.regions[region].mappers());
        match before {
            Some(before) if !of.logs.is_empty() && matches!(of.entry(pages.start), Entry::Present(_)) => {
                let watches = of.watches_writes();
                let touched = |by: &usize| {
                    let young = young >> (*by).min(63) & 1 == 1;
                    // Where writes are watched they are drawn even if the page is known to be young.
                    let drawn = (!young || watches) && self.touched_by(region, *by, &pages, before);
                    young || drawn
                };
                all.filter(touched).count()
            }
            _ => young.count_ones() as usize,
        }
    }

    /// True if a mapping has accessed pages since an epoch, by its rates.
    fn touched_by(&mut self, region: usize, mapper: usize, pages: &Range<u64>, before: u32) -> bool {
        if !pages.clone().any(|page| self.regions[region].is_mapped_by(mapper, page)) {
            return false;
        }
        let watches = self.regions[region].watches_writes();
        let (mut untouched, mut unwritten) = (1.0, 1.0);
        let of = &self.regions[region];
        let reach = |log: &&LogOf| {
            (of.anon || log.mapper == mapper) && log.pages.start < pages.end && pages.start < log.pages.end
        };
        for log in of.logs.iter().filter(reach).map(|log| &self.logs[log.number]) {
            let (from, to) = log.since(before);
            match &log.how {
                _ if from == to => {}
                How::Pool(pool) => {
                    let Some(pool) = &self.pools[*pool] else { continue };
                    let each: f64 = pages.clone().map(|page| pool.probability(page)).sum();
                    untouched *= 1.0 - at_least_once(each, to - from);
                    if watches {
                        unwritten *= 1.0 - at_least_once(each * log.writes, to - from);
                    }
                }
                How::Walk(cursor, of) => {
                    let mut inside = pages.clone().filter(|page| of.contains(page));
                    if inside.any(|page| cursor.touches(page - of.start, from, to)) {
                        untouched = 0.0;
                        unwritten *= 1.0 - log.writes;
                    }
                }
            }
        }
        let content = u64::from(self.regions[region].content(pages.start)) | (mapper as u64) << 32;
        let drawn = self.young_random.fraction(content, u64::from(self.epoch));
        if watches && drawn >= unwritten {
            self.regions[region].note_write(pages.start);
        }
        drawn >= untouched
    }
}
