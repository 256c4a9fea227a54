//! Counters of pages by content: the rows of nodes (`enum node_stat_item`) and the LRU rows of zones, 4.8 to 6.18.
//!
//! Kernels count them in differentials per CPU as they count free pages, and readers see folded values; here every
//! reader sees the sum. Checked with the recordings of docs/fidelity.md.

use crate::frame::ZONES;

/// Declares the counters of a node with their rows.
macro_rules! node_items {
    ($($item:ident $name:literal,)+) => {
        /// A counter of a node.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // the rows are the kernel's
        #[repr(usize)]
        pub enum NodeItem { $($item,)+ }

        const NAMES: &[&str] = &[$($name,)+];
    };
}

node_items! {
    InactiveAnon "nr_inactive_anon",
    ActiveAnon "nr_active_anon",
    InactiveFile "nr_inactive_file",
    ActiveFile "nr_active_file",
    Unevictable "nr_unevictable",
    IsolatedAnon "nr_isolated_anon",
    IsolatedFile "nr_isolated_file",
    RefaultAnon "workingset_refault_anon",
    RefaultFile "workingset_refault_file",
    ActivateAnon "workingset_activate_anon",
    ActivateFile "workingset_activate_file",
    RestoreAnon "workingset_restore_anon",
    RestoreFile "workingset_restore_file",
    AnonPages "nr_anon_pages",
    Mapped "nr_mapped",
    FilePages "nr_file_pages",
    Dirty "nr_dirty",
    Writeback "nr_writeback",
    Shmem "nr_shmem",
    VmscanWrite "nr_vmscan_write",
    VmscanImmediate "nr_vmscan_immediate_reclaim",
    Dirtied "nr_dirtied",
    Written "nr_written",
    ThrottledWritten "nr_throttled_written",
    SwapCached "nr_swapcached",
    StealKswapd "pgsteal_kswapd",
    StealDirect "pgsteal_direct",
    StealAnon "pgsteal_anon",
    StealFile "pgsteal_file",
    ScanKswapd "pgscan_kswapd",
    ScanDirect "pgscan_direct",
    ScanAnon "pgscan_anon",
    ScanFile "pgscan_file",
    RotateAnon "pgrotate_anon",
    RotateFile "pgrotate_file",
    Refill "pgrefill",
}

/// LRU lists; [`NodeItem`] begins with them in the same order.
pub const LISTS: usize = 5;
/// Rows of a zone's pages on the LRU lists, in the same order.
const ZONE_NAMES: [&str; LISTS] = [
    "nr_zone_inactive_anon",
    "nr_zone_active_anon",
    "nr_zone_inactive_file",
    "nr_zone_active_file",
    "nr_zone_unevictable",
];
/// Dirty pages of a zone and those under writeback.
const WRITE_PENDING: &str = "nr_zone_write_pending";

/// The counters.
#[derive(Clone, Debug)]
pub struct Pages {
    nodes: Vec<[i64; NAMES.len()]>,
    zones: Vec<[i64; LISTS + 1]>,
}

impl Pages {
    /// All 0, for this many zones.
    pub(super) fn new(zones: usize) -> Pages {
        Pages { nodes: vec![[0; NAMES.len()]; zones / ZONES], zones: vec![[0; LISTS + 1]; zones] }
    }

    /// Adds to a counter of a node.
    #[inline]
    pub fn add(&mut self, node: usize, item: NodeItem, n: i64) {
        self.nodes[node][item as usize] += n;
    }

    /// A counter of a node.
    #[inline]
    pub fn of(&self, node: usize, item: NodeItem) -> u64 {
        self.nodes[node][item as usize].max(0) as u64
    }

    /// A counter of all nodes together.
    pub fn sum(&self, item: NodeItem) -> u64 {
        (0..self.nodes.len()).map(|node| self.of(node, item)).sum()
    }

    /// Pages are added to an LRU list or removed.
    #[inline]
    pub(crate) fn add_lru(&mut self, zone: usize, list: usize, n: i64) {
        self.zones[zone][list] += n;
        self.nodes[zone / ZONES][list] += n;
    }

    /// Pages of a zone on an LRU list.
    #[inline]
    pub(crate) fn lru(&self, zone: usize, list: usize) -> u64 {
        self.zones[zone][list].max(0) as u64
    }

    /// Pages of a node on an LRU list.
    pub(crate) fn node_lru(&self, node: usize, list: usize) -> u64 {
        self.nodes[node][list].max(0) as u64
    }

    /// Pages of a zone that wait to be written are more or fewer.
    pub(crate) fn add_write_pending(&mut self, zone: usize, n: i64) {
        self.zones[zone][LISTS] += n;
    }

    /// Pages of a zone that are dirty or being written.
    pub(crate) fn write_pending(&self, zone: usize) -> u64 {
        self.zones[zone][LISTS].max(0) as u64
    }

    /// The counter of a row of a zone; `None` if it is another's.
    pub(crate) fn zone_row(&self, zone: usize, name: &str) -> Option<u64> {
        // Before 4.8 the rows of a zone's lists had the names that those of nodes have had since.
        let known = ZONE_NAMES.iter().chain([&WRITE_PENDING]).position(|row| *row == name);
        let list = known.or_else(|| NAMES[..LISTS].iter().position(|row| *row == name))?;
        Some(self.zones[zone][list].max(0) as u64)
    }

    /// The counter of a row of a node, or of all nodes; `None` if it is another's.
    pub(crate) fn node_row(&self, node: Option<usize>, name: &str) -> Option<u64> {
        let of = |name: &str| {
            let item = NAMES.iter().position(|row| *row == name)?;
            let of = |node: &[i64; NAMES.len()]| node[item].max(0) as u64;
            Some(node.map_or_else(|| self.nodes.iter().map(of).sum(), |node| of(&self.nodes[node])))
        };
        match name {
            // One row for both before 5.9.
            "workingset_refault" | "workingset_activate" | "workingset_restore" => {
                of(&format!("{name}_anon")).zip(of(&format!("{name}_file"))).map(|(anon, file)| anon + file)
            }
            _ => of(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_items() {
        let mut pages = Pages::new(2 * ZONES);
        pages.add_lru(ZONES + 1, 2, 7);
        pages.add(0, NodeItem::RefaultAnon, 3);
        pages.add(1, NodeItem::RefaultFile, 4);
        for name in ["nr_zone_inactive_file", "nr_inactive_file"] {
            assert_eq!(pages.zone_row(ZONES + 1, name), Some(7));
        }
        assert_eq!((pages.of(1, NodeItem::InactiveFile), pages.of(0, NodeItem::InactiveFile)), (7, 0));
        assert_eq!(pages.node_row(None, "workingset_refault"), Some(7));
        assert_eq!(pages.node_row(Some(1), "workingset_refault_file"), Some(4));
        assert_eq!(pages.node_row(None, "nr_free_pages"), None);
        assert_eq!(NAMES[NodeItem::Unevictable as usize], "nr_unevictable");
        assert_eq!(NAMES[NodeItem::SwapCached as usize], "nr_swapcached");
    }
}
