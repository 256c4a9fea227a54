//! NUMA memory policies: `alloc_pages_current` with `policy_node` and `policy_nodemask`, 4.13 to 6.18.
//!
//! A policy selects the zonelist and the nodes that count. Not modelled: a bind policy does not hold for requests that
//! only a lower zone kind can serve (here it always holds); weights of interleaving (6.9); policies of memory areas,
//! which callers pass like those of a task. Checked by tests of the kernel's counters (`tests/allocator`).

use super::Caller;
use std::fmt;

/// A set of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeMask(pub u64);

impl NodeMask {
    /// All nodes.
    pub const ALL: NodeMask = NodeMask(u64::MAX);

    /// These nodes; numbers from 64 on are ignored, as no machine has them.
    pub fn of(nodes: impl IntoIterator<Item = usize>) -> NodeMask {
        NodeMask(nodes.into_iter().filter(|&node| node < 64).fold(0, |mask, node| mask | 1 << node))
    }

    /// True if a node is in it.
    #[inline]
    pub fn has(self, node: usize) -> bool {
        node < 64 && self.0 >> node & 1 == 1
    }

    /// Node number `index` of the set, round and round; `None` if the set is empty.
    pub fn nth(self, index: u64) -> Option<usize> {
        let skip = index.checked_rem(u64::from(self.0.count_ones()))?;
        (0..64).filter(|&node| self.has(node)).nth(skip as usize)
    }

    /// The next node of the set after a node, from the first again at the end; `None` if the set is empty.
    pub fn after(self, node: u32) -> Option<usize> {
        let later = match node.checked_add(1) {
            Some(next) if next < 64 => self.0 >> next << next,
            _ => 0,
        };
        let from = if later != 0 { later } else { self.0 };
        (from != 0).then(|| from.trailing_zeros() as usize)
    }
}

impl fmt::Display for NodeMask {
    /// As the kernel prints node lists: `0-3,5`; `(null)` for all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == NodeMask::ALL {
            return f.write_str("(null)");
        }
        let (mut node, mut comma) = (0, "");
        while node < 64 {
            let run = (node..64).take_while(|&n| self.has(n)).count();
            match run {
                0 => {}
                1 => write!(f, "{comma}{node}")?,
                _ => write!(f, "{comma}{node}-{}", node + run - 1)?,
            }
            if run > 0 {
                comma = ",";
            }
            node += run.max(1);
        }
        Ok(())
    }
}

/// Memory policy of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The node it runs on, then the nearest.
    Default,
    /// Only these nodes, from the node it runs on.
    Bind(NodeMask),
    /// This node first, then those nearest to it.
    Preferred(usize),
    /// These nodes in turn, each with its nearest after it.
    Interleave(NodeMask),
}

/// Decision of a policy for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Whose zonelist is walked.
    pub node: usize,
    /// Nodes that count.
    pub allowed: NodeMask,
    /// Interleaving chose the node.
    pub interleaved: bool,
}

/// Decides on one request of a task that runs on node `local` of a machine with `nodes` nodes.
pub(super) fn choose(caller: &mut Caller, local: usize, nodes: usize) -> Choice {
    let choice = |node, allowed| Choice { node, allowed, interleaved: false };
    match caller.policy {
        Policy::Default => choice(local, NodeMask::ALL),
        Policy::Bind(mask) => choice(local, mask),
        Policy::Preferred(node) if node < nodes => choice(node, NodeMask::ALL),
        Policy::Preferred(_) => choice(local, NodeMask::ALL),
        Policy::Interleave(mask) => match mask.after(caller.interleaved).filter(|&node| node < nodes) {
            Some(node) => {
                caller.interleaved = node as u32;
                Choice { node, allowed: NodeMask::ALL, interleaved: true }
            }
            None => choice(local, NodeMask::ALL),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_walk_round_and_print_as_lists() {
        let mask = NodeMask::of([1, 2, 3, 7, 63, 99]);
        assert_eq!(mask.to_string(), "1-3,7,63");
        assert_eq!([u32::MAX, 0, 3, 7, 63, 64].map(|node| mask.after(node)), [1, 1, 7, 63, 1, 1].map(Some));
        assert_eq!((NodeMask(0).after(0), NodeMask::ALL.to_string().as_str()), (None, "(null)"));
        assert!(mask.has(63) && !mask.has(64) && !mask.has(0));
        assert_eq!([0, 3, 4, 5].map(|index| mask.nth(index)), [1, 7, 63, 1].map(Some));
        assert_eq!(NodeMask(0).nth(7), None);
    }
}
