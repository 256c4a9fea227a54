//! What takes long: work on a thread of its own, without Python's lock. The caller's thread tells progress and looks for
//! signals meanwhile, so that Ctrl-C ends it.

use pyo3::prelude::*;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often signals are looked for and progress is told.
const PERIOD: Duration = Duration::from_millis(50);

/// What unwinds work that is stopped in its midst.
pub(crate) struct Halt;

/// What the work and the waiting thread tell each other.
pub(crate) struct Told {
    reached: AtomicU64,
    /// Once it is true, the work is to end.
    pub stop: AtomicBool,
}

impl Told {
    /// Notes how far the work is; unwinds it if it is to end.
    pub fn reach(&self, how_far: u64) {
        self.reached.store(how_far, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            // Without the message of a panic.
            resume_unwind(Box::new(Halt));
        }
    }

    /// Notes how far it is.
    pub fn note(&self, how_far: u64) {
        self.reached.store(how_far, Ordering::Relaxed);
    }
}

/// Does work, and calls `progress` on this thread with how far it is, whenever that changed.
///
/// An exception of a signal or of `progress` stops the work and is returned, whatever the work gives.
pub(crate) fn work<T: Send>(
    py: Python<'_>,
    progress: &(dyn Fn(Python<'_>, u64) -> PyResult<()> + Sync),
    work: impl FnOnce(&Told) -> T + Send,
) -> PyResult<T> {
    let told = Told { reached: AtomicU64::new(u64::MAX), stop: AtomicBool::new(false) };
    py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = channel::<()>();
            let told = &told;
            let thread = scope.spawn(move || {
                // Dropped when the work ends, however it ends.
                let _sender = sender;
                work(told)
            });
            let (mut failed, mut said) = (None, u64::MAX);
            loop {
                let ended = receiver.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout);
                let reached = told.reached.load(Ordering::Relaxed);
                if failed.is_none() {
                    let result = Python::attach(|py| {
                        py.check_signals()?;
                        if reached == said { Ok(()) } else { progress(py, reached) }
                    });
                    said = reached;
                    if let Err(error) = result {
                        failed = Some(error);
                        told.stop.store(true, Ordering::Relaxed);
                    }
                }
                if ended {
                    break;
                }
            }
            match (thread.join(), failed) {
                (_, Some(error)) => Err(error),
                (Ok(value), None) => Ok(value),
                (Err(panic), None) => resume_unwind(panic),
            }
        })
    })
}

/// Tells a callable of Python, which may be absent, a number that `scaled` makes of how far the work is.
pub(crate) fn callable(
    progress: Option<Py<PyAny>>,
    scaled: fn(u64) -> f64,
) -> impl Fn(Python<'_>, u64) -> PyResult<()> + Sync {
    move |py, reached| match &progress {
        Some(progress) => progress.call1(py, (scaled(reached),)).map(drop),
        None => Ok(()),
    }
}
