//! Limits of time and memory for an input, whose breach ends the program: neither a hang nor a full machine comes back.
//!
//! Time is CPU time of the thread that runs the input, so a busy machine does not make an input look slow; one that waits for
//! what never comes ends after [`WAITING`]. Memory is what
//! that thread has allocated and not freed since the input began.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// Most bytes that an input may have allocated at once.
const MEMORY: usize = 1 << 30;
/// Between two looks at the clocks.
const LOOK: Duration = Duration::from_millis(500);

/// Longest time that an input may take on the clock.
const WAITING: Duration = Duration::from_secs(600);

/// An input that runs.
struct Running {
    thread: i32,
    target: &'static str,
    input: String,
    /// CPU time of the thread that it may reach, in nanoseconds.
    until: u64,
    begun: Instant,
}

static RUNNING: Mutex<Vec<Running>> = Mutex::new(Vec::new());

/// Runs an input within `seconds` of CPU time and 1 GiB. `input` names it in the message that ends the program.
pub fn within<T>(target: &'static str, input: impl Into<String>, seconds: u64, run: impl FnOnce() -> T) -> T {
    static WATCHMAN: Once = Once::new();
    WATCHMAN.call_once(|| drop(std::thread::spawn(watch)));
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let begun = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let until = begun.tv_sec as u64 * 1_000_000_000 + begun.tv_nsec as u64 + seconds * 1_000_000_000;
    let running = Running { thread, target, input: input.into(), until, begun: Instant::now() };
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(running);
    let ended = Ended(thread);
    LEFT.set(MEMORY);
    let result = run();
    drop(ended);
    result
}

/// Ends the watch, after a panic too.
struct Ended(i32);

impl Drop for Ended {
    fn drop(&mut self) {
        LEFT.set(usize::MAX);
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|running| running.thread != self.0);
    }
}

fn watch() {
    loop {
        std::thread::sleep(LOOK);
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let is_late =
            |one: &&Running| one.begun.elapsed() > WAITING || used(one.thread).is_some_and(|used| used > one.until);
        if let Some(late) = running.iter().find(is_late) {
            eprintln!("HANG: target {}, {}: no end within its time", late.target, late.input);
            std::process::abort();
        }
    }
}

/// CPU time of a thread of this process in nanoseconds.
fn used(thread: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}

thread_local! {
    /// Bytes that this thread may still allocate.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The system's allocator, with a limit for each watched thread.
pub struct Limited;

/// Ends the program.
fn exhausted(size: usize) -> ! {
    // A message that needs memory would come back here.
    LEFT.set(usize::MAX);
    let place = std::backtrace::Backtrace::force_capture();
    eprintln!("MEMORY: an input takes more than 1 GiB, {size} bytes of it at once\n{place}");
    std::process::abort();
}

fn take(size: usize) {
    let left = LEFT.get();
    if left == usize::MAX {
        return;
    }
    match left.checked_sub(size) {
        Some(left) => LEFT.set(left),
        None => exhausted(size),
    }
}

fn give(size: usize) {
    let left = LEFT.get();
    if left != usize::MAX {
        // What was allocated before the input began may be freed meanwhile.
        LEFT.set(left.saturating_add(size).min(MEMORY));
    }
}

// SAFETY: every call goes to the system's allocator with the arguments it came with, and what that gives is returned as it
// is; the counting beside neither allocates nor unwinds, as the thread's cell is constant and has no destructor.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        give(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        give(layout.size());
        take(size);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}
