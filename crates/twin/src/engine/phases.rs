//! Start, phases and end of processes, and their threads when a CPU goes offline.

use super::RunError;
use super::action_stats::ActionStats;
use super::main_loop::{Due, Engine};
use super::process::{Activity, What};
use super::thread_moves::is_allowed;
use crate::build;
use crate::mm::accessed::pool::Pool;
use crate::mm::filemap::Reader;
use crate::mm::memcg::kmem;
use crate::mm::memcg::write::Write;
use crate::mm::vmscan::NodeReclaim;
use crate::sched::TaskState;
use crate::time::{Ns, PS_PER_NS};
use crate::workload::accessor::{Accessing, Accessor};
use crate::workload::ahead::Ahead;
use crate::workload::latencies::Latencies;
use crate::workload::sampled::Rest;
use mmtwin_scenario::program::{self, AccessPlan, Pattern};
use mmtwin_scenario::workload::Via;

/// How much later than asked a sleeping task wakes up on an idle CPU (`timer_slack_ns`).
const TIMER_SLACK: Ns = 50_000;

impl Engine<'_> {
    /// A process starts: its threads are placed on CPUs, and its first phase begins.
    pub(super) fn start(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        for thread in self.processes[process].threads.clone() {
            self.threads[thread].caller.cpu = self.first_cpu(thread);
            self.numa_started(thread, at);
        }
        let (first, threads) = (self.processes[process].threads.start, self.processes[process].threads.len() as u64);
        self.kernel.reclaim.charge(self.threads[first].caller.cgroup, kmem::stacks(threads));
        self.processes[process].started = true;
        // At the beginning of the run the recorder has just taken a sample.
        let late = self.scenario.processes[process].start.0 > 0;
        if late { self.ask_for_sample(process, at) } else { self.begin_first(process, at) }
    }

    /// The first phase of a process begins.
    fn begin_first(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        for thread in self.processes[process].threads.clone() {
            let began = self.known_cpu(thread, &self.options.state.began).or_else(|| self.begin_cpu(thread));
            if let Some(cpu) = began.filter(|began| *began != self.threads[thread].caller.cpu) {
                self.move_thread(thread, cpu)?;
            }
        }
        self.next_phase(process, at)
    }

    /// The sample is taken that a process has asked for: its next phase begins.
    pub(super) fn go_on_after_sample(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        if self.processes[process].next == 0 {
            return self.begin_first(process, at);
        }
        let first = self.processes[process].threads.start;
        if let Some(cpu) = self.answered(first).filter(|&cpu| cpu != self.threads[first].caller.cpu) {
            self.move_thread(first, cpu)?;
        }
        self.next_phase(process, at)
    }

    /// A CPU for a thread that begins: that of the state the run begins with, else one that is chosen.
    pub(crate) fn first_cpu(&mut self, thread: usize) -> u32 {
        match self.known_cpu(thread, &self.options.state.cpus) {
            Some(cpu) => self.queues.place([cpu].into_iter(), &self.kernel.machine).unwrap_or(cpu),
            None => self.choose_cpu(thread),
        }
    }

    /// The CPU of a thread in a list by process and thread, if it may run there.
    fn known_cpu(&self, thread: usize, of: &[Vec<u32>]) -> Option<u32> {
        let process = self.threads[thread].process;
        let number = thread - self.processes[process].threads.start;
        let may = |cpu: &u32| *cpu < self.kernel.stat.cpus() && self.kernel.stat.is_online(*cpu);
        let allowed = |cpu: &u32| is_allowed(&self.threads[thread], &self.scenario.processes, *cpu);
        of.get(process).and_then(|cpus| cpus.get(number)).copied().filter(may).filter(allowed)
    }

    /// A CPU for a thread: its own, one of its node, one of its process's, or any.
    fn choose_cpu(&mut self, thread: usize) -> u32 {
        let at = &self.threads[thread];
        let config = &self.scenario.processes[at.process];
        let (stat, machine) = (&self.kernel.stat, &self.kernel.machine);
        let all = || (0..stat.cpus()).filter(|&cpu| stat.is_online(cpu));
        let own: Vec<u32> = match (&at.pinned, &config.cpus) {
            (Some(cpu), _) => vec![*cpu],
            (None, Some(cpus)) => cpus.numbers().to_vec(),
            (None, None) => all().collect(),
        };
        let own: Vec<u32> = own.into_iter().filter(|&cpu| stat.is_online(cpu)).collect();
        let near = |cpu: &u32| config.start_node.is_some_and(|node| machine.node_of(*cpu) == node as usize);
        let near: Vec<u32> = own.iter().copied().filter(near).collect();
        let queues = &mut self.queues;
        let place = queues.place(near.into_iter(), machine);
        let place = place.or_else(|| queues.place(own.into_iter(), machine));
        place.or_else(|| queues.place(all(), machine)).unwrap_or(0)
    }

    /// The next phase of a process begins, or the process ends.
    fn next_phase(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        let this = &mut self.processes[process];
        let phase = this.next;
        if phase == this.phases.len() {
            return self.end_program(process, at);
        }
        if phase > 0 && this.phases[phase - 1].what == What::Populate {
            self.populated(process);
        }
        let this = &mut self.processes[process];
        (this.phase, this.next, this.begun, this.reached) = (Some(phase), phase + 1, at, at);
        let (duration, number) = (this.phases[phase].duration, this.phases[phase].what.number());
        let actions = number.map_or(0, |number| self.scenario.processes[process].phases[number].actions.len());
        this.action_stats = vec![ActionStats::default(); actions];
        if let Some(duration) = duration {
            self.fix(at.saturating_add(duration), Due::PhaseEnd(process, phase));
        }
        self.numa_phase(process, self.processes[process].phases[phase].what == What::Populate);
        let threads = self.processes[process].threads.clone();
        self.processes[process].working = threads.len();
        // Sampled accesses of a shared region draw from one pool: pools by number of the access.
        let mut shared = Vec::new();
        for thread in threads.clone() {
            self.threads[thread].touched = None;
            if self.set_next(thread, phase, 0, &mut shared) {
                self.wake(thread, at * PS_PER_NS)?;
            } else {
                self.processes[process].working -= 1;
            }
        }
        self.end_if_done(process);
        Ok(())
    }

    /// Regions that had a policy of their own while they were populated have it no more.
    fn populated(&mut self, process: usize) {
        let config = &self.scenario.processes[process];
        for (number, region) in config.regions.iter().enumerate() {
            let policy = build::policy(program::policy(config, number), &self.scenario.machine);
            if let (Some(_), Ok(policy)) = (&region.populate_policy, policy) {
                self.memory.regions[self.processes[process].regions[number]].policy = policy;
            }
        }
    }

    /// Ends a phase without a duration when all threads are done.
    fn end_if_done(&mut self, process: usize) {
        let this = &self.processes[process];
        if let Some(phase) = this.phase.filter(|&phase| this.working == 0 && this.phases[phase].duration.is_none()) {
            let reached = this.reached;
            self.fix(reached, Due::PhaseEnd(process, phase));
        }
    }

    /// The activity of a thread has ended: the next one of its phase begins.
    pub(super) fn go_on(&mut self, thread: usize) -> Result<(), RunError> {
        let at = &mut self.threads[thread];
        if let Activity::Reporting(report) = &at.activity {
            let exits = report.exits;
            at.activity = Activity::Nothing;
            return self.end_report(thread, exits);
        }
        let process = at.process;
        let Some(phase) = self.processes[process].phase else { return Ok(()) };
        let next = match &at.activity {
            Activity::Action(number, _) => Some(number + 1),
            Activity::Accessing(_)
            | Activity::Nothing
            | Activity::Kswapd(_)
            | Activity::Kcompactd(_)
            | Activity::Flusher(_)
            | Activity::BioEndIo(_)
            | Activity::Reporting(_)
            | Activity::Exiting(_) => None,
        };
        if let Activity::Accessing(accessor) = std::mem::take(&mut at.activity) {
            at.touched = Some(accessor);
        }
        let mut own = self.shared_pools(process);
        if next.is_some_and(|next| self.set_next(thread, phase, next, &mut own)) {
            return Ok(());
        }
        self.stop_running(thread, TaskState::default())?;
        self.numa_forget(thread);
        let ended = self.kernel.clock(self.threads[thread].caller.cpu).div_ceil(PS_PER_NS);
        let this = &mut self.processes[process];
        (this.working, this.reached) = (this.working - 1, this.reached.max(ended));
        self.end_if_done(process);
        Ok(())
    }

    /// Sets the activity of a thread: its action number `next`, or its accesses after the last. False if there is none.
    fn set_next(&mut self, thread: usize, phase: usize, next: usize, shared: &mut Vec<(usize, usize)>) -> bool {
        let at = &self.threads[thread].phases[phase];
        let activity = if next < at.actions.len() {
            Activity::Action(next, None)
        } else if !at.accesses.is_empty() {
            Activity::Accessing(self.accessor(thread, phase, shared))
        } else {
            Activity::Nothing
        };
        let some = !matches!(activity, Activity::Nothing);
        self.threads[thread].activity = activity;
        some
    }

    /// Pools that other threads of a process share in this phase, as (access, pool).
    fn shared_pools(&self, process: usize) -> Vec<(usize, usize)> {
        let accessor =
            self.processes[process].threads.clone().filter_map(|thread| match &self.threads[thread].activity {
                Activity::Accessing(accessor) => Some(accessor),
                Activity::Nothing
                | Activity::Action(..)
                | Activity::Kswapd(_)
                | Activity::Kcompactd(_)
                | Activity::Flusher(_)
                | Activity::BioEndIo(_)
                | Activity::Reporting(_)
                | Activity::Exiting(_) => self.threads[thread].touched.as_ref(),
            });
        let accesses = accessor.flat_map(|accessor| &accessor.list);
        let shared = accesses.filter(|access| access.plan.shared);
        shared.filter_map(|access| Some((access.plan.number, access.pool?))).collect()
    }

    /// The accesses of a thread in a phase.
    fn accessor(&mut self, thread: usize, phase: usize, shared: &mut Vec<(usize, usize)>) -> Accessor {
        let at = &self.threads[thread];
        let process = &self.processes[at.process];
        // Read-ahead depends on the order of the accesses to a file, and calls on memory do not go through page tables.
        let region = |plan: &AccessPlan| &self.memory.regions[process.regions[plan.region]];
        let one_by_one = |plan: &AccessPlan| region(plan).file || plan.via == Via::Syscall && !region(plan).anon;
        // So does the latency of those that arrive.
        let in_order = |plan: &AccessPlan| one_by_one(plan) || plan.arrivals.is_some();
        let explicit = self.options.explicit || at.phases[phase].accesses.iter().any(in_order);
        let (worker, nanosleep) = (self.scenario.machine.worker, self.scenario.machine.cost.nanosleep.0 / PS_PER_NS);
        let mut list = Vec::new();
        for plan in &at.phases[phase].accesses {
            let (region, mapper) = (process.regions[plan.region], process.mappers[plan.region]);
            let mut mappings = self.memory.mappings.iter();
            let mapping = mappings.position(|of| (of.process, of.region, of.mapper) == (at.process, region, mapper));
            let mut others = shared.iter().filter(|_| plan.shared);
            let known = others.find(|(access, _)| *access == plan.number).map(|(_, pool)| *pool);
            let pool = match plan.stream.pattern() {
                Pattern::Draws(classes, permutation) if !explicit => Some(known.unwrap_or_else(|| {
                    let (pages, number) = (&plan.pages, self.memory.pools.len());
                    let of = &self.memory.regions[region];
                    let marks = mapping.map(|mapping| &self.memory.mappings[mapping]);
                    let of = (of, mapper);
                    let pool = Pool::new((classes, permutation), pages, of, &self.kernel, (number as u64, marks));
                    self.memory.pools.push(Some(pool));
                    self.memory.regions[region].pools.push(number);
                    mapping.into_iter().for_each(|mapping| self.memory.mappings[mapping].pools.push(number));
                    shared.push((plan.number, number));
                    number
                })),
                Pattern::Draws(..) | Pattern::Walk(_) => None,
            };
            let (faults, faulted, time, user) = (0, false, 0, 0);
            let (ahead, reader, busy) = (Ahead::default(), Reader::default(), 0.0);
            let renewed = plan.stream.count;
            let (mut plan, log, logged) = (plan.clone(), None, 0);
            let (by_node, expected) = (Vec::new(), 0.0);
            let own = match plan.stream.pattern() {
                Pattern::Draws(..) => worker.access,
                Pattern::Walk(_) => worker.access_in_order,
            };
            let own = if plan.stream.writes().get() < 1.0 { own.0 + worker.chance.0 } else { own.0 };
            let thinks = if plan.think > 0 { plan.think + worker.think_excess.0 } else { 0 };
            plan.think = thinks.max(own);
            if plan.sleep > 0 {
                plan.think += nanosleep;
                plan.sleep += TIMER_SLACK;
            }
            let (begun, due, latencies) = (None, None, Latencies::default());
            list.push(Accessing {
                plan,
                region,
                mapper,
                threaded: process.threads.len() > 1,
                mapping,
                ahead,
                busy,
                by_node,
                expected,
                pool,
                renewed,
                faults,
                faulted,
                time,
                user,
                begun,
                due,
                latencies,
                reader,
                log,
                logged,
            });
        }
        let process = &self.processes[self.threads[thread].process];
        let replays = process.phases[phase].what == What::Replay;
        let trace = self.options.trace.as_ref().filter(|_| replays);
        let replay = trace.map(|trace| trace.of_thread(thread, self.options.state.at));
        let mut accessor =
            Accessor { list, turn: 0, explicit, replay, pace: 0.0, rest: Rest::default(), ran: 0, own: 0 };
        accessor.open_logs(&mut self.memory);
        accessor
    }

    /// A phase of a process ends, and the next begins when the sample of its end has been taken.
    pub(super) fn end_phase(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        self.close_phase(process, at)?;
        self.report(process, at)
    }

    /// Takes all threads of a process from what they do.
    pub(super) fn stop_threads(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        for thread in self.processes[process].threads.clone() {
            // Where a thread has slept, time may have stood still since.
            self.kernel.wait(self.threads[thread].caller.cpu, at * PS_PER_NS);
            self.stop_running(thread, TaskState::default())?;
            self.numa_forget(thread);
            let this = &mut self.threads[thread];
            this.sleeps += 1;
            (this.throttled, this.overrun) = (None, None);
            let (slowpath, high, node_reclaim) = (this.slowpath.take(), this.high.take(), this.node_reclaim.take());
            let direct = slowpath.and_then(|slowpath| slowpath.direct);
            let asleep = [
                direct.and_then(|direct| direct.throttle()),
                high.and_then(|high| high.throttle()),
                node_reclaim.as_ref().and_then(NodeReclaim::throttle),
            ];
            let writes = match &this.activity {
                Activity::Action(_, Some(working)) => working.write.as_deref().and_then(Write::throttle),
                _ => None,
            };
            asleep.into_iter().flatten().chain(writes).for_each(|throttle| self.kernel.reclaim.leave(throttle));
            if let Some(of) = node_reclaim {
                self.kernel.reclaim.nodes[of.node].reclaim_locked = false;
            }
            let pid = this.caller.task.pid;
            self.kernel.release_isolated(pid);
            self.kernel.writeback.granted.retain(|&to| to != pid);
            let regions = &self.processes[process].regions;
            for &region in regions {
                let of = &mut self.memory.regions[region];
                of.lock.leave(pid);
                self.kernel.writeback.granted.extend(of.adding.leave(pid));
            }
            match std::mem::take(&mut this.activity) {
                Activity::Action(number, Some(working)) => self.end_action(thread, number, working),
                Activity::Accessing(accessor) => this.touched = Some(accessor),
                Activity::Action(_, None)
                | Activity::Nothing
                | Activity::Kswapd(_)
                | Activity::Kcompactd(_)
                | Activity::Flusher(_)
                | Activity::BioEndIo(_)
                | Activity::Reporting(_)
                | Activity::Exiting(_) => {}
            }
        }
        Ok(())
    }

    /// Takes all threads of a process from what they do and notes what the phase has achieved.
    pub(crate) fn close_phase(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        self.stop_threads(process, at)?;
        let config = &self.scenario.processes[process];
        let placement = self.placement(process);
        let mut result = self.processes[process].result(config, &self.threads, placement, at);
        result.balancing = self.numa_time(process);
        result.active_nodes = self.numa_active_nodes(process);
        self.settle_accesses(process);
        for thread in self.processes[process].threads.clone() {
            let Some(accessor) = self.threads[thread].touched.take() else { continue };
            self.threads[thread].user += accessor.user();
            accessor.list.iter().filter_map(|access| access.pool).for_each(|pool| self.memory.drop_pool(pool));
            accessor.replay.iter().for_each(|replay| self.replayed.add(replay));
        }
        let this = &mut self.processes[process];
        this.gathered.clear();
        this.phase = None;
        self.results.push((process, result));
        Ok(())
    }

    /// The accesses of a phase are over: which pages they have reached is settled, once reclaim asks for that.
    fn settle_accesses(&mut self, process: usize) {
        if !self.memory.looked {
            return;
        }
        let of = &self.processes[process];
        let accessors = self.threads[of.threads.clone()].iter_mut().filter_map(|thread| thread.touched.as_mut());
        let touches: Vec<(usize, u64)> = accessors.flat_map(Accessor::take_touches).collect();
        self.memory.settle(&touches);
        for (&region, &mapper) in of.regions.iter().zip(&of.mappers) {
            self.memory.settle_region(&self.kernel, region, mapper);
        }
    }

    /// A CPU goes offline; its threads move to others.
    pub(super) fn take_offline(&mut self, cpu: u32) -> Result<(), RunError> {
        let here = |thread: &usize| self.threads[*thread].caller.cpu == cpu;
        // Threads that have not begun have no CPU yet, those that have ended none any more.
        let live = |thread: &usize| {
            let of = &self.threads[*thread];
            self.processes[of.process].lives() || matches!(of.activity, Activity::Exiting(_))
        };
        let moving: Vec<usize> = (0..self.threads.len()).filter(live).filter(here).collect();
        let at = self.kernel.clock(cpu);
        let running: Vec<bool> = moving.iter().map(|&thread| self.queues.holds(cpu, thread)).collect();
        for &thread in &moving {
            self.queues.detach(cpu, thread);
            self.queues.leave(cpu);
        }
        let of_kernel: Vec<usize> = self.kernel_threads().filter(here).collect();
        for thread in of_kernel {
            let other = (0..self.queues.cpus() as u32).find(|&to| to != cpu && self.kernel.stat.is_online(to));
            self.move_thread(thread, other.unwrap_or(cpu))?;
        }
        if let Some(recorder) = self.recorder().filter(|&task| self.queues.holds(cpu, task)) {
            let other = (0..self.queues.cpus() as u32).find(|&to| to != cpu && self.kernel.stat.is_online(to));
            self.move_thread(recorder, other.unwrap_or(cpu))?;
        }
        self.kernel.set_offline(cpu)?;
        for (thread, runs) in moving.into_iter().zip(running) {
            let to = self.choose_cpu(thread);
            self.set_cpu(thread, to, at / PS_PER_NS);
            if runs {
                self.kernel.wait(to, at);
                if self.queues.attach(to, thread) {
                    self.kernel.leave_idle(to)?;
                }
                self.make_ready(to);
            }
        }
        Ok(())
    }
}
