//! `/proc/zoneinfo` as text: `zoneinfo_show_print`.
//!
//! Rows of counters that no mechanism keeps are not there, nor `node_unreclaimable` and `node_inactive_ratio`, nor zone
//! rows of what is kept by node (before 4.8). Checked against the files of kernels 6.1 and 6.18
//! (`tests/zoneinfo.rs`).

use super::vmstat::numa_row;
use crate::frame::ZONES;
use crate::page_alloc::{PageAllocator, Zone};
use crate::vmstat::{Dialect, File, ReadCost, VmStat, dialect};
use std::fmt::Write;

impl VmStat {
    /// `/proc/zoneinfo`.
    pub fn zoneinfo_text(&mut self, alloc: &PageAllocator) -> (String, ReadCost) {
        let (mut text, mut cost) = (String::new(), ReadCost::default());
        self.numa.before_read(File::Zoneinfo, &self.populated, &self.online_list, &mut cost);
        let (dialect, mut last_node) = (self.rules.dialect, None);
        for (number, zone) in
            alloc.zones.iter().enumerate().filter(|(number, _)| number % ZONES < dialect::zones(dialect))
        {
            let _ = writeln!(text, "Node {}, zone {:>8}", zone.node, zone.kind.name());
            if zone.populated() && last_node != Some(zone.node) {
                last_node = Some(zone.node);
                text.push_str("  per-node stats\n");
                let shown = self.kept(alloc, dialect::node_rows(dialect), &mut cost).into_iter();
                shown.for_each(|name| row(&mut text, name, self.node_row(Some(zone.node), name)));
            }
            self.print_sizes(&mut text, number, zone);
            if !zone.populated() {
                continue;
            }
            let numa = self.numa.zone(number, &self.online_list, &mut cost);
            let rows = dialect::zone_rows(dialect).into_iter().filter(|name| !self.is_known_by_node(name));
            for name in self.kept(alloc, rows, &mut cost) {
                row(&mut text, name, numa_row(name, &numa).unwrap_or_else(|| self.zone_row(alloc, number, name)));
            }
            self.print_pagesets(&mut text, number, alloc);
            // The page lists of CPUs are theirs; the design of the NUMA counters changes nothing about that.
            cost.cpu_lines += self.online_list.len() as u64;
            let _ = writeln!(text, "  start_pfn:           {}", zone.start_pfn);
            cost.absent_rows += 1 + u64::from(matches!(dialect, Dialect::V4_13 | Dialect::V4_14));
        }
        (text, cost)
    }

    fn print_sizes(&self, text: &mut String, number: usize, zone: &Zone) {
        let (dialect, marks) = (self.rules.dialect, &zone.marks);
        let new = matches!(dialect, Dialect::V6_1 | Dialect::V6_12 | Dialect::V6_18 | Dialect::V7_3);
        let _ = writeln!(text, "  pages free     {}", self.plain(number, crate::vmstat::ZoneItem::FreePages));
        let mut line = |name: &str, value: u64, there: bool| {
            if there {
                let _ = writeln!(text, "        {name:<9}{value}");
            }
        };
        line("boost", zone.boost, new);
        line("min", marks.min + zone.boost, true);
        line("low", marks.low + zone.boost, true);
        line("high", marks.high + zone.boost, true);
        line("promo", marks.promo + zone.boost, matches!(dialect, Dialect::V6_12 | Dialect::V6_18 | Dialect::V7_3));
        line("spanned", zone.spanned, true);
        line("present", zone.present, true);
        line("managed", zone.managed, true);
        line("cma", 0, new);
        let reserve: Vec<String> = zone.lowmem_reserve[..dialect::zones(dialect)].iter().map(u64::to_string).collect();
        let _ = writeln!(text, "        protection: ({})", reserve.join(", "));
    }

    fn print_pagesets(&self, text: &mut String, zone: usize, alloc: &PageAllocator) {
        text.push_str("  pagesets\n");
        let wide = matches!(self.rules.dialect, Dialect::V6_18 | Dialect::V7_3);
        for &cpu in &self.online_list {
            let Some(set) = alloc.pageset(zone, cpu) else { continue };
            let _ = writeln!(text, "    cpu: {cpu}");
            let names = ["count:", "high:", "batch:", "high_min:", "high_max:"];
            let values = [set.count, set.high, set.batch, set.high_min, set.high_max];
            for (name, value) in names.into_iter().zip(values).take(if wide { 5 } else { 3 }) {
                let width = if wide { 10 } else { 7 };
                let _ = writeln!(text, "              {name:<width$}{value}");
            }
            let _ = writeln!(text, "  vm stats threshold: {}", self.threshold(zone));
        }
    }
}

fn row(text: &mut String, name: &str, value: u64) {
    let _ = writeln!(text, "      {name:<12} {value}");
}
