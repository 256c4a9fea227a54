//! Which places of swap are taken: `scan_swap_map` (2.6.36 to 3.5; later for disks that seek).
//!
//! Places are given out one after another in clusters of 256 that were free, so that what is swapped together lies together;
//! where there is no such cluster, the first free place is taken. Left out: that others look for one at the same time,
//! clusters that CPUs keep for themselves. Checked by tests here.

use std::ops::Range;

/// Places of a cluster (`SWAPFILE_CLUSTER`).
const CLUSTER: u32 = 256;

/// Places, of which some are taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    size: u32,
    /// By place, as far as any was ever taken.
    taken: Vec<bool>,
    /// How many are taken of each cluster.
    counts: Vec<u16>,
    /// What is left of the cluster that places are taken from.
    left: Range<u32>,
    /// No place before it is free.
    first: u32,
}

impl Places {
    pub fn new(size: u32) -> Places {
        Places { size, ..Places::default() }
    }

    pub fn len(&self) -> u32 {
        self.size
    }

    /// Takes so many places one after another, if there are; the first of them.
    pub fn take(&mut self, count: u32) -> Option<u32> {
        if count > 1 {
            let huge = self.free_clusters(count.div_ceil(CLUSTER))?;
            return Some(self.mark(huge.start..huge.start + count));
        }
        while self.left.start < self.left.end && self.is_taken(self.left.start) {
            self.left.start += 1;
        }
        if self.left.is_empty() {
            self.left = self.free_clusters(1).unwrap_or_default();
        }
        let place = match self.left.next() {
            Some(place) => place,
            None => {
                self.first = (self.first..self.size).find(|&place| !self.is_taken(place)).unwrap_or(self.size);
                self.first
            }
        };
        (place < self.size).then(|| self.mark(place..place + 1))
    }

    /// A place is free again.
    pub fn give(&mut self, place: u32) {
        self.taken[place as usize] = false;
        self.counts[(place / CLUSTER) as usize] -= 1;
        self.first = self.first.min(place);
    }

    fn is_taken(&self, place: u32) -> bool {
        self.taken.get(place as usize).is_some_and(|taken| *taken)
    }

    /// The first clusters one after another of which nothing is taken.
    fn free_clusters(&self, count: u32) -> Option<Range<u32>> {
        let mut run = 0;
        let known = self.counts.iter().position(|&taken| {
            run = if taken == 0 { run + 1 } else { 0 };
            run == count
        });
        let from = known.map_or(self.counts.len() as u32 - run, |last| last as u32 + 1 - count) * CLUSTER;
        let end = from + count * CLUSTER;
        (end <= self.size).then_some(from..end)
    }

    fn mark(&mut self, places: Range<u32>) -> u32 {
        let clusters = places.end.div_ceil(CLUSTER) as usize;
        if clusters > self.counts.len() {
            self.counts.resize(clusters, 0);
            self.taken.resize(clusters * CLUSTER as usize, false);
        }
        for place in places.clone() {
            self.taken[place as usize] = true;
            self.counts[(place / CLUSTER) as usize] += 1;
        }
        places.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_used_up_before_single_places_are() {
        let mut places = Places::new(3 * CLUSTER);
        assert_eq!((0..CLUSTER).map(|_| places.take(1)).collect::<Option<Vec<_>>>(), Some((0..CLUSTER).collect()));
        places.give(5);
        assert_eq!([places.take(1), places.take(1)], [Some(256), Some(257)]);
        // An empty cluster comes before places of those in use, and the nearest of these first.
        (258..512).for_each(|place| assert_eq!(places.take(1), Some(place)));
        assert_eq!(places.take(1), Some(512));
        (513..768).for_each(|place| assert_eq!(places.take(1), Some(place)));
        places.give(700);
        assert_eq!([places.take(1), places.take(1), places.take(1)], [Some(5), Some(700), None]);
        places.give(5);
        assert_eq!(places.take(1), Some(5));
    }

    #[test]
    fn huge_pages_have_whole_clusters() {
        let mut places = Places::new(4 * CLUSTER);
        assert_eq!(
            [places.take(1), places.take(512), places.take(1), places.take(512)],
            [Some(0), Some(256), Some(1), None]
        );
        (256..768).for_each(|place| places.give(place));
        assert_eq!((2..256).map(|_| places.take(1)).last(), Some(Some(255)));
        assert_eq!([places.take(512), places.take(1)], [Some(256), Some(768)]);
    }
}
