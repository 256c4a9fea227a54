//! The ring: segments in a directory, the oldest of which are deleted so that all of them stay below a size.
//!
//! The segment that is written is `NUMBER-HEAD.segment.tmp` and gets its name without `.tmp` when it is complete. One
//! that a killed recorder left is cut to its whole blocks and kept.

use super::segment::{Kind, Segment, SegmentWriter};
use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

const SUFFIX: &str = ".segment";
const UNFINISHED: &str = ".segment.tmp";
/// Files take whole blocks of the file system.
const UNIT: u64 = 4096;

/// A complete segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Position in the order of time.
    pub number: u64,
    /// What it is read with: `heads/HEAD`.
    pub head: u32,
    /// Time of its start.
    pub from: u64,
    /// Time of its last block.
    pub to: u64,
    /// Bytes on the disk.
    pub bytes: u64,
}

/// The complete segments.
pub struct Ring {
    directory: PathBuf,
    limit: u64,
    segments: VecDeque<Stored>,
    bytes: u64,
    next: u64,
    /// Segments from this one on are being read: they may exceed the limit by a twentieth.
    pub held: Option<u64>,
}

impl Ring {
    /// Opens a directory that exists: at most `limit` bytes from now on. Returns what was repaired, in sentences.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn open(directory: &Path, limit: u64) -> io::Result<(Ring, Vec<String>)> {
        let (mut found, mut notes) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let leaf = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let unfinished = leaf.strip_suffix(UNFINISHED);
            let Some((number, head)) = unfinished.or_else(|| leaf.strip_suffix(SUFFIX)).and_then(numbers) else {
                continue;
            };
            let segment = Segment::open(&path)?.filter(|segment| !segment.blocks.is_empty());
            let Some(segment) = segment else {
                fs::remove_file(&path)?;
                notes.push(format!("{leaf} holds nothing and is removed"));
                continue;
            };
            let mut kept = path;
            if unfinished.is_some() {
                let cut = kept.metadata()?.len() - segment.whole;
                OpenOptions::new().write(true).open(&kept)?.set_len(segment.whole)?;
                let whole = directory.join(name(number, head, SUFFIX));
                fs::rename(&kept, &whole)?;
                kept = whole;
                notes.push(format!("{leaf} was not complete: {cut} bytes are cut off, the rest is kept"));
            }
            let bytes = rounded(kept.metadata()?.len());
            found.push(Stored { number, head, from: segment.from, to: segment.to(), bytes });
        }
        found.sort_by_key(|stored| stored.number);
        notes.sort();
        let next = found.last().map_or(1, |last| last.number + 1);
        let bytes = found.iter().map(|stored| stored.bytes).sum();
        Ok((Ring { directory: directory.into(), limit, segments: found.into(), bytes, next, held: None }, notes))
    }

    /// Complete segments, in the order of time.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &Stored> + ExactSizeIterator + Clone {
        self.segments.iter()
    }

    /// Bytes of the complete segments on the disk.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Heads that segments are read with.
    pub fn heads(&self) -> BTreeSet<u32> {
        self.segments.iter().map(|stored| stored.head).collect()
    }

    /// Where a segment is.
    pub fn path(&self, stored: &Stored) -> PathBuf {
        self.directory.join(name(stored.number, stored.head, SUFFIX))
    }

    /// Begins the next segment.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn begin(&self, head: u32, from: u64) -> io::Result<SegmentWriter> {
        SegmentWriter::create(&self.directory.join(name(self.next, head, UNFINISHED)), from)
    }

    /// Completes the segment that was begun last.
    ///
    /// # Errors
    /// What the system refuses; the segment is lost then.
    pub fn end(&mut self, segment: SegmentWriter, head: u32) -> io::Result<()> {
        let stored =
            Stored { number: self.next, head, from: segment.from, to: segment.to, bytes: rounded(segment.bytes()) };
        self.next += 1;
        let unfinished = self.directory.join(name(stored.number, head, UNFINISHED));
        fs::rename(&unfinished, self.path(&stored)).inspect_err(|_| {
            // Else it would take room that is counted nowhere.
            let _ = fs::remove_file(&unfinished);
        })?;
        self.bytes += stored.bytes;
        self.segments.push_back(stored);
        Ok(())
    }

    /// Deletes the oldest segments until there is room for so many bytes beside them.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        let is_free = |ring: &Ring, oldest: &Stored| {
            let over = (ring.bytes + bytes).saturating_sub(ring.limit);
            over > 0 && (ring.held.is_none_or(|held| oldest.number < held) || over > ring.limit / 20)
        };
        while self.segments.front().is_some_and(|oldest| is_free(self, oldest)) {
            self.evict()?;
        }
        Ok(())
    }

    /// Deletes the oldest segment. False: there is none.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn evict(&mut self) -> io::Result<bool> {
        let Some(oldest) = self.segments.front().copied() else { return Ok(false) };
        match fs::remove_file(self.path(&oldest)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        self.segments.pop_front();
        self.bytes -= oldest.bytes;
        Ok(true)
    }
}

/// Appends a block to the segment that is written. Where the disk is full, the oldest segments are deleted; returns how
/// many for that.
///
/// # Errors
/// What the system refuses; nothing of the block is in the segment then.
pub fn put(
    ring: &mut Ring,
    open: &mut SegmentWriter,
    (kind, cpu, at): (Kind, u32, u64),
    payload: &[u8],
) -> io::Result<usize> {
    ring.make_room(rounded(open.bytes() + SegmentWriter::cost(payload)))?;
    let mut evicted = 0;
    loop {
        match open.append(kind, cpu, at, payload) {
            Err(error) if is_full(&error) && ring.evict()? => evicted += 1,
            result => return result.map(|()| evicted),
        }
    }
}

/// The disk, or what this user may take of it, is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn rounded(bytes: u64) -> u64 {
    bytes.next_multiple_of(UNIT)
}

fn name(number: u64, head: u32, suffix: &str) -> String {
    format!("{number:08}-{head}{suffix}")
}

/// Numbers of a segment and its head in a name without its suffix.
fn numbers(stem: &str) -> Option<(u64, u32)> {
    let (number, head) = stem.split_once('-')?;
    Some((number.parse().ok()?, head.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 64 << 10;

    fn write(ring: &mut Ring, at: u64, bytes: usize) {
        let mut open = ring.begin(1, at).unwrap();
        put(ring, &mut open, (Kind::Pages, 0, at + 5), &vec![7; bytes]).unwrap();
        ring.end(open, 1).unwrap();
    }

    fn on_disk(directory: &Path) -> u64 {
        fs::read_dir(directory).unwrap().map(|entry| rounded(entry.unwrap().metadata().unwrap().len())).sum()
    }

    #[test]
    fn the_oldest_go_and_the_size_stays_below_the_limit() {
        let root = tempfile::tempdir().unwrap();
        let (mut ring, notes) = Ring::open(root.path(), LIMIT).unwrap();
        assert_eq!((notes.len(), ring.evict().unwrap()), (0, false));
        for at in 0..100 {
            write(&mut ring, at, 1000 + 97 * at as usize);
            assert!(on_disk(root.path()) <= LIMIT && on_disk(root.path()) == ring.bytes());
        }
        let numbers: Vec<u64> = ring.segments().map(|stored| stored.number).collect();
        assert_eq!(numbers, (96..=100).collect::<Vec<_>>());
        assert_eq!(ring.segments().next_back().map(|stored| (stored.from, stored.to)), Some((99, 104)));
    }

    #[test]
    fn segments_that_are_read_stay_as_long_as_the_limit_is_not_far() {
        let root = tempfile::tempdir().unwrap();
        let (mut ring, _) = Ring::open(root.path(), 100 * UNIT).unwrap();
        (0..100).for_each(|at| write(&mut ring, at, 100));
        ring.held = Some(1);
        (0..20).for_each(|at| {
            write(&mut ring, 100 + at, 100);
            assert!(on_disk(root.path()) <= 105 * UNIT);
        });
        assert_eq!(ring.segments().len(), 105);
        ring.held = None;
        write(&mut ring, 200, 100);
        assert_eq!(ring.segments().len(), 100);
    }

    #[test]
    fn a_restart_goes_on_and_keeps_what_is_whole_of_a_cut_segment() {
        let root = tempfile::tempdir().unwrap();
        let (mut ring, _) = Ring::open(root.path(), LIMIT).unwrap();
        write(&mut ring, 1, 5000);
        let mut open = ring.begin(2, 10).unwrap();
        put(&mut ring, &mut open, (Kind::Pages, 0, 11), &[1; 100]).unwrap();
        let whole = open.bytes();
        put(&mut ring, &mut open, (Kind::Pages, 0, 12), &[2; 100]).unwrap();
        let unfinished = root.path().join("00000002-2.segment.tmp");
        OpenOptions::new().write(true).open(&unfinished).unwrap().set_len(open.bytes() - 1).unwrap();
        fs::write(root.path().join("00000003-2.segment.tmp"), "mmtwin").unwrap();
        fs::write(root.path().join("other"), "").unwrap();
        let (mut ring, notes) = Ring::open(root.path(), LIMIT).unwrap();
        assert_eq!(
            notes,
            [
                "00000002-2.segment.tmp was not complete: 123 bytes are cut off, the rest is kept",
                "00000003-2.segment.tmp holds nothing and is removed"
            ]
        );
        assert_eq!(fs::metadata(root.path().join("00000002-2.segment")).unwrap().len(), whole);
        assert_eq!(ring.segments().map(|s| (s.number, s.head, s.to)).collect::<Vec<_>>(), [(1, 1, 6), (2, 2, 11)]);
        assert_eq!(ring.heads().into_iter().collect::<Vec<_>>(), [1, 2]);
        write(&mut ring, 20, 100);
        assert_eq!(ring.segments().next_back().map(|stored| stored.number), Some(3));
        // A smaller limit holds with the next block.
        let (mut ring, _) = Ring::open(root.path(), 3 * UNIT).unwrap();
        write(&mut ring, 30, 100);
        assert_eq!(ring.segments().map(|stored| stored.number).collect::<Vec<_>>(), [2, 3, 4]);
    }
}
