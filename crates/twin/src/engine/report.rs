//! Processes of the lab and the memory of their program ([`program`](crate::lab_guest::program)): a process reports the end of a
//! phase, and ends; the recorder takes a sample.
//!
//! The first thread reads pages of that memory in order. Those that reclaim has swapped meanwhile are read from swap, for
//! which it reclaims and waits as in any fault. Not modelled: that other threads read theirs at the same time.

use super::RunError;
use super::main_loop::{Due, Engine, Step, Stop};
use super::process::Activity;
use super::recorder::Asked;
use crate::lab_guest::program::{OF_END, OF_PHASE, OF_SAMPLE, OF_THREAD};
use crate::mm::filemap::{Reader, Touched};
use crate::mm::region::Entry;
use crate::mm::vmscan::TaskCtx;
use crate::page_alloc::Caller;
use crate::sched::TaskState;
use crate::time::{Ns, PS_PER_NS, Ps};

/// What a thread has yet to read of its program's memory.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// The next page, and how many there are.
    page: u64,
    pages: u64,
    /// Its process exits then.
    pub(super) exits: bool,
    reader: Reader,
}

impl Engine<'_> {
    /// A phase of a process has ended: it reports that, and asks for a sample.
    pub(super) fn report(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        let threads = self.processes[process].threads.len() as u64;
        self.read_program(process, OF_PHASE + OF_THREAD * (threads - 1), false, at)
    }

    /// The last phase of a process is over: it exits.
    pub(super) fn end_program(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        let threads = self.processes[process].threads.len() as u64;
        self.read_program(process, OF_END + OF_THREAD * (threads - 1), true, at)
    }

    fn read_program(&mut self, process: usize, pages: u64, exits: bool, at: Ns) -> Result<(), RunError> {
        let Some(region) = self.processes[process].program else { return self.reported(process, exits, at) };
        let region = &mut self.memory.regions[region];
        let pages = pages.min(region.len());
        if region.swapped() == 0 {
            (0..pages).for_each(|page| region.touch(0, page));
            return self.reported(process, exits, at);
        }
        let first = self.processes[process].threads.start;
        let report = Report { page: 0, pages, exits, reader: Reader::default() };
        self.threads[first].activity = Activity::Reporting(Box::new(report));
        self.wake(first, at * PS_PER_NS)
    }

    /// Continues to read a program's memory until a time.
    pub(super) fn go_on_reporting(&mut self, thread: usize, until: Ps) -> Result<Step, Stop> {
        let at = &mut self.threads[thread];
        let (Some(region), Activity::Reporting(report)) = (self.processes[at.process].program, &mut at.activity) else {
            return Ok(Step::Ended);
        };
        while report.page < report.pages {
            let page = report.page;
            if let Entry::Gone(_) = self.memory.regions[region].entry(page) {
                if self.kernel.clock(at.caller.cpu) >= until {
                    return Ok(Step::On);
                }
                let of = (region, 0, &mut report.reader);
                match self.memory.fault(&mut self.kernel, &mut at.caller, of, page, false) {
                    Ok(Touched::Done | Touched::Again) => {}
                    Ok(Touched::Wait(until)) => return Ok(Step::Asleep(until)),
                    Ok(Touched::Locked) => return Ok(Step::Waiting),
                    Err(failure) => return Err(Stop::OutOfMemory(thread, failure)),
                }
                continue;
            }
            self.memory.regions[region].touch(0, page);
            report.page += 1;
        }
        Ok(Step::Ended)
    }

    /// The recorder reads pages of its own memory, for each sample, until a time; it has when the step has ended.
    pub(super) fn read_recorder(&mut self, cpu: u32, until: Ps) -> Result<Step, Stop> {
        let Some(recorder) = &mut self.recorder else { return Ok(Step::Ended) };
        let Some(region) = recorder.program else { return Ok(Step::Ended) };
        let pages = OF_SAMPLE.min(self.memory.regions[region].len());
        let (mut page, mut reader) = (recorder.page, std::mem::take(&mut recorder.reader));
        let mut step = Step::Ended;
        while page < pages && step == Step::Ended {
            let Entry::Gone(_) = self.memory.regions[region].entry(page) else {
                self.memory.regions[region].touch(0, page);
                page += 1;
                continue;
            };
            if self.kernel.clock(cpu) >= until {
                step = Step::On;
                break;
            }
            let read = |ctx: &mut TaskCtx<'_>, caller: &mut Caller| {
                ctx.memory.fault(ctx.kernel, caller, (region, 0, &mut reader), page, false)
            };
            match self.ask_as_recorder(cpu, until, read)? {
                Asked::Got(Touched::Done | Touched::Again) => {}
                Asked::Got(Touched::Wait(until)) => step = Step::Asleep(until),
                Asked::Got(Touched::Locked) => step = Step::On,
                Asked::Later(later) => step = later,
                Asked::Denied => page += 1,
            }
        }
        if let Some(recorder) = &mut self.recorder {
            (recorder.page, recorder.reader) = (page, reader);
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
