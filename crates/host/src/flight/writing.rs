//! A recording that is being written, by a thread of its own: the disk may take long, and ring buffers do not wait.

use super::Options;
use super::directory::Directory;
use super::dump::Dump;
use super::orders::Order;
use super::store::Store;
use crate::record::tracing;
use crate::{Error, clock};
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of what a recording holds beside segments, generously: formats, symbols, manifest; and of a sample of the
/// counters, which segments hold compressed.
const BESIDE: u64 = 2 << 20;
const SAMPLE: u64 = 24 << 10;

/// A recording that is being written.
pub struct Writing {
    /// What asked for it.
    pub order: Order,
    thread: JoinHandle<Result<PathBuf, Error>>,
    /// Is closed by the thread when it ends.
    ended: UnixStream,
    /// Number of the first segment that is still to be read.
    next: Arc<AtomicU64>,
    /// When it was ordered to begin.
    began: u64,
}

impl Writing {
    /// Begins with all complete segments of `store` that have something of the time of the order. `notes` go into
    /// the recording.
    ///
    /// # Errors
    /// The order, and why nothing is written, in words.
    pub fn begin(
        order: Order,
        (directory, options): (&Directory, &Options),
        store: &Store,
        notes: Vec<String>,
        began: u64,
    ) -> Result<Writing, (Order, String)> {
        match start(&order, (directory, options), store, notes) {
            Ok((thread, ended, next)) => Ok(Writing { order, thread, ended, next, began }),
            Err(message) => Err((order, message)),
        }
    }

    /// Readable when it is written.
    pub fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.ended, PollFlags::IN)
    }

    /// Number of the first segment that is still to be read.
    pub fn needs(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// It is written, or cannot be.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for it. Returns the recording and how long it took, or why there is none.
    pub fn finish(self) -> (Order, Result<(PathBuf, Duration), String>) {
        let panicked = |_| Err(Error::io("writing it", io::Error::other("a defect of mmtwin")));
        let written = self.thread.join().unwrap_or_else(panicked);
        let took = Duration::from_millis(clock::now().saturating_sub(self.began) / 1_000_000);
        (self.order, written.map(|output| (output, took)).map_err(|error| error.to_string()))
    }
}

type Started = (JoinHandle<Result<PathBuf, Error>>, UnixStream, Arc<AtomicU64>);

fn start(
    order: &Order,
    (directory, options): (&Directory, &Options),
    store: &Store,
    mut notes: Vec<String>,
) -> Result<Started, String> {
    let dumps = directory.path().join("dumps");
    let there = directory.dumps();
    if there >= options.max_dumps {
        return Err(format!("{} has {there} recordings already (--max-dumps): remove some", dumps.display()));
    }
    let (ring, head) = (&store.ring, store.head());
    let wanted = ring.segments().filter(|stored| stored.head == head && stored.to >= order.from);
    let first = *wanted.clone().next().ok_or("nothing is kept of this time")?;
    let last = *wanted.clone().next_back().unwrap_or(&first);
    let samples = (last.to - first.from) / (options.interval.as_nanos() as u64).max(1) + 2;
    let needed = wanted.clone().map(|stored| stored.bytes).sum::<u64>() + BESIDE + samples.saturating_mul(SAMPLE);
    if let Some(free) = free(&dumps)
        && free < needed
    {
        // Else it would take the room of the ring, and both would lose.
        let [free, needed] = [free, needed].map(|bytes| bytes.div_ceil(1 << 20));
        return Err(format!("{} has room for {free} MiB, and it needs {needed} MiB", dumps.display()));
    }
    let segments: Vec<(u64, PathBuf)> = wanted.map(|stored| (stored.number, ring.path(stored))).collect();
    let mut dump = Dump::begin(&directory.head(head), &directory.next_dump(order.cause.name), first.from)
        .map_err(|e| e.to_string())?;
    notes.insert(0, format!("written by the flight recorder: {}", order.cause.text));
    let next = Arc::new(AtomicU64::new(first.number));
    let (ended, ends) = UnixStream::pair().map_err(|e| e.to_string())?;
    let progress = Arc::clone(&next);
    let work = move || {
        // Closed at the end, however it comes.
        let _ends = ends;
        for (number, path) in segments {
            progress.store(number, Ordering::Relaxed);
            dump.add(&path)?;
        }
        dump.finish(tracing::functions, notes).map(|(output, _)| output)
    };
    let thread = thread::Builder::new().name("mmtwin-dump".into()).spawn(work).map_err(|e| e.to_string())?;
    Ok((thread, ended, next))
}

/// Bytes that this user may still write there; `None`: the system does not say.
fn free(directory: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(directory).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}
