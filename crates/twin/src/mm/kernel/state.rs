//! State of a kernel that has been running, from `/proc/zoneinfo` and the lab's `/proc/mmtwin_pagesets`.
//!
//! Restored are a zone's free pages, those of them in unmovable blocks ([`FreeBlocksByType`]), and, where they are
//! known, the per-CPU lists, from pageblocks of their type beside those free blocks, with the state of their next refill
//! and free, and the differentials of the free-page count. Not modelled: which movable free blocks there are, so memory is
//! less fragmented for compaction than it was, and the pages of the LRU lists.

use super::{Kernel, KernelError};
use crate::frame::{Migratetype, ZoneKind};
use crate::page_alloc::{FreeBlocksByType, PerCpuState};
use crate::vmstat::ZoneItem;

/// A zone as a running kernel had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneState {
    /// Its node.
    pub node: usize,
    /// Which zone.
    pub kind: ZoneKind,
    /// First page frame.
    pub start_pfn: u64,
    /// Page frames from the first to the last.
    pub spanned: u64,
    /// Page frames that are memory.
    pub present: u64,
    /// Pages that the allocator has: releases keep more or less for themselves.
    pub managed: u64,
    /// Free pages as counted.
    pub free: u64,
    /// Free blocks of types other than movable.
    pub free_by_type: Vec<FreeBlocksByType>,
    /// Differentials of that count.
    pub free_diffs: Vec<(u32, i64)>,
    /// The per-CPU lists.
    pub lists: ListState,
}

/// Recorded per-CPU lists of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListState {
    /// All CPUs together: pages, and the sum of the lengths from which on they are freed to the buddy lists.
    Sum {
        /// Pages.
        pages: u64,
        /// Lengths.
        high: u64,
    },
    /// Every list of every CPU.
    PerCpu(Vec<(u32, PerCpuState)>),
}

/// The lists of pages that can be moved, or the others.
fn lists_of(lists: &[(u32, PerCpuState)], movable: bool) -> Vec<(u32, PerCpuState)> {
    let own = |set: &PerCpuState| {
        let lists = set.lists.iter().filter(|(_, of, _)| (*of == Migratetype::Movable) == movable);
        PerCpuState { lists: lists.copied().collect(), ..set.clone() }
    };
    lists.iter().map(|(cpu, set)| (*cpu, own(set))).collect()
}

impl Kernel {
    /// Restores a zone's state. Only free pages are counted. An absent zone is omitted.
    ///
    /// # Errors
    /// If a CPU of the state does not run here.
    pub(crate) fn restore_zone(&mut self, state: &ZoneState) -> Result<(), KernelError> {
        let found = self.alloc.zones.iter().position(|zone| (zone.node, zone.kind) == (state.node, state.kind));
        let (Some(zone), Some(&any)) = (found, self.stat.online().first()) else { return Ok(()) };
        if self.alloc.zones[zone].start_pfn == state.start_pfn {
            self.compaction.zones[zone].end = state.start_pfn + state.spanned;
        }
        let lists = match &state.lists {
            ListState::Sum { pages, high } => self.even(*pages, *high),
            ListState::PerCpu(lists) => lists.clone(),
        };
        let cpus = lists.iter().map(|of| of.0).chain(state.free_diffs.iter().map(|of| of.0));
        cpus.into_iter().try_for_each(|cpu| self.check_cpu(cpu))?;
        let diff: i64 = state.free_diffs.iter().map(|of| of.1).sum();
        // Pages of other types on lists are not among the free blocks of those types.
        for (cpu, lists) in lists_of(&lists, false) {
            self.alloc.fill_per_cpu_apart(zone, cpu, &lists);
        }
        let lists = lists_of(&lists, true);
        let listed: u64 = lists.iter().map(|of| of.1.pages()).sum();
        let free = state.free.saturating_add_signed(diff) + listed;
        for free_by_type in &state.free_by_type {
            let spare = self.alloc.free_pages(zone).saturating_sub(free);
            self.alloc.set_free_by_type(zone, free_by_type, spare);
        }
        self.occupy(zone, free);
        for (cpu, lists) in &lists {
            self.alloc.fill_per_cpu(zone, *cpu, lists);
        }
        let counted = self.stat.snapshot(zone, ZoneItem::FreePages);
        let free = self.alloc.free_pages(zone);
        self.stat.add(zone, any, ZoneItem::FreePages, free as i64 - counted as i64 - diff);
        self.stat.refresh();
        for &(cpu, diff) in &state.free_diffs {
            self.stat.add(zone, cpu, ZoneItem::FreePages, diff);
        }
        Ok(())
    }

    /// Lists of movable pages, equal on all running CPUs, with this many pages together.
    fn even(&self, pages: u64, high: u64) -> Vec<(u32, PerCpuState)> {
        let online = self.stat.online();
        let part = |all: u64, i: u64| all * (i + 1) / online.len() as u64 - all * i / online.len() as u64;
        let of = |(i, &cpu): (u64, &u32)| {
            let lists = vec![(0, Migratetype::Movable, part(pages, i))];
            (cpu, PerCpuState { high: part(high, i), lists, ..PerCpuState::default() })
        };
        (0..).zip(online).map(of).collect()
    }

    /// Allocates pages until a zone has no more free pages than this.
    fn occupy(&mut self, zone: usize, free: u64) {
        let mut most = self.alloc.max_order();
        while let Some(over) = self.alloc.free_pages(zone).checked_sub(free).filter(|over| *over > 0) {
            let order = over.ilog2().min(most);
            match self.alloc.occupy(zone, order) {
                true => {}
                false if order == 0 => return,
                // Free blocks may all be smaller.
                false => most = order - 1,
            }
        }
    }
}
