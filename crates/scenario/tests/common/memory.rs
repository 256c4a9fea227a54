//! Limits of memory and time for what a test does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most that a file of a few kilobytes may take.
const MOST: usize = 256 << 20;
/// A guard far above what any of them needs.
const LONGEST: Duration = Duration::from_secs(20);

/// The system's allocator, which counts.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged, and its result is returned unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One at a time, or the memory of another would be counted.
static ALONE: Mutex<()> = Mutex::new(());

/// Does something, which is to take little memory and time.
#[allow(clippy::disallowed_methods, reason = "the time of this machine is what is measured")]
pub fn bounded<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    let begin = Instant::now();
    let result = work();
    let (taken, time) = (PEAK.load(Relaxed).saturating_sub(before), begin.elapsed());
    assert!(taken < MOST, "{what}: {} MiB", taken >> 20);
    assert!(time < LONGEST, "{what}: {time:?}");
    result
}
