//! Distances between nodes and what they mean: `init_numa_topology_type`, `score_nearby_nodes`, `preferred_group_nid`;
//! 6.1, with 4.14's border of a backplane's neighbourhood.
//!
//! Not modelled: hot-plugged nodes; every node of the machine is online. Checked by tests on the three kinds.

/// How nodes are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All equally far from each other.
    Direct,
    /// Some reach each other through nodes with CPUs.
    GluelessMesh,
    /// Groups of nodes behind a backplane.
    Backplane,
}

/// The nodes of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    distance: Vec<Vec<u8>>,
    /// By node: its CPUs, ascending.
    pub cpus: Vec<Vec<u32>>,
    pub kind: Kind,
    /// `sched_max_numa_distance`: the largest between nodes with CPUs.
    pub most: u8,
    /// All distances between nodes with CPUs, descending.
    levels: Vec<u8>,
    /// 4.17 and older count nodes at exactly the limit among a backplane's neighbours.
    limit_included: bool,
}

impl Topology {
    /// Of a distance matrix and the CPUs of each node.
    pub(crate) fn new(distance: Vec<Vec<u8>>, cpus: Vec<Vec<u32>>, limit_included: bool) -> Topology {
        let with: Vec<usize> = (0..cpus.len()).filter(|&node| !cpus[node].is_empty()).collect();
        let pairs = || with.iter().flat_map(|&a| with.iter().map(move |&b| (a, b)));
        let mut levels: Vec<u8> = pairs().map(|(a, b)| distance[a][b]).collect();
        levels.sort_unstable_by(|a, b| b.cmp(a));
        levels.dedup();
        let most = levels.first().copied().unwrap_or(10);
        let kind = if levels.len() <= 2 {
            Kind::Direct
        } else {
            let far = pairs().find(|&(a, b)| distance[a][b] >= most);
            let between =
                far.is_some_and(|(a, b)| with.iter().any(|&c| distance[a][c] < most && distance[b][c] < most));
            if between { Kind::GluelessMesh } else { Kind::Backplane }
        };
        Topology { distance, cpus, kind, most, levels, limit_included }
    }

    /// Number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.cpus.len()
    }

    /// Distance of two nodes.
    pub(crate) fn distance(&self, a: usize, b: usize) -> u8 {
        self.distance[a][b]
    }

    /// True if a node has CPUs.
    pub(crate) fn has_cpus(&self, node: usize) -> bool {
        !self.cpus[node].is_empty()
    }

    /// The node with CPUs that is nearest to one, the lowest of those equally near.
    pub(crate) fn nearest_with_cpus(&self, node: usize) -> usize {
        (0..self.nodes()).filter(|&at| self.has_cpus(at)).min_by_key(|&at| self.distance[node][at]).unwrap_or(node)
    }

    /// Faults of a node's neighbours nearer than `limit`, as far as they count; `faults` gives those of a node.
    pub(crate) fn nearby(&self, node: usize, limit: u8, faults: impl Fn(usize) -> u64) -> u64 {
        if self.kind == Kind::Direct {
            return 0;
        }
        let mut score = 0;
        for other in 0..self.nodes() {
            let distance = self.distance[node][other];
            let beyond = if self.limit_included { distance > limit } else { distance >= limit };
            if distance >= self.most || other == node || self.kind == Kind::Backplane && beyond {
                continue;
            }
            let own = faults(other);
            score += match self.kind {
                Kind::GluelessMesh => own * u64::from(self.most - distance) / u64::from(self.most - 10),
                Kind::Backplane | Kind::Direct => own,
            };
        }
        score
    }

    /// 1000 times a node's part, with its neighbours', of all faults.
    pub(crate) fn weight(&self, node: usize, limit: u8, total: u64, faults: impl Fn(usize) -> u64) -> i64 {
        if total == 0 {
            return 0;
        }
        let own = faults(node) + self.nearby(node, limit, &faults);
        (1000 * own / total) as i64
    }

    /// Where a group is best placed (`preferred_group_nid`); `best` is the node with most faults, `memory` gives the
    /// group's memory faults of a node, `total` all of its faults.
    pub(crate) fn preferred_group_nid(&self, best: usize, total: u64, memory: impl Fn(usize) -> u64) -> usize {
        let with = (0..self.nodes()).filter(|&node| self.has_cpus(node));
        match self.kind {
            Kind::Direct => best,
            Kind::GluelessMesh => {
                let (mut chosen, mut most) = (best, 0);
                for node in with {
                    let score = self.weight(node, self.most, total, &memory);
                    if score > most {
                        (chosen, most) = (node, score);
                    }
                }
                chosen
            }
            Kind::Backplane => {
                let (mut set, mut chosen): (Vec<usize>, usize) = (with.collect(), best);
                for &distance in self.levels.iter().filter(|&&distance| distance > 10) {
                    let (mut left, mut most, mut kept) = (set.clone(), 0, Vec::new());
                    for &seed in &set {
                        if !left.contains(&seed) {
                            continue;
                        }
                        let part: Vec<usize> =
                            left.iter().copied().filter(|&node| self.distance[seed][node] < distance).collect();
                        left.retain(|node| !part.contains(node));
                        let faults: u64 = part.iter().map(|&node| memory(node)).sum();
                        if faults > most {
                            (most, chosen, kept) = (faults, seed, part);
                        }
                    }
                    if most == 0 {
                        break;
                    }
                    set = kept;
                }
                chosen
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Nodes with one CPU each at these distances.
    pub(crate) fn topology(distance: &[&[u8]]) -> Topology {
        let cpus = (0..distance.len() as u32).map(|cpu| vec![cpu]).collect();
        Topology::new(distance.iter().map(|row| row.to_vec()).collect(), cpus, false)
    }

    /// A ring of four.
    pub(crate) fn mesh() -> Topology {
        topology(&[&[10, 20, 30, 20], &[20, 10, 20, 30], &[30, 20, 10, 20], &[20, 30, 20, 10]])
    }

    fn backplane() -> Topology {
        topology(&[&[10, 15, 40, 40], &[15, 10, 40, 40], &[40, 40, 10, 15], &[40, 40, 15, 10]])
    }

    #[test]
    fn kinds_follow_from_distances() {
        assert_eq!(topology(&[&[10, 20], &[20, 10]]).kind, Kind::Direct);
        assert_eq!((mesh().kind, mesh().most), (Kind::GluelessMesh, 30));
        assert_eq!(backplane().kind, Kind::Backplane);
    }

    #[test]
    fn a_node_without_cpus_is_replaced_by_the_nearest_with() {
        let distance = vec![vec![10, 30, 20], vec![30, 10, 40], vec![20, 40, 10]];
        let topology = Topology::new(distance, vec![vec![0], vec![1], vec![]], false);
        assert_eq!((topology.nearest_with_cpus(2), topology.nearest_with_cpus(1)), (0, 1));
        // Its distances do not count.
        assert_eq!((topology.kind, topology.most), (Kind::Direct, 30));
    }

    #[test]
    fn neighbours_count_by_their_distance() {
        let faults = [100, 40, 7, 20];
        let of = |node: usize| faults[node];
        // Half of each neighbour: (30 - 20) / (30 - 10).
        assert_eq!(mesh().nearby(0, 30, of), 20 + 10);
        assert_eq!(mesh().weight(0, 30, 167, of), 1000 * 130 / 167);
        assert_eq!(backplane().nearby(0, 40, of), 40);
        assert_eq!(backplane().nearby(0, 15, of), 0);
        let old = Topology::new(backplane().distance, backplane().cpus, true);
        assert_eq!((old.nearby(0, 15, of), backplane().weight(0, 40, 0, of)), (40, 0));
    }

    #[test]
    fn groups_move_to_their_part_of_the_machine() {
        // Node 3 has most, but nodes 0 and 1 together more.
        let faults = [60, 70, 10, 90];
        assert_eq!(backplane().preferred_group_nid(3, 230, |node| faults[node]), 1);
        assert_eq!(mesh().preferred_group_nid(3, 230, |node| faults[node]), 0);
        assert_eq!(topology(&[&[10, 20], &[20, 10]]).preferred_group_nid(1, 9, |_| 1), 1);
        assert_eq!(backplane().preferred_group_nid(3, 0, |_| 0), 3);
    }
}
