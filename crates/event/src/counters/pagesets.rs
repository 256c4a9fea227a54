//! `/proc/mmtwin_pagesets`, which the lab's own module shows: the per-CPU page lists in full.

use super::{Problem, lines};

/// A CPU's lists of free pages of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pageset {
    /// The node.
    pub node: u32,
    /// Name of the zone.
    pub zone: String,
    /// The CPU.
    pub cpu: u32,
    /// Pages from which on a free gives some back.
    pub high: u64,
    /// Doublings of the next return (before 6.7).
    pub free_factor: u32,
    /// Doublings of the next refill (6.7 and later).
    pub alloc_factor: u32,
    /// Pages freed lately (6.7 and later).
    pub free_count: u64,
    /// The CPU's differential of the zone's free pages.
    pub free_diff: i64,
    /// Order, migratetype by its number in the kernel, and blocks of each list that is not empty.
    pub lists: Vec<(u32, usize, u64)>,
}

/// Reads all lines, as `crates/lab/module/pagesets.c` describes them.
pub fn pagesets(text: &str, problems: &mut Vec<Problem>) -> Vec<Pageset> {
    let mut all = Vec::new();
    for (line, text) in lines(text) {
        match pageset(text) {
            Some(set) => all.push(set),
            None => problems.push(Problem { line, message: "expected the page lists of a CPU" }),
        }
    }
    all
}

fn pageset(line: &str) -> Option<Pageset> {
    let mut set = Pageset::default();
    for word in line.split_ascii_whitespace() {
        let (name, value) = word.split_once('=')?;
        match name {
            "node" => set.node = value.parse().ok()?,
            "zone" => set.zone = value.into(),
            "cpu" => set.cpu = value.parse().ok()?,
            "high" => set.high = value.parse().ok()?,
            "free_factor" => set.free_factor = value.parse().ok()?,
            "alloc_factor" => set.alloc_factor = value.parse().ok()?,
            "free_count" => set.free_count = value.parse().ok()?,
            "free_diff" => set.free_diff = value.parse().ok()?,
            "lists" => set.lists = value.split(',').filter(|v| !v.is_empty()).map(list).collect::<Option<_>>()?,
            _ => {}
        }
    }
    (!set.zone.is_empty()).then_some(set)
}

/// `ORDER/TYPE:BLOCKS`
fn list(text: &str) -> Option<(u32, usize, u64)> {
    let (order, rest) = text.split_once('/')?;
    let (of, blocks) = rest.split_once(':')?;
    Some((order.parse().ok()?, of.parse().ok()?, blocks.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_both_layouts() {
        let text = "node=1 zone=DMA32 cpu=2 count=47 high=218 batch=31 free_factor=3 free_diff=-5 lists=0/1:31,3/0:2\n\
                    node=0 zone=DMA cpu=0 count=0 high=4 batch=1 alloc_factor=2 free_count=9 free_diff=0 lists=\n\
                    nonsense\n";
        let mut problems = Vec::new();
        let sets = pagesets(text, &mut problems);
        let first = Pageset {
            node: 1,
            zone: "DMA32".into(),
            cpu: 2,
            high: 218,
            free_factor: 3,
            free_diff: -5,
            lists: vec![(0, 1, 31), (3, 0, 2)],
            ..Pageset::default()
        };
        let second = Pageset { zone: "DMA".into(), high: 4, alloc_factor: 2, free_count: 9, ..Pageset::default() };
        assert_eq!(sets, [first, second]);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].line, 3);
    }
}
