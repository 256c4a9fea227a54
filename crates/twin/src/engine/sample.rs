//! Counters of the run, read from the kernel's files like a recorder does.
//!
//! Reading has the effects it has in the modelled kernel, such as folding. It takes no time if the recorder has a CPU
//! of its own, and time of the shared budget if CPUs share one. Rows of counters that no mechanism keeps are omitted,
//! because a 0 would be wrong.

use super::RunError;
use super::cgroup_files::{cgroups, system};
use super::main_loop::Engine;
use super::process::Process;
use crate::lab_guest::recorder::Work;
use crate::mm::kernel::Kernel;
use crate::page_alloc::PageAllocator;
use crate::time::{Ns, PS_PER_NS};
use crate::vmstat::VmStat;
use mmtwin_event::counters::Row;
use mmtwin_event::results::Placement;
use mmtwin_event::words::glob;
use mmtwin_event::{CounterRow, Sink, counters};
use std::ops::Range;

/// Processes from which on the end of a phase shows the regions of its own process only.
const MANY: usize = 64;

/// Takes samples.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    patterns: Vec<String>,
    /// Time of the last sample.
    last: Ns,
}

impl Sampler {
    /// Counters whose names match one of the patterns.
    pub(super) fn new(patterns: &[String]) -> Sampler {
        Sampler { patterns: patterns.to_vec(), last: 0 }
    }

    /// Reads all files and gives their rows to a sink; `placed` are regions and their pages by node, `tasks` thread ids
    /// and the NUMA part of their `/proc/PID/sched`, `psi` and `cgroups` rows of [`super::cgroup_files`].
    pub(super) fn sample(
        &mut self,
        kernel: &mut Kernel,
        placed: &[(String, Vec<u64>)],
        tasks: &[(i32, String)],
        (psi, cgroups): (Option<Row>, Vec<Row>),
        at: Ns,
        sink: &mut dyn Sink,
    ) {
        // The end of a phase is known when its last thread has done its last step, which may lie ahead.
        self.last = self.last.max(at);
        let at = self.last;
        kernel.read_statistics();
        let Kernel { stat, alloc, machine, .. } = kernel;
        let mut problems = Vec::new();
        let mut keyed = |key: String, text: String| {
            let mut row = Row::new(key);
            counters::keyed(&text, "", &mut row, &mut problems);
            row
        };
        let mut sources: Vec<(&str, Vec<Row>)> = Vec::new();
        let text = stat.vmstat_text(alloc).0;
        sources.push(("vmstat", vec![keyed(String::new(), text)]));
        let (mut vmstat, mut numastat) = (Vec::new(), Vec::new());
        for node in 0..machine.nodes.len() {
            vmstat.push(keyed(node.to_string(), stat.node_vmstat_text(node, alloc).0));
            numastat.push(keyed(node.to_string(), stat.numastat_text(node, alloc).0));
        }
        let zoneinfo = stat.zoneinfo_text(alloc).0;
        sources.push(("zoneinfo", counters::zoneinfo(&zoneinfo, &mut problems)));
        sources.push(("node_vmstat", vmstat));
        sources.push(("numastat", numastat));
        sources.push(("psi", psi.into_iter().collect()));
        let nodes: Vec<String> = (0..machine.nodes.len()).map(|node| format!("N{node}")).collect();
        let placed = placed.iter().map(|(key, pages)| Row {
            key: key.clone(),
            names: nodes.clone(),
            values: pages.iter().copied().map(Some).collect(),
        });
        sources.push(("numa_maps", placed.collect()));
        let tasks = tasks.iter().map(|(pid, text)| {
            let mut row = Row::new(pid.to_string());
            counters::proc_sched(text, &mut row);
            row
        });
        sources.push(("sched", tasks.collect()));
        sources.push(("cgroup", cgroups));
        for (source, rows) in sources {
            for row in rows {
                let (names, values): (Vec<String>, Vec<Option<u64>>) = row
                    .names
                    .into_iter()
                    .zip(row.values)
                    .filter(|(name, _)| self.wanted((stat, alloc), source, name))
                    .unzip();
                if !names.is_empty() {
                    sink.counters(&CounterRow { source, key: &row.key, at, names: &names, values: &values });
                }
            }
        }
    }

    fn wanted(&self, (stat, alloc): (&VmStat, &PageAllocator), source: &str, name: &str) -> bool {
        let placement = source == "numa_maps";
        let of_kernel = !["numa_maps", "sched", "psi", "cgroup"].contains(&source);
        let known = !of_kernel || stat.keeps(alloc, name) || !stat.is_counter(name);
        known && (placement || self.patterns.iter().any(|pattern| glob(pattern, name)))
    }
}

impl Engine<'_> {
    /// Takes the sample that processes have asked for. The recorder's work for it.
    pub(super) fn sample_for(&mut self, asked: &[usize], at: Ns) -> Work {
        // Of many processes one that asks alone has its regions only: with those of all it would be as long as there are
        // processes, as often as one of them ends a phase.
        let many = self.scenario.processes.len() > MANY;
        let of = match *asked {
            [process] if many => process..process + 1,
            _ => 0..self.processes.len(),
        };
        let work = self.sample_work(of.clone());
        self.take_sample(of, at);
        work
    }

    /// The recorder's work for a sample of some processes, whose page tables `numa_maps` walks.
    pub(super) fn sample_work(&self, of: Range<usize>) -> Work {
        let cost = &self.scenario.machine.cost;
        let frames = &self.kernel.alloc.frames;
        let numa_maps = |process: &Process| {
            let regions = process.regions.iter().zip(&process.mappers);
            let tables = |(&region, &mapper): (&usize, &usize)| {
                self.memory.regions[region].table_entries(mapper, |pfn| frames.order(pfn) > 0)
            };
            cost.sample_process.0 + cost.sample_page.0 * regions.map(tables).sum::<u64>()
        };
        let nodes = self.kernel.machine.nodes.len() as u64;
        Work {
            kernel: cost.sample.0 + cost.sample_node.0 * nodes,
            processes: self.processes[of].iter().filter(|process| !process.ended).map(numa_maps).collect(),
        }
    }

    /// Takes a sample, which may take the recorder a time.
    pub(super) fn sample(&mut self, at: Ns) -> Result<(), RunError> {
        let all = 0..self.processes.len();
        let work = self.sample_work(all.clone());
        self.take_sample(all, at);
        // The first one is over when the state is read.
        if at > self.options.state.at {
            let time = work.total();
            if !self.wake_recorder(work, at)? {
                self.kernel.spend_beside(time);
            }
        }
        Ok(())
    }

    /// Where the pages are that the page tables of a process map, by region.
    pub(super) fn placement(&self, process: usize) -> Vec<Placement> {
        let Process { regions, mappers, region_names, .. } = &self.processes[process];
        let pages = |(&region, &mapper): (&usize, &usize)| self.memory.regions[region].resident_by_node(mapper);
        let nodes = regions.iter().zip(mappers).map(pages);
        nodes.zip(region_names).map(|(nodes, name)| Placement { region: name.clone(), nodes }).collect()
    }

    fn take_sample(&mut self, of: Range<usize>, at: Ns) {
        let (first, last) = (&self.processes[of.start], &self.processes[of.end - 1]);
        let threads = first.threads.start..last.threads.end;
        let placed: Vec<(String, Vec<u64>)> = of
            // A process that has ended has no page tables.
            .filter(|&process| !self.processes[process].ended)
            .flat_map(|process| {
                let name = &self.processes[process].name;
                self.placement(process).into_iter().map(move |of| (format!("{name}/{}", of.region), of.nodes))
            })
            .collect();
        let tasks = self.numa_tasks(threads);
        let totals = self.psi.as_mut().map_or(&[][..], |psi| psi.read(at * PS_PER_NS));
        let rows = (totals.first().map(system), cgroups(self.scenario, &self.kernel, totals));
        self.sampler.sample(&mut self.kernel, &placed, &tasks, rows, at, self.sink);
    }
}
