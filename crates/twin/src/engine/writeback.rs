//! Writeback in a run: the flusher's thread and the one that ends writes, and their wakeups.
//!
//! Both run on any free CPU, as workers of unbound workqueues do, and share their CPUs by ticks. Before 6.7 dm-delay,
//! which makes a disk of the lab slow, ends requests on the CPU where its timer is set: the CPU that submits a request
//! to an idle disk, and from then on its own. The flusher also wakes periodically. The time of the first such wakeup is
//! not known for a kernel that has been running, so it is drawn by the seed.

use super::RunError;
use super::main_loop::{Due, Engine};
use super::process::Activity;
use crate::hw::PAGE_SIZE;
use crate::mm::effects::Effects;
use crate::mm::writeback::{BioEndIo, Flusher, Limit, Wake};
use crate::page_alloc::{Caller, Policy};
use crate::probe::Task;
use crate::time::{Ns, PS_PER_NS, Ps, Random, Use};

/// Ids of the root's flusher and of the thread that ends writes, below those of kswapds; of cgroups' flushers, above
/// those of kcompactds.
const FLUSHER: i32 = 58;
const END_IO: i32 = 59;
const FIRST_OF_CGROUPS: i32 = 188;
/// `vm.dirty_ratio` unless it is written.
const DEFAULT_RATIO: u64 = 20;

/// The threads, by their numbers.
#[derive(Clone, Debug)]
pub(crate) struct WritebackThreads {
    /// By cgroup.
    pub flushers: Vec<usize>,
    pub end_io: usize,
    /// CPU where requests end that do not end anywhere.
    ends_on: u32,
}

impl Engine<'_> {
    /// Makes the threads, if the workload has files, and sets the limits as they are then, if a sysctl has just been
    /// written, or where all memory is there at boot.
    pub(super) fn start_writeback(&mut self) {
        let limits = self.kernel.writeback.rules.limits;
        let written = limits.hard != Limit::Percent(DEFAULT_RATIO);
        match written || self.kernel.reclaim.rules.per_zone_lru.is_some() {
            true => self.kernel.set_dirty_limits(),
            false => self.kernel.set_dirty_limits_of_boot(),
        }
        if !self.memory.regions.iter().any(|region| region.file && region.users > 0) {
            return;
        }
        let caller = |pid| Caller::new(0, Task { pid, tgid: pid }, Policy::Default);
        let flushers = (0..self.kernel.writeback.flushers()).map(|number| {
            let pid = if number == 0 { FLUSHER } else { FIRST_OF_CGROUPS + number as i32 };
            let activity = Activity::Flusher(Flusher::new(number));
            self.add_kernel_thread("kworker/u-writeback".into(), caller(pid), activity)
        });
        let flushers = flushers.collect();
        let end_io = self.add_kernel_thread("kworker-write-end".into(), caller(END_IO), Activity::BioEndIo(BioEndIo));
        self.writeback_threads = Some(WritebackThreads { flushers, end_io, ends_on: 0 });
        let interval = self.kernel.writeback.rules.interval;
        if interval > 0 {
            let after = match self.scenario.machine.disk.first_flush.0 {
                0 => Random::new(self.scenario.run.seed, Use::TimerOffset).below(FLUSHER as u64, 0, interval),
                after => after,
            };
            let due = self.options.state.at + after;
            self.kernel.writeback.set_timer(0, due);
            self.due.set(due, 0, Due::Flush(0));
        }
    }

    /// Writes one of the sysctls of dirty pages; of a percentage and bytes the one that was written last counts.
    pub(super) fn set_dirty_sysctl(&mut self, name: &str, value: u64) {
        const NS_PER_CS: u64 = 10_000_000;
        if name == "vm.dirty_writeback_centisecs" {
            self.kernel.writeback.set_interval(value.saturating_mul(NS_PER_CS));
            return;
        }
        let rules = &mut self.kernel.writeback.rules;
        let pages = Limit::Pages(value.div_ceil(PAGE_SIZE));
        match name {
            "vm.dirty_ratio" => rules.limits.hard = Limit::Percent(value),
            "vm.dirty_bytes" => rules.limits.hard = pages,
            "vm.dirty_background_ratio" => rules.limits.background = Limit::Percent(value),
            "vm.dirty_background_bytes" => rules.limits.background = pages,
            "vm.dirty_expire_centisecs" => rules.expire = value.saturating_mul(NS_PER_CS),
            _ => return,
        }
        self.kernel.alloc.dirty_limits = Some(rules.limits);
        self.kernel.set_dirty_limits();
    }

    /// Applies the effects of writeback after a step of a CPU.
    pub(super) fn process_writeback(&mut self, cpu: u32, at: Ps, effects: &Effects) -> Result<(), RunError> {
        for &task in &effects.lock_granted {
            if let Some(thread) = self.threads.iter().position(|thread| thread.caller.task.pid == task)
                && !self.stays_awake(thread)
                && !self.queues.holds(self.threads[thread].caller.cpu, thread)
            {
                self.wake(thread, at)?;
            }
        }
        if let Some(due) = effects.commit_at {
            self.due.set(due, cpu, Due::Commit);
        }
        for &(number, wake) in &effects.flushers {
            match wake {
                Wake::Now => self.wake_flusher(number, (Some(cpu), at))?,
                Wake::At(due) => self.due.set(due, 0, Due::Flush(number)),
            }
        }
        Ok(())
    }

    /// A CPU has given disks this many requests to write.
    pub(super) fn writes_begin(&mut self, cpu: u32, count: usize) {
        if let Some(of) = &mut self.writeback_threads
            && count > 0
            && self.memory.requests.at_disk() == count
        {
            of.ends_on = cpu;
        }
    }

    /// The periodic wakeup of a flusher is due.
    pub(super) fn flusher_is_due(&mut self, number: usize, at: Ns) -> Result<(), RunError> {
        if self.kernel.writeback.timer_is_due(number, at) {
            self.wake_flusher(number, (None, at * PS_PER_NS))
        } else {
            Ok(())
        }
    }

    fn wake_flusher(&mut self, number: usize, by: (Option<u32>, Ps)) -> Result<(), RunError> {
        let Some(of) = &self.writeback_threads else { return Ok(()) };
        self.wake_kernel_thread(of.flushers[number], Vec::new(), by)
    }

    /// True if a kernel thread stays where it was woken.
    fn is_bound(&self, thread: usize) -> bool {
        let end_io = self.writeback_threads.as_ref().is_some_and(|of| of.end_io == thread);
        end_io && !self.kernel.writeback.rules.ends_anywhere
    }

    /// At the end of a slice kernel threads that wait for others move to CPUs with fewer threads; if threads take turns
    /// only an idle CPU takes one. A thread that is moved waits behind all others, so that one which moves again and
    /// again never runs: beside 24 threads that sleep and wake, kswapd of 3.4 once had to wait for 14 s.
    pub(super) fn spread_kernel_threads(&mut self) -> Result<(), RunError> {
        if self.writeback_threads.is_none() {
            return Ok(());
        }
        let only_idle = !self.queues.is_fair();
        for thread in self.kernel_threads().filter(|thread| !self.is_bound(*thread)).collect::<Vec<_>>() {
            let from = self.threads[thread].caller.cpu;
            let here = self.queues.len(from);
            if here < 2 || !self.queues.holds(from, thread) {
                continue;
            }
            let others = (0..self.queues.cpus() as u32).filter(|&cpu| self.kernel.stat.is_online(cpu));
            let most = if only_idle { 0 } else { here - 2 };
            let to = others.min_by_key(|&cpu| self.queues.len(cpu)).filter(|&to| self.queues.len(to) <= most);
            if let Some(to) = to {
                self.move_thread(thread, to)?;
            }
        }
        Ok(())
    }

    /// The disk is done with a request. Behind dm-delay that of a file, or of swap beside files, is ended by a thread;
    /// otherwise its end interrupts the CPU that has submitted it.
    pub(super) fn transferred(&mut self, cpu: u32, request: u64, at: Ns) -> Result<(), RunError> {
        let late = self.memory.late_by(request);
        if late > 0 {
            self.due.set(at + late.div_ceil(PS_PER_NS), cpu, Due::Written(request));
            return Ok(());
        }
        let requests = &mut self.memory.requests;
        let of_file = self.memory.costs.write_end > 0 && requests.is_on_disk(request) == Some(true);
        let by_thread = of_file && self.scenario.machine.disk.ticks;
        let uncongested = requests.leave_queue(request);
        self.kernel.reclaim.request_ended(uncongested);
        let threads = self.writeback_threads.as_ref().filter(|_| by_thread);
        let Some(&WritebackThreads { end_io, ends_on, .. }) = threads else {
            self.kernel.wait(cpu, at * PS_PER_NS);
            if of_file {
                self.kernel.interrupt(cpu, self.memory.costs.write_end);
            }
            self.memory.requests.end(&mut self.kernel, (cpu, Task::default()), request);
            return Ok(());
        };
        if self.memory.requests.transferred(request) {
            let cpus = if self.is_bound(end_io) { vec![ends_on] } else { Vec::new() };
            self.wake_kernel_thread(end_io, cpus, (None, at * PS_PER_NS))?;
        }
        Ok(())
    }
}
