//! Where blocks go: the ring and the segment that is written. What cannot be written is said, and the ring goes on.

use super::ring::{Ring, is_full, put};
use super::segment::{Kind, SegmentWriter};
use std::io;

/// The ring and its open segment.
pub struct Store {
    /// Complete segments.
    pub ring: Ring,
    /// `None`: begun with the next block.
    open: Option<SegmentWriter>,
    /// What segments are read with.
    head: u32,
    /// Time of the end of the segment before.
    since: u64,
    /// Segments that were deleted because the disk was full, and not told yet.
    evicted: usize,
    /// The last error, not told yet.
    error: Option<String>,
    /// When the one and the other were told last.
    told: [Option<u64>; 2],
}

/// The same trouble is told again after this time, in nanoseconds.
const SAY_AGAIN: u64 = 60_000_000_000;

impl Store {
    /// Segments from now on are read with `head` and begin at `since`.
    pub fn new(ring: Ring, head: u32, since: u64) -> Store {
        Store { ring, open: None, head, since, evicted: 0, error: None, told: [None; 2] }
    }

    /// Appends a block. False: it could not be written.
    pub fn put(&mut self, kind: Kind, cpu: u32, at: u64, payload: &[u8]) -> bool {
        let result = self.try_put(kind, cpu, at, payload);
        self.error = result.as_ref().err().map(io::Error::to_string).or(self.error.take());
        result.is_ok()
    }

    fn try_put(&mut self, kind: Kind, cpu: u32, at: u64, payload: &[u8]) -> io::Result<()> {
        let Store { ring, open, head, since, evicted, .. } = self;
        let open = match open {
            Some(open) => open,
            None => open.insert(begin(ring, *head, *since, evicted)?),
        };
        *evicted += put(ring, open, (kind, cpu, at), payload)?;
        Ok(())
    }

    /// Bytes of the open segment, and since when it is written; `None`: none is.
    pub fn open(&self) -> Option<(u64, u64)> {
        self.open.as_ref().map(|open| (open.bytes(), open.from))
    }

    /// Completes the open segment, at this time.
    pub fn close(&mut self, at: u64) {
        self.since = at;
        if let Some(open) = self.open.take()
            && let Err(error) = self.ring.end(open, self.head)
        {
            self.error = Some(error.to_string());
        }
    }

    /// What the head of the segments is.
    pub fn head(&self) -> u32 {
        self.head
    }

    /// What went wrong, in sentences; the same again not before a minute has passed.
    pub fn troubles(&mut self, now: u64) -> Vec<String> {
        let is_due = |told: Option<u64>| told.is_none_or(|told| now.saturating_sub(told) >= SAY_AGAIN);
        let (mut troubles, [deletions, errors]) = (Vec::new(), self.told.map(is_due));
        if deletions && self.evicted > 0 {
            troubles.push(match std::mem::take(&mut self.evicted) {
                1 => "the disk is full: the oldest segment was deleted".to_owned(),
                more => format!("the disk is full: the {more} oldest segments were deleted"),
            });
            self.told[0] = Some(now);
        }
        if errors && let Some(error) = self.error.take() {
            troubles.push(format!("the ring could not be written, what comes is lost: {error}"));
            self.told[1] = Some(now);
        }
        troubles
    }
}

/// Begins a segment. Where the disk is full, the oldest segments are deleted.
fn begin(ring: &mut Ring, head: u32, since: u64, evicted: &mut usize) -> io::Result<SegmentWriter> {
    loop {
        match ring.begin(head, since) {
            Err(error) if is_full(&error) && ring.evict()? => *evicted += 1,
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_told_at_once_and_again_after_a_minute() {
        let root = tempfile::tempdir().unwrap();
        let (ring, _) = Ring::open(root.path(), 1 << 20).unwrap();
        let mut store = Store::new(ring, 1, 0);
        assert!(store.put(Kind::Tasks, 0, 5, b"x") && store.troubles(5).is_empty());
        store.close(5);
        // Where its directory is gone nothing can be written.
        std::fs::remove_dir_all(root.path()).unwrap();
        assert!(!store.put(Kind::Tasks, 0, 6, b"x"));
        assert!(store.troubles(10)[0].contains("what comes is lost: No such file"));
        store.put(Kind::Tasks, 0, 7, b"x");
        store.evicted = 2;
        assert_eq!(store.troubles(11), ["the disk is full: the 2 oldest segments were deleted"]);
        assert!(store.troubles(12).is_empty());
        assert_eq!(store.troubles(10 + SAY_AGAIN).len(), 1);
    }
}
