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
}

impl Store {
    /// Segments from now on are read with `head` and begin at `since`.
    pub fn new(ring: Ring, head: u32, since: u64) -> Store {
        Store { ring, open: None, head, since, evicted: 0, error: None }
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

    /// What went wrong since the last call, in sentences.
    pub fn troubles(&mut self) -> Vec<String> {
        let evicted = std::mem::take(&mut self.evicted);
        let deleted = (evicted > 0).then(|| format!("the disk is full: {evicted} oldest segments were deleted"));
        let error =
            self.error.take().map(|error| format!("the ring could not be written, what comes is lost: {error}"));
        deleted.into_iter().chain(error).collect()
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
