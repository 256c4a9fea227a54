//! The order in which zones are tried: `build_zonelists`, `find_next_best_node`; 4.13 to 6.18.
//!
//! A node's own zones come first, then the nearest node's, and so on; in each node from the highest kind down. Among
//! equally distant nodes those after the own number and those less often chosen by the nodes built before win. The kernel
//! would prefer nodes without CPUs, but builds the lists before it has started any. Not modelled: lists that are built
//! again when memory is added, the zone order of 4.13, which 64-bit kernels do not use by default. Checked by tests here,
//! and by what guests with a node without CPUs print ("Fallback order for Node").

use super::{NodeOrder, Zone};
use crate::frame::ZONES;
use crate::hw::Machine;

/// Zone numbers by node, in the order in which they are tried.
pub(super) fn of_machine(machine: &Machine, zones: &[Zone], spread: NodeOrder) -> Vec<Vec<u32>> {
    let has_memory: Vec<bool> = machine.nodes.iter().map(|node| node.pages() > 0).collect();
    let mut load = vec![0u64; machine.nodes.len()];
    let lists = (0..machine.nodes.len()).map(|node| {
        let order = node_order(machine, node, &has_memory, &mut load, spread);
        order.into_iter().flat_map(|node| (0..ZONES).rev().map(move |kind| (node * ZONES + kind) as u32))
    });
    let lists: Vec<Vec<u32>> = lists.map(Iterator::collect).collect();
    let managed = |zone: &u32| zones[*zone as usize].managed > 0;
    lists.into_iter().map(|list| list.into_iter().filter(managed).collect()).collect()
}

/// Nodes with memory, best first, and the load that this adds to them.
fn node_order(machine: &Machine, local: usize, has_memory: &[bool], load: &mut [u64], spread: NodeOrder) -> Vec<usize> {
    let nodes = machine.nodes.len();
    let mut used = vec![false; nodes];
    let (mut order, mut before, mut place) = (Vec::new(), local, nodes as u64);
    loop {
        let penalty = |node: usize| {
            let distance = u64::from(machine.distance[local][node]);
            // The load only decides between nodes that are otherwise equal.
            (distance + u64::from(node < local), load[node])
        };
        let best = match !used[local] && has_memory[local] {
            true => Some(local),
            false => {
                (0..nodes).filter(|&node| !used[node] && has_memory[node]).min_by_key(|&node| (penalty(node), node))
            }
        };
        let Some(best) = best else { return order };
        used[best] = true;
        if machine.distance[local][best] != machine.distance[local][before] {
            match spread {
                NodeOrder::ByPlace => load[best] = place,
                NodeOrder::ByCount => load[best] += 1,
            }
        }
        order.push(best);
        before = best;
        place -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::zone;
    use super::*;
    use crate::hw::Cpu;

    fn orders(pages: &[u64], cpus: &[u32], distance: Vec<Vec<u8>>, spread: NodeOrder) -> Vec<Vec<u32>> {
        let cpus = (0..).zip(cpus).map(|(core, &node)| Cpu { node, core }).collect();
        let machine = Machine::pc(pages, 0, cpus, distance).unwrap();
        let lists = of_machine(&machine, &zone::of_machine(&machine), spread);
        let nodes = lists.into_iter().map(|list| list.into_iter().map(|zone| zone / ZONES as u32).collect::<Vec<_>>());
        nodes
            .map(|mut nodes| {
                nodes.dedup();
                nodes
            })
            .collect()
    }

    #[test]
    fn own_zones_first_from_high_to_low() {
        let cpus = vec![Cpu { node: 0, core: 0 }];
        let machine = Machine::pc(&[1 << 21, 1 << 20], 0, cpus, vec![vec![10, 21], vec![21, 10]]).unwrap();
        let lists = of_machine(&machine, &zone::of_machine(&machine), NodeOrder::ByCount);
        assert_eq!(lists, [[2, 1, 0, 7], [7, 2, 1, 0]]);
    }

    #[test]
    fn near_nodes_before_far_ones() {
        let distance = vec![vec![10, 31, 21], vec![31, 10, 21], vec![21, 21, 10]];
        let order = orders(&[1 << 20; 3], &[0, 1, 2], distance, NodeOrder::ByCount);
        assert_eq!(order, [[0, 2, 1], [1, 2, 0], [2, 0, 1]].map(Vec::from));
    }

    #[test]
    fn nodes_without_memory_or_cpus() {
        let flat: Vec<Vec<u8>> = (0..3).map(|i| (0..3).map(|j| if i == j { 10 } else { 20 }).collect()).collect();
        // Node 0 has no memory. That node 2 has no CPU does not matter.
        let order = orders(&[0, 1 << 20, 1 << 20], &[0, 1], flat, NodeOrder::ByCount);
        assert_eq!(order, [vec![1, 2], vec![1, 2], vec![2, 1]]);
        let flat: Vec<Vec<u8>> = (0..4).map(|i| (0..4).map(|j| if i == j { 10 } else { 20 }).collect()).collect();
        let order = orders(&[1 << 16; 4], &[0, 0, 1, 1, 2, 2], flat, NodeOrder::ByPlace);
        assert_eq!(order, [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]].map(Vec::from));
    }

    #[test]
    fn equally_near_nodes_share_the_load() {
        let flat: Vec<Vec<u8>> = (0..4).map(|i| (0..4).map(|j| if i == j { 10 } else { 20 }).collect()).collect();
        // Higher numbers win; the load breaks the ties that earlier nodes made.
        let order = orders(&[1 << 20; 4], &[0, 1, 2, 3], flat.clone(), NodeOrder::ByCount);
        assert_eq!(order, [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]].map(Vec::from));
        assert_eq!(orders(&[1 << 20; 4], &[0, 1, 2, 3], flat, NodeOrder::ByPlace), order);
    }
}
