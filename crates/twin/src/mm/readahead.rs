//! Which pages of a file are read together: `ondemand_readahead` (5.18 to 6.11), `page_cache_sync_ra` and
//! `page_cache_async_ra` (6.12 and newer), `do_sync_mmap_readahead`, `do_async_mmap_readahead`.
//!
//! A window of pages is read ahead of a reader; when the reader reaches the marked page, the next window is read. A
//! reader that jumps is treated as a stream if pages before its position are in memory. Folios of a window are larger
//! from window to window (`page_cache_ra_order`). Not modelled: requests of more than a page, advice. Checked by tests here and against guests, whose reads
//! it has to equal (docs/fidelity.md).

use mmtwin_scenario::kernel::ReadaheadWindows;
use std::ops::Range;

/// Misses of mapped reads after which nothing is read around them (`MMAP_LOTSAMISS`).
const LOTS_OF_MISSES: u32 = 100;

/// State of an open file (`struct file_ra_state`); all in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readahead {
    start: u64,
    size: u64,
    async_size: u64,
    /// Of the folios of the last window, if the file has large ones.
    pub(crate) order: u32,
    /// Page that was read last.
    prev: Option<u64>,
    mmap_miss: u32,
}

/// Limits of a window, in pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Most that are read ahead.
    pub max: u64,
    /// Of the file.
    pub len: u64,
}

/// Pages to read, and which of them is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub start: u64,
    pub end: u64,
    pub mark: Option<u64>,
    /// Largest order of the folios that it is read in.
    pub order: u32,
}

impl Window {
    /// The order of the folio at its start: aligned to its size, and no longer than the window (`page_cache_ra_order`).
    pub(crate) fn folio(&self) -> u32 {
        let fits = (self.end - self.start).max(1).ilog2();
        self.order.min(self.start.trailing_zeros()).min(fits)
    }

    /// The rest is read in single pages, because a folio of it could not be had or a page of it is there already.
    pub(crate) fn without_folios(&mut self) {
        self.order = 0;
    }
}

/// The first window of a stream.
fn first_size(max: u64) -> u64 {
    match 1 {
        size if size <= max / 32 => size * 4,
        size if size <= max / 4 => size * 2,
        _ => max,
    }
}

fn next_size(size: u64, max: u64) -> u64 {
    match size {
        size if size < max / 16 => 4 * size,
        size if size <= max / 2 => 2 * size,
        _ => max,
    }
}

impl Readahead {
    /// A page was read by a call.
    pub(crate) fn note(&mut self, page: u64) {
        self.prev = Some(page);
    }

    /// True if the page that was read last is among some.
    pub(crate) fn is_among(&self, pages: &Range<u64>) -> bool {
        self.prev.is_some_and(|prev| pages.contains(&prev))
    }

    /// True if a page follows the one that was read last, or is the first of a file of which none was read.
    pub(crate) fn is_next(&self, page: u64) -> bool {
        self.prev.map_or(page == 0, |prev| page == prev + 1)
    }

    /// A reader that asks for some pages reaches one that is not in memory (`marked` is `None`), or one of the marked
    /// folio, which has this order. `cached` is true for pages in memory.
    pub(crate) fn on_demand(
        &mut self,
        rules: ReadaheadWindows,
        (page, asked, marked): (u64, u64, Option<u32>),
        limits: Limits,
        cached: impl Fn(u64) -> bool,
    ) -> Option<Window> {
        if rules == ReadaheadWindows::OnDemand {
            self.ondemand_readahead((page, asked, marked.is_some()), limits, cached)
        } else if let Some(order) = marked {
            self.page_cache_async_ra(rules, (page, asked, order), limits, cached)?;
            self.window(rules, limits)
        } else {
            self.order = 0;
            match self.begin(page, limits.max, cached) {
                true => self.window(rules, limits),
                false => window(page, 1, 0, limits.len),
            }
        }
    }

    /// To 6.11.
    fn ondemand_readahead(
        &mut self,
        (page, asked, marked): (u64, u64, bool),
        limits: Limits,
        cached: impl Fn(u64) -> bool,
    ) -> Option<Window> {
        let max = limits.max;
        if page > 0 && self.size > 0 && (page == self.expected() || page == self.start + self.size) {
            self.start += self.size;
            self.size = next_size(self.size, max);
            self.async_size = self.size;
        } else if page > 0 && marked {
            self.beyond((page, asked, 0), limits, cached)?;
        } else if !self.begin(page, max, cached) {
            return window(page, 1, 0, limits.len);
        }
        // The read reaches its own mark.
        if page == self.start && self.size == self.async_size {
            let more = next_size(self.size, max);
            if self.size + more <= max {
                self.async_size = more;
                self.size += more;
            } else {
                (self.size, self.async_size) = (max, max / 2);
            }
        }
        self.window(ReadaheadWindows::OnDemand, limits)
    }

    /// The marked page is reached: 6.12 and newer. `None`: all pages behind it are in memory.
    fn page_cache_async_ra(
        &mut self,
        rules: ReadaheadWindows,
        (page, asked, order): (u64, u64, u32),
        limits: Limits,
        cached: impl Fn(u64) -> bool,
    ) -> Option<()> {
        if page == self.expected() >> order << order {
            self.start += self.size;
            self.size = self.size.max(next_size(self.size, limits.max));
        } else {
            self.beyond((page, asked, order), limits, cached)?;
        }
        if rules == ReadaheadWindows::Aligned {
            self.align(limits.max);
        }
        self.async_size = self.size;
        Some(())
    }

    /// Where the mark of the window is.
    fn expected(&self) -> u64 {
        (self.start + self.size).saturating_sub(self.async_size)
    }

    /// A page is missing that no window goes on with (`page_cache_sync_ra`). False: it is read alone, and the windows
    /// stay as they are.
    fn begin(&mut self, page: u64, max: u64, cached: impl Fn(u64) -> bool) -> bool {
        if page == 0 || self.prev.is_some_and(|prev| page.wrapping_sub(prev) <= 1) {
            self.start = page;
            self.size = first_size(max);
            self.async_size = if self.size > 1 { self.size - 1 } else { self.size };
            return true;
        }
        let history = (page.saturating_sub(max)..page).rev().take_while(|&at| cached(at)).count() as u64;
        if history <= 1 {
            return false;
        }
        // A stream that began at the start of the file is likely to be long.
        let history = if history == page { 2 * history } else { history };
        (self.start, self.size, self.async_size) = (page, (history + 1).min(max), 1);
        true
    }

    /// The next window is behind what is in memory after a mark that another reader has set. The kernel's search begins
    /// at the page behind the mark. If that is in the marked folio, the slots that it looks at lag behind the index that it
    /// counts by one page (`page_cache_next_miss`), so that the window skips the first page that is missing; and
    /// where a whole window is in memory there is none.
    fn beyond(
        &mut self,
        (page, asked, order): (u64, u64, u32),
        limits: Limits,
        cached: impl Fn(u64) -> bool,
    ) -> Option<()> {
        let lag = u64::from(order > 0);
        let mut slots = (page + 1..=page + limits.max).map(|at| at - lag);
        let start = slots.find(|&at| at >= limits.len || !cached(at))? + lag;
        self.start = start;
        self.size = next_size(start - page + asked, limits.max);
        self.async_size = self.size;
        Some(())
    }

    /// A window ends where a large folio would, which are larger from window to window.
    fn align(&mut self, max: u64) {
        self.order = (self.order + 2).min(max.max(1).trailing_zeros());
        let end = (self.start + self.size) >> self.order << self.order;
        if end > self.start {
            self.size = end - self.start;
        }
        self.order = self.order.min(self.size.max(1).ilog2());
    }

    /// The part of the window inside the file. Since 7.3 one that reaches its end has no mark.
    fn window(&self, rules: ReadaheadWindows, limits: Limits) -> Option<Window> {
        let mut window = window(self.start, self.size, self.async_size, limits.len)?;
        window.order = self.order;
        window.mark = window.mark.filter(|_| rules != ReadaheadWindows::Aligned || window.end < limits.len);
        Some(window)
    }

    /// A mapped page that is not in memory is accessed: the pages around it are read too, unless that has not helped
    /// before.
    pub(crate) fn around(&mut self, rules: ReadaheadWindows, page: u64, limits: Limits) -> Option<Window> {
        self.mmap_miss = (self.mmap_miss + 1).min(10 * LOTS_OF_MISSES);
        if self.mmap_miss > LOTS_OF_MISSES {
            return window(page, 1, 0, limits.len);
        }
        self.start = page.saturating_sub(limits.max / 2);
        (self.size, self.async_size, self.order) = (limits.max, limits.max / 4, 0);
        self.window(rules, limits)
    }

    /// Mapped reads found pages in memory: reading around has helped.
    pub(crate) fn hit(&mut self, pages: u32) {
        self.mmap_miss = self.mmap_miss.saturating_sub(pages);
    }
}

/// The part of a window inside the file.
fn window(start: u64, size: u64, async_size: u64, len: u64) -> Option<Window> {
    let end = (start + size).min(len);
    let mark = (async_size > 0).then(|| start + size - async_size).filter(|&mark| mark < end);
    (start < end).then_some(Window { start, end, mark, order: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The windows of a sequential reader of a file with this many pages.
    fn stream(rules: ReadaheadWindows, len: u64, max: u64) -> Vec<(u64, u64, Option<u64>)> {
        let (mut ra, mut cached, mut mark) = (Readahead::default(), 0, None);
        let mut windows = Vec::new();
        for page in 0..len {
            let marked = mark == Some(page);
            if page >= cached || marked {
                let at = cached;
                let marked = marked.then_some(0);
                let window = ra.on_demand(rules, (page, 1, marked), Limits { max, len }, |page| page < at);
                if let Some(window) = window {
                    windows.push((window.start, window.end, window.mark));
                    cached = cached.max(window.end);
                    mark = window.mark;
                }
            }
            ra.note(page);
        }
        windows
    }

    #[test]
    fn windows_of_a_stream_grow() {
        let windows = stream(ReadaheadWindows::OnDemand, 130, 32);
        assert_eq!(windows, stream(ReadaheadWindows::Marked, 130, 32));
        assert_eq!(
            windows,
            [
                (0, 4, Some(1)),
                (4, 12, Some(4)),
                (12, 28, Some(12)),
                (28, 60, Some(28)),
                (60, 92, Some(60)),
                (92, 124, Some(92)),
                (124, 130, Some(124))
            ]
        );
    }

    #[test]
    fn windows_of_7_3_end_where_large_folios_do() {
        let windows = stream(ReadaheadWindows::Aligned, 130, 32);
        let ends: Vec<u64> = windows.iter().map(|(_, end, _)| *end).collect();
        assert_eq!(ends, [4, 12, 16, 24, 32, 48, 64, 96, 128, 130]);
        assert_eq!((windows[5], windows[9]), ((32, 48, Some(32)), (128, 130, None)));
    }

    /// Two threads read parts of a file through one descriptor, of 7.3: what is cached of the first when it comes to its mark
    /// while the other's window is the last.
    #[test]
    fn behind_the_mark_of_a_large_folio_a_page_is_skipped() {
        let limits = Limits { max: 32, len: 1000 };
        let window = |order: u32, cached: u64| {
            let mut ra = Readahead { start: 500, size: 8, async_size: 8, order: 0, ..Readahead::default() };
            let window = ra.on_demand(ReadaheadWindows::Aligned, (4, 1, Some(order)), limits, |page| page < cached);
            window.map(|window| window.start)
        };
        assert_eq!((window(0, 12), window(2, 12)), (Some(12), Some(13)), "as in a guest");
        assert_eq!((window(0, 36), window(5, 36)), (Some(36), None), "a whole window is in memory");
    }

    #[test]
    fn since_6_12_a_missing_page_does_not_continue_a_window() {
        let next = |rules| {
            let mut ra = Readahead::default();
            let limits = Limits { max: 32, len: 1000 };
            ra.on_demand(rules, (0, 1, None), limits, |_| false);
            ra.note(3);
            ra.on_demand(rules, (4, 1, None), limits, |_| false).map(|window| (window.start, window.end))
        };
        assert_eq!(next(ReadaheadWindows::OnDemand), Some((4, 28)));
        assert_eq!(next(ReadaheadWindows::Marked), Some((4, 8)));
    }

    #[test]
    fn single_reads_read_single_pages() {
        let mut ra = Readahead::default();
        let read = |ra: &mut Readahead, page| {
            let limits = Limits { max: 32, len: 1000 };
            let cached = |page| (300..306).contains(&page) || page < 4;
            let window = ra.on_demand(ReadaheadWindows::OnDemand, (page, 1, None), limits, cached);
            ra.note(page);
            window.map(|window| (window.start, window.end, window.mark))
        };
        assert_eq!(read(&mut ra, 500), Some((500, 501, None)));
        assert_eq!(read(&mut ra, 100), Some((100, 101, None)));
        // The next page makes it a stream.
        assert_eq!(read(&mut ra, 101), Some((101, 105, Some(102))));
        assert_eq!(read(&mut ra, 999), Some((999, 1000, None)));
        // One page in memory before it does not; from the file's first page on they count twice.
        assert_eq!(read(&mut ra, 306), Some((306, 313, Some(312))));
        assert_eq!(read(&mut ra, 4), Some((4, 13, Some(12))));
        assert_eq!(read(&mut ra, 302), Some((302, 305, Some(304))));
    }

    #[test]
    fn mapped_reads_read_around_until_it_does_not_help() {
        let mut ra = Readahead::default();
        let limits = Limits { max: 32, len: 1000 };
        let around = |ra: &mut Readahead, page| {
            ra.around(ReadaheadWindows::OnDemand, page, limits).map(|at| (at.start, at.end, at.mark))
        };
        assert_eq!(around(&mut ra, 100), Some((84, 116, Some(108))));
        assert_eq!(around(&mut ra, 3), Some((0, 32, Some(24))));
        (0..98).for_each(|_| assert!(around(&mut ra, 500).is_some()));
        assert_eq!(around(&mut ra, 500), Some((500, 501, None)));
        ra.hit(2);
        assert_eq!(around(&mut ra, 500), Some((484, 516, Some(508))));
    }
}
