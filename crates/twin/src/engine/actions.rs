//! Actions of a thread other than memory accesses, step by step.
//!
//! Page loops, pages that are kept, attempts to allocate blocks ([`crate::engine::high_alloc`]), lookups of names,
//! reads of statistics files, CPU hotplug, sysctls and sleep; the vmalloc stress test, which its threads run together,
//! is in [`crate::engine::vmalloc_test`], memory that is freed in [`crate::engine::madvise`], limits of cgroups in
//! [`crate::engine::cgroup_write`].

use super::RunError;
use super::main_loop::{Engine, Step, Stop};
use super::process::{Activity, Working};
use crate::build;
use crate::frame::{Migratetype, ZoneKind};
use crate::page_alloc::{Caller, Policy, Request};
use crate::time::{PS_PER_NS, Ps};
use crate::vmstat::ReadCost;
use mmtwin_scenario::Machine;
use mmtwin_scenario::units::PageRate;
use mmtwin_scenario::workload::{Action, ActionKind, Discard, Gfp, ReadFile};

/// Picoseconds of a second.
const PS_PER_S: u128 = 1_000_000_000_000;

/// Allocating, over and over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageWork {
    /// The request.
    pub request: Request,
    /// Allocations held before as many are freed; `None`: all are kept.
    pub hold: Option<u64>,
    /// Allocations; `None`: no end.
    pub count: Option<u64>,
    /// Pages per second.
    pub rate: Option<PageRate>,
}

/// The page work of an action and the owner of its policy; `None` for another kind of action.
pub(super) fn page_work(kind: &ActionKind, caller: &Caller, machine: &Machine) -> Option<(PageWork, Caller)> {
    let (order, gfp, node, policy, hold, count, rate) = match kind {
        ActionKind::PageLoop { order, gfp, node, policy, hold, count, rate } => {
            (order, gfp, node, policy, Some(*hold), count, rate)
        }
        ActionKind::PageHog { order, gfp, node, policy, count, rate } => (order, gfp, node, policy, None, count, rate),
        _ => return None,
    };
    let own = match (node, policy) {
        (Some(node), _) => Policy::Preferred(*node as usize),
        // Checked before the run.
        (None, Some(policy)) => build::policy(policy, machine).unwrap_or(caller.policy),
        (None, None) => caller.policy,
    };
    let request = request(*gfp).of_order(*order);
    Some((PageWork { request, hold, count: *count, rate: *rate }, Caller { policy: own, ..*caller }))
}

fn request(gfp: Gfp) -> Request {
    match gfp {
        Gfp::Atomic => Request::ATOMIC,
        Gfp::Kernel => Request::KERNEL,
        Gfp::HighuserMovable => Request::USER,
        Gfp::TransHugeLight => Request {
            migratetype: Migratetype::Movable,
            highest: ZoneKind::Movable,
            may_wait: false,
            kswapd: false,
            gfp: "GFP_TRANSHUGE_LIGHT",
            ..Request::KERNEL
        },
    }
}

/// Kind of an action and the key that distinguishes it from others of its kind.
pub(super) fn named(kind: &ActionKind) -> (String, String) {
    let list = |cpus: &mmtwin_scenario::units::List| cpus.to_string();
    let (name, detail) = match kind {
        ActionKind::PageLoop { order, gfp, hold, .. } => ("page-loop", format!("order {order}, {gfp}, hold {hold}")),
        ActionKind::PageHog { order, gfp, .. } => ("page-hog", format!("order {order}, {gfp}")),
        ActionKind::HighOrderAlloc { order, gfp, gfp_retry_mayfail, .. } => {
            let how = if *gfp_retry_mayfail { ", retried hard" } else { "" };
            ("high-order-alloc", format!("order {order}, {gfp}{how}"))
        }
        ActionKind::VmallocTest { tests, .. } => {
            let mask = tests.iter().map(|test| test.bit()).fold(0, |mask, bit| mask | bit);
            ("vmalloc-test", format!("run_test_mask={mask:#x}"))
        }
        ActionKind::Read { file, .. } => ("read", file.to_string()),
        ActionKind::CpuOffline { cpus } => ("cpu-offline", list(cpus)),
        ActionKind::CpuOnline { cpus } => ("cpu-online", list(cpus)),
        ActionKind::Sysctl { name, value } => ("sysctl", format!("{name} = {value}")),
        ActionKind::ModuleCycle { name, .. } => ("module-cycle", name.clone()),
        ActionKind::Lookup { .. } => ("lookup", String::new()),
        ActionKind::Discard { how, .. } => {
            let name = if *how == Discard::Unmap { "munmap" } else { "madvise" };
            (name, kind.subject().unwrap_or_default())
        }
        ActionKind::CgroupLimit { .. } => ("cgroup-limit", kind.subject().unwrap_or_default()),
        ActionKind::MemoryReclaim { .. } => ("memory-reclaim", kind.subject().unwrap_or_default()),
        ActionKind::Sleep { time } => ("sleep", time.to_string()),
    };
    (name.into(), detail)
}

impl Engine<'_> {
    /// Runs an action of a thread until a time. `denied`: the request that failed in the thread's last step is not
    /// retried. `Step::Ended`: the action is over.
    pub(super) fn act(&mut self, thread: usize, until: Ps, denied: bool) -> Result<Step, Stop> {
        let at = &mut self.threads[thread];
        let Activity::Action(number, working) = std::mem::take(&mut at.activity) else { return Ok(Step::Ended) };
        let process = &self.processes[at.process];
        let phase = process.phase.unwrap_or(0);
        let Some(config) = process.phases[phase].what.number() else { return Ok(Step::Ended) };
        let scenario = self.scenario;
        let action = &scenario.processes[at.process].phases[config].actions[at.places[phase][number]];
        let begun = self.kernel.clock(at.caller.cpu);
        let mut working = working.unwrap_or_else(|| Working { begun, ..Working::default() });
        working.resume(begun);
        let step = match self.act_on(thread, action, &mut working, (until, denied)) {
            Ok(step) => step,
            Err(stop) => {
                // It may still have its memory, and then continues.
                self.threads[thread].activity = Activity::Action(number, Some(working));
                return Err(stop);
            }
        };
        let mut working = match step {
            Step::Ended => {
                self.end_action(thread, number, working);
                None
            }
            Step::Asleep(_) => {
                working.pausing = Some(self.kernel.clock(self.threads[thread].caller.cpu));
                Some(working)
            }
            Step::On | Step::Waiting | Step::Still | Step::Waits => Some(working),
        };
        let kills = working.as_mut().is_some_and(|working| std::mem::take(&mut working.kills));
        self.threads[thread].activity = Activity::Action(number, working);
        if kills {
            // The victim may be the writer's own process.
            return self.kill_for_limit(thread, &action.kind);
        }
        Ok(step)
    }

    /// Notes an action that is over, by itself or because its phase is.
    pub(super) fn end_action(&mut self, thread: usize, number: usize, mut working: Working) {
        let at = &self.threads[thread];
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        for page in working.held.drain(..) {
            // Pages that it holds are those that it has allocated.
            let freed = self.kernel.free_unchecked(cpu, task, page);
            debug_assert!(freed.is_ok());
        }
        let now = self.kernel.clock(cpu);
        working.resume(now);
        working.part.time = now.saturating_sub(working.begun + working.paused);
        let process = &mut self.processes[at.process];
        if let Some(phase) = process.phase {
            process.action_stats[at.places[phase][number]].add(&working.part);
        }
    }

    fn act_on(
        &mut self,
        thread: usize,
        action: &Action,
        working: &mut Working,
        (until, denied): (Ps, bool),
    ) -> Result<Step, Stop> {
        let caller = self.threads[thread].caller;
        if let Some((work, mut work_caller)) = page_work(&action.kind, &caller, &self.scenario.machine) {
            if denied {
                working.part.failures += 1;
                return Ok(Step::Ended);
            }
            let step = self.page_work(thread, &work, &mut work_caller, working, until);
            // Interleaving continues where it was.
            self.threads[thread].caller = Caller { policy: caller.policy, ..work_caller };
            return step;
        }
        if let ActionKind::Lookup { count } = action.kind {
            return self.look_up(thread, count, working, until);
        }
        if let ActionKind::HighOrderAlloc { order, gfp, count, interval, gfp_retry_mayfail } = &action.kind {
            let request = Request { repeat: *gfp_retry_mayfail, ..request(*gfp).of_order(*order) };
            if denied {
                working.tried(self.kernel.clock(caller.cpu), false);
            }
            return self.high_alloc(thread, (&request, *count, interval.0 * PS_PER_NS), working, until);
        }
        match &action.kind {
            ActionKind::Discard { region, how, range, count, interval } => {
                return self.madvise(thread, (region, *how, *range), (*count, *interval), working, until);
            }
            kind @ (ActionKind::CgroupLimit { .. } | ActionKind::MemoryReclaim { .. }) => {
                return self.write_cgroup(thread, kind, working, until);
            }
            _ => {}
        }
        working.part.operations += 1;
        match &action.kind {
            ActionKind::Read { file, node, count, interval } => {
                self.read(caller.cpu, *file, *node, working);
                let done = working.part.operations;
                if count.is_some_and(|count| done >= count) {
                    return Ok(Step::Ended);
                }
                let due = working.begun + done * interval.0 * PS_PER_NS;
                return Ok(if due > self.kernel.clock(caller.cpu) {
                    self.nanosleep(caller.cpu, due)
                } else {
                    Step::On
                });
            }
            ActionKind::CpuOffline { cpus } => {
                for &cpu in cpus.numbers() {
                    self.kernel.wait(cpu, self.kernel.clock(caller.cpu));
                    self.take_offline(cpu)?;
                }
            }
            ActionKind::CpuOnline { cpus } => {
                for &cpu in cpus.numbers() {
                    self.kernel.set_online(cpu).map_err(RunError::from)?;
                }
            }
            ActionKind::Sysctl { name, value } => self.set_sysctl(name, *value),
            ActionKind::Sleep { time } => {
                if working.part.operations == 1 {
                    return Ok(Step::Asleep(self.kernel.clock(caller.cpu) + time.0 * PS_PER_NS));
                }
                working.part.operations = 1;
            }
            ActionKind::VmallocTest { .. } => return self.gather(thread, action, working),
            // Other kinds are handled above, the last is refused before the run.
            ActionKind::PageLoop { .. } | ActionKind::PageHog { .. } | ActionKind::HighOrderAlloc { .. } => {}
            ActionKind::Lookup { .. } | ActionKind::ModuleCycle { .. } => {}
            ActionKind::Discard { .. } | ActionKind::CgroupLimit { .. } | ActionKind::MemoryReclaim { .. } => {}
        }
        Ok(Step::Ended)
    }

    /// Sleeps until a time by a call, whose work takes time as well.
    pub(super) fn nanosleep(&mut self, cpu: u32, until: Ps) -> Step {
        self.kernel.spend(cpu, self.scenario.machine.cost.nanosleep.0);
        Step::Asleep(until.max(self.kernel.clock(cpu)))
    }

    /// Looks names up, each another.
    fn look_up(&mut self, thread: usize, count: Option<u64>, working: &mut Working, until: Ps) -> Result<Step, Stop> {
        let Caller { cpu, task, .. } = self.threads[thread].caller;
        while self.kernel.clock(cpu) < until {
            if count.is_some_and(|count| working.part.operations >= count) {
                return Ok(Step::Ended);
            }
            let found = self.memory.dentries.look_up(&mut self.kernel, (cpu, task));
            found.map_err(|failure| Stop::OutOfMemory(thread, failure))?;
            self.kernel.spend(cpu, self.memory.costs.lookup);
            working.part.operations += 1;
        }
        Ok(Step::On)
    }

    fn page_work(
        &mut self,
        thread: usize,
        work: &PageWork,
        work_caller: &mut Caller,
        working: &mut Working,
        until: Ps,
    ) -> Result<Step, Stop> {
        let cpu = work_caller.cpu;
        while self.kernel.clock(cpu) < until {
            if working.freeing {
                if let Some(page) = working.held.pop() {
                    self.kernel.free_unchecked(cpu, work_caller.task, page).map_err(|e| RunError::Kernel(e.into()))?;
                }
                working.freeing = !working.held.is_empty();
                continue;
            }
            if work.count.is_some_and(|count| working.part.operations >= count) {
                if working.held.is_empty() {
                    return Ok(Step::Ended);
                }
                working.freeing = true;
                continue;
            }
            if let Some(due) = work.rate.map(|rate| due(working, work.request.order, rate))
                && due > self.kernel.clock(cpu)
            {
                return Ok(self.nanosleep(cpu, due));
            }
            match self.kernel.allocate_unchecked(work_caller, &work.request) {
                Ok(got) => {
                    working.part.operations += 1;
                    self.kernel.spend(cpu, self.memory.costs.init_page * ((1 << work.request.order) - 1));
                    match work.hold {
                        Some(hold) => {
                            working.held.push(got.page);
                            working.freeing = working.held.len() as u64 >= hold;
                        }
                        None => self.processes[self.threads[thread].process].kept.push(got.page),
                    }
                }
                // A request that cannot wait fails; one that can has been through the slow path.
                Err(_) if !work.request.may_wait => {
                    working.part.failures += 1;
                    return Ok(Step::Ended);
                }
                Err(failure) => return Err(Stop::OutOfMemory(thread, failure)),
            }
        }
        Ok(Step::On)
    }

    /// Reads a statistics file on a CPU, which spends the time.
    fn read(&mut self, cpu: u32, file: ReadFile, node: Option<u32>, working: &mut Working) {
        let nodes = self.kernel.machine.nodes.len();
        // Without a node every node in turn.
        let node = node.map_or((working.part.operations - 1) as usize % nodes, |node| node as usize);
        let (stat, alloc) = (&mut self.kernel.stat, &self.kernel.alloc);
        let (text, cost) = match file {
            ReadFile::Numastat => stat.numastat_text(node, alloc),
            ReadFile::NodeVmstat => stat.node_vmstat_text(node, alloc),
            ReadFile::Vmstat => stat.vmstat_text(alloc),
            ReadFile::Zoneinfo => stat.zoneinfo_text(alloc),
            ReadFile::Buddyinfo => (stat.buddyinfo_text(alloc), ReadCost::default()),
            // Refused before the run.
            ReadFile::Vmallocinfo => Default::default(),
            ReadFile::StatRefresh => {
                working.part.failures += u64::from(!stat.refresh().is_empty());
                // Every CPU folds at the same time; the writer waits for the last.
                self.kernel.spend(cpu, self.scenario.machine.cost.wakeup_latency.0 * PS_PER_NS);
                Default::default()
            }
        };
        let (costs, of) = (self.kernel.costs(), &self.scenario.machine.cost);
        let rows = text.lines().count() as u64 + cost.absent_rows;
        let words = cost.shared_words + cost.cpu_words + cost.exchanges;
        let lines = costs.picoseconds(cost.cycles(costs));
        self.kernel.spend(cpu, of.stat_file.0 + rows * of.stat_row.0 + lines + words * of.counter_read.0);
        for (figure, value) in [("cache_lines", cost.cpu_lines), ("words", words), ("rows", rows)] {
            *working.part.more.entry(figure).or_default() += value as f64;
        }
    }

    fn set_sysctl(&mut self, name: &str, value: u64) {
        match name {
            "vm.numa_stat" => {
                self.kernel.stat.set_numa_stat(value != 0);
            }
            "vm.stat_interval" => self.kernel.set_stat_interval(value.saturating_mul(1_000_000_000)),
            "vm.min_free_kbytes" => self.kernel.set_watermarks(|rules| rules.min_free_kbytes = Some(value)),
            "vm.watermark_scale_factor" => self.kernel.set_watermarks(|rules| rules.watermark_scale_factor = value),
            "vm.watermark_boost_factor" => self.kernel.set_watermarks(|rules| rules.watermark_boost_factor = value),
            "vm.page-cluster" => self.kernel.reclaim.rules.page_cluster = value as u32,
            "vm.swappiness" => self.kernel.reclaim.rules.swappiness = value,
            "vm.vfs_cache_pressure" => self.kernel.reclaim.rules.vfs_cache_pressure = value,
            "vm.extfrag_threshold" => self.kernel.reclaim.rules.extfrag_threshold = value as i64,
            "vm.laptop_mode" => {
                self.kernel.reclaim.rules.laptop_mode = value != 0;
                self.kernel.writeback.rules.laptop_mode = value != 0;
            }
            // Others are refused before the run.
            _ => self.set_dirty_sysctl(name, value),
        }
    }
}

/// When the next allocation may begin.
fn due(working: &Working, order: u32, rate: PageRate) -> Ps {
    let pages = u128::from(working.part.operations) << order;
    working.begun + (pages * PS_PER_S / u128::from(rate.0.max(1))) as Ps
}
