//! Signals that end the program, held back while a temporary directory must be removed first.
//!
//! Only for the time of a [`Guard`], which is that of unpacking an archive: reading from the input then fails, so the
//! work ends at once, and the guard's end delivers the signal as if it came then.

use std::cell::Cell;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The signal that came; 0: none.
static SEEN: AtomicI32 = AtomicI32::new(0);
/// Guards of several threads follow one another.
static ONE: Mutex<()> = Mutex::new(());

thread_local! {
    /// This thread has a guard: an archive within an archive needs no other.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// True if a signal came that a guard holds back.
pub(super) fn seen() -> bool {
    SEEN.load(Ordering::Relaxed) != 0
}

/// Holds signals back until it is dropped.
pub(super) struct Guard(Option<Held>);

struct Held {
    before: Vec<(i32, libc::sigaction)>,
    _one: MutexGuard<'static, ()>,
}

extern "C" fn note(signal: i32) {
    SEEN.store(signal, Ordering::Relaxed);
}

impl Guard {
    /// Holds signals back from now on; those that are ignored stay so.
    pub fn new() -> Guard {
        if GUARDED.replace(true) {
            return Guard(None);
        }
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = Vec::new();
        for signal in SIGNALS {
            // SAFETY: both structures are plain data for which all zeros is a value, and live through the calls. The
            // handler does nothing but store to an atomic, which any signal handler may do.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(signal, std::ptr::null(), &mut old) != 0 || old.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = note as extern "C" fn(i32) as usize;
                if libc::sigaction(signal, &new, std::ptr::null_mut()) == 0 {
                    before.push((signal, old));
                }
            }
        }
        Guard(Some(Held { before, _one: one }))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(held) = &self.0 else { return };
        GUARDED.set(false);
        for (signal, old) in &held.before {
            // SAFETY: `old` is what the kernel gave for this signal.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
        let signal = SEEN.swap(0, Ordering::Relaxed);
        if signal != 0 {
            // SAFETY: sends a signal to this thread; what happens is what would have happened without the guard.
            unsafe { libc::raise(signal) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_within_a_guard_does_not_wait() {
        let outer = Guard::new();
        drop(Guard::new());
        assert!(GUARDED.get(), "the outer one still holds signals back");
        drop(outer);
        assert!(!GUARDED.get());
    }
}
