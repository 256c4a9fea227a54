//! Serialized allocations of a higher order, as the huge page test of stress-highalloc makes them.
//!
//! After a failure the next attempt follows; all blocks are kept until the last attempt is over. An attempt starts an
//! interval after the start of the one before, or at once if that took longer; a delay is not made up for. Not modelled: that
//! the test's module waits on its CPU. Checked by `tests/workloads.rs`.

use super::main_loop::{Engine, Step, Stop};
use super::process::Working;
use crate::page_alloc::Request;
use crate::time::{PS_PER_NS, Ps};
use mmtwin_event::results::Attempt;

impl Engine<'_> {
    /// Continues with this many attempts, at this interval, until a time.
    pub(super) fn high_alloc(
        &mut self,
        thread: usize,
        (request, count, interval): (&Request, u64, Ps),
        working: &mut Working,
        until: Ps,
    ) -> Result<Step, Stop> {
        let cpu = self.threads[thread].caller.cpu;
        while self.kernel.clock(cpu) < until {
            if working.part.operations >= count {
                return Ok(Step::Ended);
            }
            if !working.trying {
                let clock = self.kernel.clock(cpu);
                if let Some(due) = working.attempt.map(|last| last + interval).filter(|due| *due > clock) {
                    return Ok(Step::Asleep(due));
                }
                (working.attempt, working.trying) = (Some(clock), true);
            }
            let caller = &mut self.threads[thread].caller;
            match self.kernel.allocate_unchecked(caller, request) {
                Ok(got) => {
                    working.held.push(got.page);
                    working.tried(self.kernel.clock(cpu), true);
                }
                Err(_) if !request.may_wait => working.tried(self.kernel.clock(cpu), false),
                Err(failure) => return Err(Stop::OutOfMemory(thread, failure)),
            }
        }
        Ok(Step::On)
    }
}

impl Working {
    /// The attempt under way is over.
    pub(super) fn tried(&mut self, now: Ps, success: bool) {
        let begun = self.attempt.unwrap_or(now);
        self.trying = false;
        self.part.operations += 1;
        self.part.failures += u64::from(!success);
        let latency = now.saturating_sub(begun) / PS_PER_NS;
        self.part.attempts.push(Attempt { at: begun / PS_PER_NS, latency, success });
    }
}
