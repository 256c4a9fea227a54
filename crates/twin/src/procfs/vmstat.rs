//! `/proc/vmstat`, `/proc/buddyinfo`, `nodeN/vmstat` and `nodeN/numastat` as text: `vmstat_start`, `node_read_vmstat`,
//! `node_read_numastat`.
//!
//! Reading changes counters in design D, as it folds them, and always costs the words and lines that it reads
//! ([`ReadCost`]). Rows of counters that no mechanism keeps are absent: a 0 would mean that nothing happened. Checked
//! against the row names of kernels 6.1 and 6.18 (`tests/zoneinfo.rs`).

use crate::frame::ZoneKind;
use crate::page_alloc::PageAllocator;
use crate::vmstat::{File, NUMA_ITEMS, NumaItem, ReadCost, VmStat, ZoneItem, dialect};
use std::fmt::Write;

/// Value of a NUMA row; `None` if the row is another.
pub(super) fn numa_row(name: &str, numa: &[u64; NUMA_ITEMS]) -> Option<u64> {
    NumaItem::ALL.into_iter().find(|item| item.name() == name).map(|item| numa[item as usize])
}

impl VmStat {
    /// Value of a row of one zone that is not a NUMA row.
    pub(super) fn zone_row(&self, alloc: &PageAllocator, zone: usize, name: &str) -> u64 {
        match name {
            "nr_free_pages" => self.plain(zone, ZoneItem::FreePages),
            "nr_free_pages_blocks" => alloc.free_pages_from(zone, alloc.pageblock_order()),
            _ => self.pages.zone_row(zone, name).unwrap_or(0),
        }
    }

    /// True if a row of zones shows what is only kept by node here.
    pub(super) fn is_known_by_node(&self, name: &str) -> bool {
        self.pages.node_row(None, name).is_some() && self.pages.zone_row(0, name).is_none()
    }

    /// Value of a row of a node or of all nodes.
    pub(super) fn node_row(&self, node: Option<usize>, name: &str) -> u64 {
        self.pages.node_row(node, name).unwrap_or(0)
    }

    /// Value of a row behind those of nodes.
    fn other_row(&self, alloc: &PageAllocator, name: &str) -> u64 {
        let limits = || alloc.dirty_limits.map(|limits| limits.now(alloc, self)).unwrap_or_default();
        match name {
            "nr_dirty_threshold" => limits().hard,
            "nr_dirty_background_threshold" => limits().background,
            "zone_reclaim_success" => self.node_reclaims.unwrap_or_default()[1],
            "zone_reclaim_failed" => self.node_reclaims.unwrap_or_default()[0],
            _ => self.event_row(name),
        }
    }

    fn event_row(&self, name: &str) -> u64 {
        match name.strip_prefix("pgalloc_") {
            Some(kind) => ZoneKind::ALL
                .into_iter()
                .find(|at| at.name().eq_ignore_ascii_case(kind))
                .map_or(0, |kind| self.events.allocated[kind as usize]),
            None => match name {
                "pgfree" => self.events.freed,
                "pgfault" => self.events.faults,
                "thp_fault_alloc" => self.events.thp_fault_alloc,
                "thp_fault_fallback" => self.events.thp_fault_fallback,
                _ => self.events.numa.row(name).or_else(|| self.events.reclaim.row(name)).unwrap_or(0),
            },
        }
    }

    /// Of some rows those that are shown. The others cost their reader as much.
    pub(super) fn kept(
        &self,
        alloc: &PageAllocator,
        rows: impl IntoIterator<Item = &'static str>,
        cost: &mut ReadCost,
    ) -> Vec<&'static str> {
        let (kept, absent): (Vec<&str>, Vec<&str>) = rows.into_iter().partition(|name| self.keeps(alloc, name));
        cost.absent_rows += absent.len() as u64;
        kept
    }

    /// True if a mechanism keeps the counter of a row; other rows are not shown.
    pub fn keeps(&self, alloc: &PageAllocator, name: &str) -> bool {
        let events = ["pgfree", "pgfault", "thp_fault_alloc", "thp_fault_fallback"];
        let pages = ["nr_free_pages", "nr_free_pages_blocks"];
        let numa = NumaItem::ALL.into_iter().any(|item| item.name() == name);
        let limits = ["nr_dirty_threshold", "nr_dirty_background_threshold"];
        // Inodes are modelled where zones are reclaimed, whose kernels have no rows of nodes.
        if name.ends_with("inodesteal") {
            return dialect::node_rows(self.rules.dialect).next().is_none();
        }
        if name.starts_with("compact_") && !self.compaction {
            return false;
        }
        numa || name.starts_with("pgalloc_")
            || alloc.dirty_limits.is_some() && limits.contains(&name)
            || self.node_reclaims.is_some() && name.starts_with("zone_reclaim_")
            || events.contains(&name)
            || pages.contains(&name)
            || self.events.numa.row(name).is_some()
            || self.events.reclaim.row(name).is_some()
            || self.pages.node_row(None, name).is_some()
            || self.pages.zone_row(0, name).is_some()
    }

    /// True if a row of a statistics file shows a counter at all, kept or not.
    pub fn is_counter(&self, name: &str) -> bool {
        let dialect = self.rules.dialect;
        dialect::zone_rows(dialect)
            .into_iter()
            .chain(dialect::node_rows(dialect))
            .chain(dialect::other_rows(dialect))
            .any(|row| row == name)
    }

    /// NUMA counters of a node as its files show them.
    fn node_numa(&mut self, node: usize, alloc: &PageAllocator, cost: &mut ReadCost) -> [u64; NUMA_ITEMS] {
        self.numa.before_read(File::Node, &self.populated, &self.online_list, cost);
        let mut sum = [0; NUMA_ITEMS];
        for &zone in self.populated.iter().filter(|&&zone| alloc.zones[zone].node == node) {
            let of_zone = self.numa.zone(zone, &self.online_list, cost);
            sum.iter_mut().zip(of_zone).for_each(|(sum, n)| *sum += n);
        }
        sum
    }

    /// `/proc/buddyinfo`.
    pub fn buddyinfo_text(&self, alloc: &PageAllocator) -> String {
        let mut text = String::new();
        for &zone in &self.populated {
            let _ = write!(text, "Node {}, zone {:>8} ", alloc.zones[zone].node, alloc.zones[zone].kind.name());
            for order in 0..=alloc.max_order() {
                let _ = write!(text, "{:6} ", alloc.free_blocks(zone, order));
            }
            text.push('\n');
        }
        text
    }

    /// `nodeN/numastat`.
    pub fn numastat_text(&mut self, node: usize, alloc: &PageAllocator) -> (String, ReadCost) {
        let (mut text, mut cost) = (String::new(), ReadCost::default());
        let numa = self.node_numa(node, alloc, &mut cost);
        for item in NumaItem::ALL {
            let _ = writeln!(text, "{} {}", item.numastat_name(), numa[item as usize]);
        }
        (text, cost)
    }

    /// `nodeN/vmstat`.
    pub fn node_vmstat_text(&mut self, node: usize, alloc: &PageAllocator) -> (String, ReadCost) {
        let (mut text, mut cost) = (String::new(), ReadCost::default());
        let numa = self.node_numa(node, alloc, &mut cost);
        for name in self.kept(alloc, dialect::zone_rows(self.rules.dialect), &mut cost) {
            let zones = self.populated.iter().filter(|&&zone| alloc.zones[zone].node == node);
            let known = numa_row(name, &numa).or_else(|| self.pages.node_row(Some(node), name));
            let value = known.unwrap_or_else(|| zones.map(|&zone| self.zone_row(alloc, zone, name)).sum());
            let _ = writeln!(text, "{name} {value}");
        }
        for name in self.kept(alloc, dialect::node_rows(self.rules.dialect), &mut cost) {
            let _ = writeln!(text, "{name} {}", self.node_row(Some(node), name));
        }
        (text, cost)
    }

    /// `/proc/vmstat`.
    pub fn vmstat_text(&mut self, alloc: &PageAllocator) -> (String, ReadCost) {
        let (mut text, mut cost) = (String::new(), ReadCost::default());
        self.numa.before_read(File::Vmstat, &self.populated, &self.online_list, &mut cost);
        let numa = self.numa.system(&mut cost);
        for name in self.kept(alloc, dialect::zone_rows(self.rules.dialect), &mut cost) {
            let value = match name {
                "nr_free_pages" => self.zone.system(ZoneItem::FreePages as usize).max(0) as u64,
                _ => numa_row(name, &numa)
                    .or_else(|| self.pages.node_row(None, name))
                    .unwrap_or_else(|| self.populated.iter().map(|&zone| self.zone_row(alloc, zone, name)).sum()),
            };
            let _ = writeln!(text, "{name} {value}");
        }
        for name in self.kept(alloc, dialect::node_rows(self.rules.dialect), &mut cost) {
            let _ = writeln!(text, "{name} {}", self.node_row(None, name));
        }
        for name in self.kept(alloc, dialect::other_rows(self.rules.dialect), &mut cost) {
            let _ = writeln!(text, "{name} {}", self.other_row(alloc, name));
        }
        (text, cost)
    }
}
