//! The scanner: `task_tick_numa`, `task_numa_work`, `init_numa_balancing`, `change_prot_numa` with
//! `change_pte_range` and `change_huge_pmd`; 3.13 to 6.12.
//!
//! A task's own CPU time makes it due; one task of an address space wins each window of `scan_size_mb`. Its time is
//! charged to the winner. A page of a file is marked where the process maps it, and if
//! it is clean. Not modelled: KSM and copy-on-write pages (there is no fork), read-only mappings, huge pages that a
//! range cuts (regions begin at a multiple of 2 MiB), a missed `mmap_lock`. Areas beside regions are in
//! `lab_guest/image.rs`. Regions are taken in ascending order of address, which is the opposite of the order in which a
//! program on x86-64 maps them. Checked by the counters of whole runs in `tests/numa_balancing.rs` and tests of when a
//! task is due.

use super::vma_filter::{Reason, Scan, Verdict};
use super::{Mm, Numa, Task, vma_filter};
use crate::frame::Flag;
use crate::hw::PAGE_SIZE;
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::prot_numa::{Balance, HUGE_PAGES, Unit};
use crate::mm::region::Entry;
use crate::probe::Task as TaskIds;
use crate::time::{Ns, PS_PER_NS};
use mmtwin_event::names::NUMA_SKIP;
use mmtwin_event::value::{Hex, NumaSkip};
use mmtwin_event::vocabulary::SchedSkipVmaNuma;
use mmtwin_scenario::kernel::{ScanSharing, ScanStart};

/// Nanoseconds of a millisecond.
const MS: Ns = 1_000_000;

/// A range that was marked.
#[derive(Clone, Copy, Debug, Default)]
struct Marked {
    /// Base pages.
    pages: u64,
    /// Entries that were changed: a huge page has one.
    entries: u64,
}

impl Numa {
    /// A task starts on a CPU; `parent` is the thread that makes it, if it shares its memory.
    pub(crate) fn init_numa_balancing(&mut self, task: usize, cpu: u32, parent: Option<usize>, rss: u64, now: Ns) {
        // The program began before its workload in the scenario.
        let rules = &self.rules;
        let delay = u64::from(rules.config.scan_delay_ms);
        let parent = parent.map(|parent| self.tasks[parent].clone());
        let mm = &mut self.mms[self.tasks[task].mm];
        let (start, began) = (mm.start, now.saturating_sub(mm.start / PS_PER_NS));
        if parent.is_some() && mm.users == 1 {
            mm.numa_next_scan = rules.jiffies(began) + rules.ms_to_jiffies(delay);
            mm.numa_scan_seq = 0;
        }
        let users = u64::from(mm.users);
        mm.users += 1;
        let of = &mut self.tasks[task];
        (of.alive, of.cpu, of.started, of.exec_start) = (true, cpu, now, now);
        (of.numa_scan_seq, of.numa_scan_period) = (mm.numa_scan_seq, delay);
        let Some(parent) = parent else { return of.exec = start };
        of.numa_preferred_nid = parent.numa_preferred_nid;
        of.numa_scan_period_max = rules.scan_max(rss, self.groups.of(&parent));
        // The patch compares milliseconds with nanoseconds; the intended form is the third one.
        let (longest, period) = (of.numa_scan_period_max, parent.numa_scan_period * users);
        of.node_stamp = match rules.config.scan_start {
            ScanStart::Zero => 0,
            ScanStart::Staggered => u64::from((longest as u32).min((period * MS) as u32)) + 2 * rules.tick(),
            ScanStart::StaggeredIntended => longest.min(period) * MS + 2 * rules.tick(),
        };
    }

    /// A tick of a running task: true if it is to scan before it returns to its program.
    pub(crate) fn task_tick_numa(&mut self, task: usize, memory: &AccessState, now: Ns) -> bool {
        let (rules, jiffies) = (&self.rules, self.rules.jiffies(now));
        let of = &self.tasks[task];
        let period = of.numa_scan_period * MS;
        let due = match rules.config.scan_stamp_ahead {
            true => of.sum_exec > of.node_stamp + period,
            // A stamp ahead of the time wraps and is due.
            false => of.sum_exec.wrapping_sub(of.node_stamp) > period,
        };
        if !of.alive || !due {
            return false;
        }
        if of.node_stamp == 0 {
            let rss = self.rss(memory, of.mm);
            self.tasks[task].numa_scan_period = rules.scan_start(rss, self.groups.of(of));
        }
        let first = self.tasks.iter().position(|of| of.alive && of.mm == self.tasks[task].mm);
        let of = &mut self.tasks[task];
        of.node_stamp += period;
        match rules.config.scan_sharing {
            ScanSharing::PerMm => jiffies >= self.mms[of.mm].numa_next_scan,
            ScanSharing::Independent => true,
            ScanSharing::SharedScanner => first == Some(task) && jiffies >= self.mms[of.mm].numa_next_scan,
        }
    }

    /// The work: marks a window, on the task's CPU, which spends the time.
    pub(crate) fn task_numa_work(&mut self, task: usize, memory: &mut AccessState, kernel: &mut Kernel, now: Ns) {
        let number = self.tasks[task].mm;
        let rss = self.rss(memory, number);
        let (rules, jiffies) = (self.rules, self.rules.jiffies(now));
        let (mm, of) = (&mut self.mms[number], &mut self.tasks[task]);
        if mm.numa_next_scan == 0 {
            mm.numa_next_scan = jiffies + rules.ms_to_jiffies(rules.config.scan_delay_ms.into());
        }
        let alone = rules.config.scan_sharing == ScanSharing::Independent;
        if jiffies < mm.numa_next_scan && !(alone && mm.numa_scan_seq > 0) {
            return;
        }
        if of.numa_scan_period == 0 {
            of.numa_scan_period_max = rules.scan_max(rss, self.groups.of(of));
            of.numa_scan_period = rules.scan_start(rss, self.groups.of(of));
        }
        mm.numa_next_scan = jiffies + rules.ms_to_jiffies(of.numa_scan_period);
        // Another thread wins the next window.
        of.node_stamp += 2 * rules.tick();
        let (cpu, begun) = (of.cpu, kernel.clock(of.cpu));
        let passes = mm.numa_scan_seq;
        let mut window = Window {
            numa: self,
            task,
            memory,
            kernel,
            jiffies,
            pages: (i64::from(rules.config.scan_size_mb)) << 8,
            virtpages: (i64::from(rules.config.scan_size_mb)) << 11,
            hit: false,
        };
        window.run();
        // Others that share the budget have turns meanwhile, and it counts as run when it has had its own (`Engine::defer`).
        let spent = (kernel.clock(cpu) - begun) * kernel.sharers() as u64;
        self.mms[number].scan = ((begun + spent) / PS_PER_NS, passes);
        let of = &mut self.tasks[task];
        of.spent.scan += spent;
        if kernel.budget.is_none() {
            of.exec += spent;
        }
        if rules.config.scan_overhead_cap {
            // Its runtime is updated at ticks, and the scan begins after one.
            let ticks = spent / PS_PER_NS / rules.tick();
            of.node_stamp += 32 * ticks * rules.tick();
        }
    }
}

/// One call of the scanner.
struct Window<'a> {
    numa: &'a mut Numa,
    task: usize,
    memory: &'a mut AccessState,
    kernel: &'a mut Kernel,
    jiffies: u64,
    /// Pages still to be marked.
    pages: i64,
    /// Pages still to be scanned.
    virtpages: i64,
    /// Something was marked.
    hit: bool,
}

impl Window<'_> {
    fn mm(&mut self) -> &mut Mm {
        let number = self.numa.tasks[self.task].mm;
        &mut self.numa.mms[number]
    }

    fn of(&self) -> &Task {
        &self.numa.tasks[self.task]
    }

    fn next_pass(&mut self) {
        let mm = self.mm();
        mm.numa_scan_seq = mm.numa_scan_seq.wrapping_add(1);
        mm.numa_scan_offset = 0;
    }

    fn run(&mut self) {
        let (mut forced, count) = (false, self.mm().mappings.len());
        loop {
            let mut start = self.mm().numa_scan_offset;
            let mut at = (0..count).find(|&at| self.end(at) > start).unwrap_or(count);
            if at == count {
                self.next_pass();
                (start, at) = (0, 0);
            }
            let mut skipped_by_pid = false;
            let mut stopped = false;
            while at < count && !stopped {
                match self.judge(at, forced) {
                    Verdict::Skip(reason) => {
                        skipped_by_pid |= reason == Reason::PidInactive;
                        if reason == Reason::SeqCompleted {
                            self.mm().numa_scan_offset = self.end(at);
                        }
                    }
                    Verdict::Scan | Verdict::ScanAnyway => {
                        stopped = self.scan(at, &mut start) || forced;
                    }
                }
                at += usize::from(!stopped);
            }
            if stopped {
                self.mm().numa_scan_offset = start;
                return;
            }
            if forced || !skipped_by_pid {
                return self.next_pass();
            }
            forced = true;
        }
    }

    /// First address behind a mapping of the address space.
    fn end(&mut self, at: usize) -> u64 {
        let mapping = self.mm().mappings[at];
        let of = &self.memory.mappings[mapping];
        of.start + self.memory.regions[of.region].len() * PAGE_SIZE
    }

    fn judge(&mut self, at: usize, forced: bool) -> Verdict {
        let mapping = self.mm().mappings[at];
        let of = &self.memory.mappings[mapping];
        let (start, may_be) = (of.start, of.balance != Balance::Never);
        let (filters, rules, pid, jiffies) =
            (self.numa.rules.config.vma_filter, self.numa.rules, self.of().pid, self.jiffies);
        let mm = self.mm();
        let balanced = may_be && !mm.by_policy;
        let (seq, threads, offset) = (mm.numa_scan_seq, mm.users as i32, mm.numa_scan_offset);
        let scan = Scan { jiffies, pid, seq, threads, begun: offset > start, forced };
        let verdict = match (balanced, filters) {
            (false, _) => Verdict::Skip(Reason::Unsuitable),
            (true, false) => Verdict::Scan,
            (true, true) => vma_filter::judge(&rules, &mut mm.vmas[at], &scan),
        };
        let reason = match verdict {
            Verdict::Skip(reason) => Some(reason),
            Verdict::ScanAnyway => Some(Reason::IgnorePidInactive),
            Verdict::Scan => None,
        };
        if let Some(reason) = reason.filter(|_| filters) {
            let event = SchedSkipVmaNuma {
                numa_scan_offset: Hex(offset),
                vm_start: Hex(start),
                vm_end: Hex(self.end(at)),
                reason: NumaSkip(NUMA_SKIP.index_of(reason.word().as_bytes()).unwrap_or_default() as u32),
            };
            let (cpu, ids) = (self.of().cpu, TaskIds { pid, tgid: self.of().tgid });
            self.kernel.probe.write(self.kernel.now(cpu), cpu, ids, &event, b"");
        }
        verdict
    }

    /// Scans a mapping from `start` on; true if the window is used up, with `start` where it stopped.
    fn scan(&mut self, at: usize, start: &mut u64) -> bool {
        let (mapping, vm_end) = (self.mm().mappings[at], self.end(at));
        let vm_start = self.memory.mappings[mapping].start;
        let limited = self.numa.rules.config.scan_virtual_limit;
        *start = (*start).max(vm_start);
        while *start < vm_end {
            let wanted = *start + (self.pages.max(0) as u64) * PAGE_SIZE;
            let end = wanted.next_multiple_of(HUGE_PAGES * PAGE_SIZE).min(vm_end);
            let first = (*start - vm_start) / PAGE_SIZE;
            let marked = self.mark(mapping, first, (end - vm_start) / PAGE_SIZE);
            self.hit = marked.pages > 0 || !limited && self.hit;
            let looked = ((end - *start) / PAGE_SIZE) as i64;
            if self.hit {
                self.pages -= looked;
            }
            self.virtpages -= looked;
            *start = end;
            if self.pages <= 0 || limited && self.virtpages <= 0 {
                return true;
            }
        }
        // 6.12 does not scan the area again in the same pass.
        let mm = self.mm();
        if let Some(state) = &mut mm.vmas[at] {
            state.prev_scan_seq = mm.numa_scan_seq;
        }
        false
    }

    /// `change_prot_numa`: marks the pages of a range of a mapping that are there and may be marked.
    fn mark(&mut self, mapping: usize, first: u64, end: u64) -> Marked {
        let cpu = self.of().cpu;
        let node = self.kernel.machine.node_of(cpu);
        let users = self.mm().users;
        let marks_referenced = self.numa.rules.config.marks_referenced;
        let (region, mapper) = (self.memory.mappings[mapping].region, self.memory.mappings[mapping].mapper);
        let (mut marked, mut looked) = (Marked::default(), 0);
        let mut units = Vec::new();
        let mut at = first;
        while at < end {
            let block = at / HUGE_PAGES;
            let next = ((block + 1) * HUGE_PAGES).min(end);
            let of = &self.memory.regions[region];
            units.clear();
            if of.huge_at(block, self.kernel).is_some() {
                units.push(Unit { page: (block * HUGE_PAGES) as u32, huge: true });
                looked += 1;
            } else {
                // A process's only thread keeps what is on its node.
                let stays =
                    |pfn: u32| of.anon && users == 1 && self.kernel.machine.node_of_page(pfn.into()) == Some(node);
                // Dirty pages of the page cache cannot be migrated without waiting.
                let dirty = |pfn: u32| {
                    of.file && {
                        let frames = &self.kernel.alloc.frames;
                        frames.has(frames.head(pfn), Flag::Dirty)
                    }
                };
                // Until 6.12 an anonymous page that somebody else has a reference to could be copied on write.
                let referenced = |pfn: u32| {
                    let reclaim = &self.kernel.reclaim;
                    let on_list = self.kernel.alloc.frames.has(pfn, Flag::Lru) && !reclaim.batch_refs.hold(pfn);
                    !marks_referenced && of.anon && (!on_list || self.memory.swap.slot_of(pfn).is_some())
                };
                for page in at..next {
                    let Entry::Present(pfn) = of.entry_of(mapper, page) else { continue };
                    looked += 1;
                    if !stays(pfn) && !dirty(pfn) && !referenced(pfn) {
                        units.push(Unit { page: page as u32, huge: false });
                    }
                }
            }
            for unit in self.memory.mark_all(mapping, &mut units) {
                marked.pages += unit.pages();
                marked.entries += 1;
            }
            at = next;
        }
        let events = &mut self.kernel.stat.events.numa;
        events.pte_updates += marked.pages;
        events.huge_pte_updates += (marked.pages - marked.entries) / (HUGE_PAGES - 1);
        let costs = &self.numa.costs;
        let flush = if marked.entries > 0 { costs.flush(users) } else { 0 };
        let walk = (looked - marked.entries) * costs.walk_pte;
        self.kernel.spend(cpu, marked.entries * costs.scan_pte + walk + flush);
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Costs, Numa, Rules, Topology};
    use super::*;
    use crate::hw::load::Load;
    use crate::hw::{Curve, Memory, Path};
    use crate::mm::costs::FaultCosts;

    fn without_faults(release: &str) -> (Numa, AccessState) {
        let rules = Rules::of(release);
        let topology = Topology::new(vec![vec![10]], vec![vec![0]], false);
        let tasks = (0..3).map(|pid| Task::new(pid, 0, 0, None)).collect();
        let (mappings, vmas) = Default::default();
        let mm = Mm { mappings, vmas, ..Mm::default() };
        let curve = Curve::new(&[]).unwrap();
        let memory = Memory::new(1, vec![Path { idle_ns: 1.0, peak: 1e9 }], curve.clone(), curve).unwrap();
        let memory = AccessState::new(Load::new(memory), FaultCosts::default(), 1);
        (Numa::new(rules, topology, Costs::least(1), tasks, vec![mm], vec!["p".into()]), memory)
    }

    #[test]
    fn threads_start_by_the_rules_of_the_release() {
        let started = |release: &str, start: Option<ScanStart>| {
            let mut numa = without_faults(release).0;
            numa.rules.config.scan_start = start.unwrap_or(numa.rules.config.scan_start);
            numa.init_numa_balancing(0, 0, None, 0, 1_000_000);
            numa.init_numa_balancing(1, 0, Some(0), 0, 1_000_000);
            numa.init_numa_balancing(2, 0, Some(0), 0, 1_000_000);
            assert_eq!((numa.mms[0].users, numa.mms[0].numa_next_scan, numa.tasks[2].numa_scan_period), (3, 250, 1000));
            [1, 2].map(|task| numa.tasks[task].node_stamp)
        };
        assert_eq!(started("4.17", None), [0, 0]);
        // 60,000 milliseconds taken for nanoseconds, and two ticks.
        assert_eq!(started("6.1", None), [8_060_000; 2]);
        assert_eq!(started("6.1", Some(ScanStart::StaggeredIntended)), [1_008_000_000, 2_008_000_000]);
    }

    #[test]
    fn cpu_time_makes_a_task_due() {
        let (mut numa, memory) = without_faults("6.1");
        numa.init_numa_balancing(0, 0, None, 0, 0);
        numa.tasks[0].sum_exec = 1_000_000_000;
        assert!(!numa.task_tick_numa(0, &memory, 2_000_000_000));
        numa.tasks[0].sum_exec += 1;
        assert!(numa.task_tick_numa(0, &memory, 2_000_000_000));
        assert_eq!((numa.tasks[0].node_stamp, numa.tasks[0].numa_scan_period), (1_000_000_000, 1000));
        numa.mms[0].numa_next_scan = 501;
        numa.tasks[0].sum_exec = 3_000_000_000;
        assert!(!numa.task_tick_numa(0, &memory, 2_000_000_000), "somebody else has the window");
        numa.tasks[0].alive = false;
        numa.tasks[0].sum_exec = 9_000_000_000;
        assert!(!numa.task_tick_numa(0, &memory, 9_000_000_000), "it exits");
        // A stamp ahead of the time is due in 3.18.
        let (mut numa, memory) = without_faults("merged-3.15");
        numa.init_numa_balancing(0, 0, None, 0, 0);
        numa.tasks[0].node_stamp = 8_000_000;
        assert!(numa.task_tick_numa(0, &memory, 0));
    }

    #[test]
    fn one_shared_scanner_or_one_each() {
        let due = |sharing: ScanSharing| {
            let (mut numa, memory) = without_faults("6.1");
            numa.rules.config.scan_sharing = sharing;
            (0..2).for_each(|task| numa.init_numa_balancing(task, 0, (task > 0).then_some(0), 0, 0));
            numa.mms[0].numa_next_scan = 1000;
            [0, 1].map(|task| {
                numa.tasks[task].sum_exec = 5_000_000_000;
                [3_000_000_000, 5_000_000_000].map(|now| numa.task_tick_numa(task, &memory, now))
            })
        };
        assert_eq!(due(ScanSharing::PerMm), [[false, true]; 2]);
        assert_eq!(due(ScanSharing::Independent), [[true, true]; 2]);
        assert_eq!(due(ScanSharing::SharedScanner), [[false, true], [false, false]]);
    }
}
