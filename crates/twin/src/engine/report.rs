//! Processes of the lab and the memory of their program ([`program`](crate::lab_guest::program)): a process reports the end of a
//! phase, and ends; the recorder takes a sample.
//!
//! The first thread reads pages of that memory in order. Those that reclaim has swapped meanwhile are read from swap, for
//! which it reclaims and waits as in any fault. Not modelled: that other threads read theirs at the same time.

use super::RunError;
use super::main_loop::{Due, Engine, Step, Stop};
use super::process::Activity;
use super::recorder::Asked;
use crate::lab_guest::program::{OF_END, OF_PHASE, OF_THREAD, Reading};
use crate::mm::filemap::Touched;
use crate::mm::vmscan::TaskCtx;
use crate::page_alloc::Caller;
use crate::sched::TaskState;
use crate::time::{Ns, PS_PER_NS, Ps};

/// What a thread has yet to read of its program's memory.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    reading: Reading,
    /// Its process exits then.
    pub(super) exits: bool,
}

impl Engine<'_> {
    /// A phase of a process has ended: it reports that, and asks for a sample.
    pub(super) fn report(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        self.read_program(process, OF_PHASE, false, at)
    }

    /// The last phase of a process is over: it exits.
    pub(super) fn end_program(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        self.read_program(process, OF_END, true, at)
    }

    fn read_program(&mut self, process: usize, pages: u64, exits: bool, at: Ns) -> Result<(), RunError> {
        let Some(region) = self.processes[process].program else { return self.reported(process, exits, at) };
        let threads = self.processes[process].threads.clone();
        let pages = pages + OF_THREAD * (threads.len() as u64 - 1);
        let mut reading = Reading::new(region, pages, &self.memory);
        // What is in memory is read in no time.
        if self.memory.regions[region].swapped() == 0 {
            reading.next_swapped(&mut self.memory);
            return self.reported(process, exits, at);
        }
        self.threads[threads.start].activity = Activity::Reporting(Box::new(Report { reading, exits }));
        self.wake(threads.start, at * PS_PER_NS)
    }

    /// Continues to read a program's memory until a time.
    pub(super) fn go_on_reporting(&mut self, thread: usize, until: Ps) -> Result<Step, Stop> {
        let at = &mut self.threads[thread];
        let Activity::Reporting(report) = &mut at.activity else { return Ok(Step::Ended) };
        let reading = &mut report.reading;
        while let Some(page) = reading.next_swapped(&mut self.memory) {
            if self.kernel.clock(at.caller.cpu) >= until {
                return Ok(Step::On);
            }
            let of = (reading.region, 0, &mut reading.reader);
            match self.memory.fault(&mut self.kernel, &mut at.caller, of, page, false) {
                Ok(Touched::Done | Touched::Again) => {}
                Ok(Touched::Wait(until)) => return Ok(Step::Asleep(until)),
                Ok(Touched::Locked) => return Ok(Step::Waiting),
                Err(failure) => return Err(Stop::OutOfMemory(thread, failure)),
            }
        }
        Ok(Step::Ended)
    }

    /// The recorder reads its own memory, for each sample, until a time; it has when the step has ended.
    pub(super) fn read_recorder(&mut self, cpu: u32, until: Ps) -> Result<Step, Stop> {
        let program = self.recorder.as_mut().and_then(|recorder| recorder.program.take());
        let Some(mut reading) = program else { return Ok(Step::Ended) };
        let mut step = Step::Ended;
        while step == Step::Ended
            && let Some(page) = reading.next_swapped(&mut self.memory)
        {
            if self.kernel.clock(cpu) >= until {
                step = Step::On;
                break;
            }
            let read = |ctx: &mut TaskCtx<'_>, caller: &mut Caller| {
                ctx.memory.fault(ctx.kernel, caller, (reading.region, 0, &mut reading.reader), page, false)
            };
            match self.ask_as_recorder(cpu, until, read)? {
                Asked::Got(Touched::Done | Touched::Again) => {}
                Asked::Got(Touched::Wait(until)) => step = Step::Asleep(until),
                Asked::Got(Touched::Locked) => step = Step::On,
                Asked::Later(later) => step = later,
                Asked::Denied => reading.page += 1,
            }
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.program = Some(reading);
        }
        Ok(step)
    }

    /// A thread has read its program's memory.
    pub(super) fn end_report(&mut self, thread: usize, exits: bool) -> Result<(), RunError> {
        self.stop_running(thread, TaskState::default())?;
        let at = &self.threads[thread];
        self.fix(self.kernel.clock(at.caller.cpu).div_ceil(PS_PER_NS), Due::Reported(at.process, exits));
        Ok(())
    }

    /// A process has reported the end of a phase, or its own.
    pub(super) fn reported(&mut self, process: usize, exits: bool, at: Ns) -> Result<(), RunError> {
        if exits { self.exit(process, at) } else { self.ask_for_sample(process, at) }
    }
}
