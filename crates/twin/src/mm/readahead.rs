//! Which pages of a file are read together: `ondemand_readahead`, `do_sync_mmap_readahead`, `do_async_mmap_readahead`
//! (5.18 to 6.9).
//!
//! A window of pages is read ahead of a reader; when the reader reaches the marked page, the next window is read. A
//! reader that jumps is treated as a stream if pages before its position are in memory (`try_context_readahead`). Not
//! modelled: large folios, requests of more than a page, advice. Checked by tests here and against guests, whose reads
//! it has to equal (docs/fidelity.md).

/// Misses of mapped reads after which nothing is read around them (`MMAP_LOTSAMISS`).
const LOTS_OF_MISSES: u32 = 100;

/// State of an open file (`struct file_ra_state`); all in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readahead {
    start: u64,
    size: u64,
    async_size: u64,
    /// Page that was read last.
    prev: Option<u64>,
    mmap_miss: u32,
}

/// Pages to read, and which of them is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub start: u64,
    pub end: u64,
    pub mark: Option<u64>,
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

    /// True if a page follows the one that was read last, or is the first of a file of which none was read.
    pub(crate) fn is_next(&self, page: u64) -> bool {
        self.prev.map_or(page == 0, |prev| page == prev + 1)
    }

    /// A call reaches a page that is not in memory (`marked` false), or the marked one. At most `max` pages are read,
    /// of a file with `len`. `cached` is true for pages in memory.
    pub(crate) fn on_demand(
        &mut self,
        page: u64,
        marked: bool,
        (max, len): (u64, u64),
        cached: impl Fn(u64) -> bool,
    ) -> Option<Window> {
        let expected = (self.start + self.size).saturating_sub(self.async_size);
        let near = self.prev.is_some_and(|prev| page.wrapping_sub(prev) <= 1);
        if page > 0 && self.size > 0 && (page == expected || page == self.start + self.size) {
            self.start += self.size;
            self.size = next_size(self.size, max);
            self.async_size = self.size;
        } else if page > 0 && marked {
            // A stream whose window was set by another reader.
            let start = (page + 1..=page + max).find(|&at| at >= len || !cached(at))?;
            self.start = start;
            self.size = next_size(start - page + 1, max);
            self.async_size = self.size;
        } else if page == 0 || near || self.prev.is_none() && page <= 1 {
            self.start = page;
            self.size = first_size(max);
            self.async_size = if self.size > 1 { self.size - 1 } else { self.size };
        } else {
            let history = (page.saturating_sub(max)..page).rev().take_while(|&at| cached(at)).count() as u64;
            if history <= 1 {
                // One page, and the windows stay as they are.
                return window(page, 1, 0, len);
            }
            // A stream that began at the start of the file is likely to be long.
            let history = if history == page { 2 * history } else { history };
            (self.start, self.size, self.async_size) = (page, (history + 1).min(max), 1);
        }
        if page == self.start && self.size == self.async_size {
            let more = next_size(self.size, max);
            if self.size + more <= max {
                self.async_size = more;
                self.size += more;
            } else {
                (self.size, self.async_size) = (max, max / 2);
            }
        }
        window(self.start, self.size, self.async_size, len)
    }

    /// A mapped page that is not in memory is accessed: the pages around it are read too, unless that has not helped
    /// before.
    pub(crate) fn around(&mut self, page: u64, (max, len): (u64, u64)) -> Option<Window> {
        self.mmap_miss = (self.mmap_miss + 1).min(10 * LOTS_OF_MISSES);
        if self.mmap_miss > LOTS_OF_MISSES {
            return window(page, 1, 0, len);
        }
        self.start = page.saturating_sub(max / 2);
        (self.size, self.async_size) = (max, max / 4);
        window(self.start, self.size, self.async_size, len)
    }

    /// A mapped page that is in memory had to be mapped: reading around has helped.
    pub(crate) fn hit(&mut self) {
        self.mmap_miss = self.mmap_miss.saturating_sub(1);
    }
}

/// The part of a window inside the file.
fn window(start: u64, size: u64, async_size: u64, len: u64) -> Option<Window> {
    let end = (start + size).min(len);
    let mark = (async_size > 0).then(|| start + size - async_size).filter(|&mark| mark < end);
    (start < end).then_some(Window { start, end, mark })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The windows of a sequential reader of a file with this many pages.
    fn stream(len: u64, max: u64) -> Vec<(u64, u64, Option<u64>)> {
        let (mut ra, mut cached, mut mark) = (Readahead::default(), 0, None);
        let mut windows = Vec::new();
        for page in 0..len {
            let marked = mark == Some(page);
            if page >= cached || marked {
                let at = cached;
                let window = ra.on_demand(page, marked, (max, len), |page| page < at);
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
        let windows = stream(130, 32);
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
    fn single_reads_read_single_pages() {
        let mut ra = Readahead::default();
        let read = |ra: &mut Readahead, page| {
            let window = ra.on_demand(page, false, (32, 1000), |page| (300..306).contains(&page) || page < 4);
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
        let around = |ra: &mut Readahead, page| ra.around(page, (32, 1000)).map(|at| (at.start, at.end, at.mark));
        assert_eq!(around(&mut ra, 100), Some((84, 116, Some(108))));
        assert_eq!(around(&mut ra, 3), Some((0, 32, Some(24))));
        (0..98).for_each(|_| assert!(around(&mut ra, 500).is_some()));
        assert_eq!(around(&mut ra, 500), Some((500, 501, None)));
        ra.hit();
        ra.hit();
        assert_eq!(around(&mut ra, 500), Some((484, 516, Some(508))));
    }
}
