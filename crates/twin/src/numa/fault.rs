//! The hinting fault: `do_numa_page`, `do_huge_pmd_numa_page`, `numa_migrate_prep`, `mpol_misplaced`; 3.13 to 6.12.
//!
//! A huge page is one fault of 512 pages. Not modelled: entries that changed meanwhile, base pages that are part of a
//! compound page. A page that several processes map is marked by each of them, faults in
//! each, and loses all marks when it moves. Checked by `tests/numa_balancing.rs`.

use super::decisions::Handled;
use super::filter::{FaultContext, cpu_of, cpupid};
use super::statistics::Fault;
use super::{Numa, NumaCtx, filter};
use crate::mm::prot_numa::Unit;
use crate::mm::region::Entry;
use mmtwin_event::rules::Rule;

impl Numa {
    /// Handles a fault of a task on a marked unit of a mapping; its CPU spends the time. True if the task should now be
    /// moved to its preferred node.
    pub(crate) fn do_numa_page(&mut self, ctx: &mut NumaCtx<'_>, task: usize, mapping: usize, unit: Unit) -> bool {
        let region = ctx.memory.mappings[mapping].region;
        ctx.memory.mappings[mapping].clear(unit);
        let begun = ctx.kernel.clock(self.tasks[task].cpu);
        let of = &self.tasks[task];
        let (cpu, pid, mm) = (of.cpu, of.pid, of.mm);
        let at = ctx.kernel.now(cpu);
        ctx.kernel.stat.events.faults += 1;
        ctx.kernel.spend(cpu, self.costs.hint_fault);
        let Entry::Present(page) = ctx.memory.regions[region].entry(unit.page.into()) else { return false };
        let (first, page) = ctx.memory.regions[region].block(ctx.kernel, unit.page.into(), page);
        let pages = 1 << ctx.kernel.alloc.frames.order(page);
        if !unit.huge && pages > 1 {
            // All entries of a large folio are restored (`numa_rebuild_large_mapping`).
            for page in first..first + pages {
                ctx.memory.mappings[mapping].clear(Unit { page: page as u32, huge: false });
            }
        }
        let (here, src) = (ctx.kernel.machine.node_of(cpu), ctx.kernel.machine.node_of_page(page.into()).unwrap_or(0));
        let is_local = src == here;
        ctx.kernel.stat.events.numa.hint_faults += 1;
        ctx.kernel.stat.events.numa.hint_faults_local += u64::from(is_local);
        // An unset page counts as that for the statistics, independent of the value written now.
        let last = ctx.kernel.alloc.frames.owner(page);
        let last_node = ctx.kernel.machine.cpus.get(cpu_of(last) as usize).map(|cpu| cpu.node as usize);
        let question = FaultContext { last, last_node, src, dst: here };
        let able = self.rules.config.memoryless_target || !ctx.kernel.machine.nodes[here].memory.is_empty();
        let (mut misplaced, mut rule) = (false, if able { Rule::OtherPolicy } else { Rule::NoMemory });
        if is_local {
            rule = Rule::Local;
        }
        if able && filter::exchanges(&self.rules, ctx.memory.mappings[mapping].balance, is_local, here) {
            let place = if self.rules.config.cpupid_node { here as u32 } else { cpu };
            ctx.kernel.alloc.frames.set_owner(page, cpupid(place, pid, self.rules.cpu_bits));
            let group = self.groups.of(&self.tasks[task]);
            let (follows, by) = filter::should_migrate(&self.rules, &mut self.tasks[task], group, question);
            if !is_local {
                (misplaced, rule) = (follows, by);
            }
        }
        let before = ctx.kernel.clock(cpu);
        let migrated = misplaced && self.migrate_misplaced_page(ctx, task, region, unit, src, here);
        self.tasks[task].spent.migrate += ctx.kernel.clock(cpu) - before;
        let handled = Handled { at, mapping, unit, pfn: page, fault: question, rule, wanted: misplaced, migrated };
        self.write_fault(ctx, task, handled);
        if migrated && !unit.huge && !self.rules.config.saved_write && ctx.memory.regions[region].anon {
            self.wp_page_reuse(ctx, task, mapping, unit);
        }
        if let Some(Some(state)) = self.vma_of(mm, mapping) {
            state.fault(pid);
        }
        let of = &ctx.memory.regions[region];
        // Only anonymous memory is huge.
        let shares = !of.anon && of.mapcount(unit.page.into()) > 1;
        // A clean page of a file is mapped for reading, so that its first write is seen.
        let no_group = of.file;
        let fault = Fault {
            last,
            mem_node: if migrated { here } else { src },
            pages,
            migrated,
            failed: misplaced && !migrated,
            was_local: is_local,
            shared: shares,
            no_group,
        };
        self.tasks[task].spent.fault += ctx.kernel.clock(cpu) - begun;
        self.task_numa_fault(ctx, task, &fault)
    }

    /// An anonymous page that has moved is mapped read-only (6.3 on, without `pte_savedwrite`). The next write faults,
    /// and as no other task can map the page, it is reused as a new one: its cpupid is reset (`wp_page_reuse`). The
    /// write is assumed to follow at once, or not before the task's next scan.
    fn wp_page_reuse(&mut self, ctx: &mut NumaCtx<'_>, task: usize, mapping: usize, unit: Unit) {
        let of = &ctx.memory.mappings[mapping];
        let until = self.tasks[task].numa_scan_period as f64 / 1e3;
        let unwritten = libm::exp(-of.write * of.pace * until);
        // Migrated pages count the draws.
        let draw = ctx.kernel.stat.events.numa.pages_migrated;
        if ctx.memory.hint_random.fraction(u64::MAX, draw) < unwritten {
            return;
        }
        ctx.kernel.stat.events.faults += 1;
        ctx.kernel.spend(self.tasks[task].cpu, self.costs.hint_fault);
        if let Entry::Present(page) = ctx.memory.regions[of.region].entry(unit.page.into()) {
            ctx.kernel.alloc.frames.set_owner(page, filter::UNSET);
        }
    }
}
