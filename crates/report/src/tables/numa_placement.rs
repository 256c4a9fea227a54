//! `numa-placement`: on which nodes the pages of each region are at the end, how evenly, and since when.
//!
//! From the counters source `numa_maps`, which recordings of scenarios have.

use super::{column, list, text};
use crate::model::{Cell, Table};
use mmtwin_analysis::Analysis;

/// Source of the counters.
const SOURCE: &str = "numa_maps";
/// A region has converged when this part of its pages is on the node where it ends.
const CONVERGED: f64 = 0.9;
/// A node with more than one page for so many of the fullest node's is in use, as the kernel counts active nodes.
const ACTIVE: u64 = 3;

/// Pages of a region over time.
pub(super) struct Placed {
    /// Process and region.
    pub name: String,
    /// Nanoseconds of the trace clock and pages by node, in time order; not empty.
    samples: Vec<(u64, Vec<u64>)>,
}

/// All regions whose placement is known at the end.
pub(super) fn regions(a: &Analysis) -> Vec<Placed> {
    let placed = a.counters.keys(SOURCE).into_iter().filter_map(|key| {
        let nodes = a.counters.sampled(SOURCE, key)?.names.len();
        let series: Vec<_> = (0..nodes).map(|node| a.counters.series(SOURCE, key, &format!("N{node}"))).collect();
        let rows = series.iter().map(Vec::len).min()?;
        let pages = |row: usize| series.iter().map(|series| series[row].1.unwrap_or(0)).collect();
        let samples: Vec<_> = (0..rows).map(|row| (series[0][row].0, pages(row))).collect();
        let placed = Placed { name: key.into(), samples };
        (placed.pages() > 0).then_some(placed)
    });
    placed.collect()
}

impl Placed {
    fn last(&self) -> &[u64] {
        self.samples.last().map_or(&[], |(_, nodes)| nodes)
    }

    /// Pages at the end.
    pub fn pages(&self) -> u64 {
        self.last().iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// The node with most pages.
    fn main(&self) -> usize {
        let most = self.last().iter().max();
        self.last().iter().position(|n| Some(n) == most).unwrap_or(0)
    }

    /// Balance of the remaining nodes: mean pages of all nodes but the fullest, as percent of the fullest of them.
    /// `None` if all is on one node.
    pub fn remaining_balance(&self) -> Option<f64> {
        let main = self.main();
        let remote: Vec<u64> =
            self.last().iter().enumerate().filter(|(nid, _)| *nid != main).map(|(_, n)| *n).collect();
        let most = remote.iter().copied().max().filter(|most| *most > 0)?;
        let sum: f64 = remote.iter().map(|n| *n as f64).sum();
        Some(100.0 * sum / remote.len() as f64 / most as f64)
    }

    /// Seconds from the first sample until at least [`CONVERGED`] of the pages are where they end, permanently.
    fn converged(&self) -> Option<f64> {
        let (end, all) = (self.last(), self.pages() as f64);
        let there = |nodes: &[u64]| nodes.iter().zip(end).map(|(n, end)| *n.min(end) as f64).sum::<f64>() / all;
        let after = self.samples.iter().rposition(|(_, nodes)| there(nodes) < CONVERGED).map_or(0, |at| at + 1);
        let at = self.samples.get(after)?.0;
        Some(at.saturating_sub(self.samples.first()?.0) as f64 / 1e9)
    }
}

/// The table; without rows where nothing was sampled.
pub fn table(a: &Analysis) -> Table {
    let rows = regions(a).into_iter().map(|placed| {
        let (main, last) = (placed.main(), placed.last());
        let most = last.get(main).copied().unwrap_or(0);
        let used = last.iter().filter(|n| n.saturating_mul(ACTIVE) > most).count();
        vec![
            text(placed.name.clone()),
            Cell::int(placed.pages()),
            Cell::int(main as u64),
            Cell::Float(most as f64 * 100.0 / placed.pages() as f64),
            Cell::int(used as u64),
            Cell::float(placed.remaining_balance()),
            Cell::float(placed.converged()),
        ]
    });
    let columns = vec![
        column("region", "region", ""),
        column("pages", "pages", ""),
        column("main_node", "main node", ""),
        column("main_percent", "on main node", "%"),
        column("nodes", "nodes in use", ""),
        column("remaining_balance", "balance of remaining nodes", "%"),
        column("converged", "converged after", "s"),
    ];
    let note = "In use: more than a third of the pages of the fullest node. Balance: mean of the remaining nodes as percent of the \
                fullest of them. Converged: from then on 90 % of the pages are on their final node.";
    list("numa-placement", "Page placement at the end of the run", note, columns, rows.collect())
}
