//! Clocks: the trace clock `mono`, which counters are stamped with, and the recorder's own CPU time.

use rustix::time::{ClockId, clock_gettime};

/// Name of the trace clock.
pub const TRACE_CLOCK: &str = "mono";

/// Nanoseconds of the trace clock: `CLOCK_MONOTONIC`.
pub fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// CPU time of this process in nanoseconds, user and system.
pub fn own_cpu_time() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

/// CPU time of this thread in nanoseconds: what it takes is not longer because others use the CPU too.
pub fn thread_cpu_time() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
