//! Counters with per-CPU differentials: `__inc_zone_state`, `__dec_zone_state`, `__mod_zone_page_state`, 4.13 to 6.18.
//!
//! A group (a zone, or a node) has a shared word per item, the system has one more, and each CPU keeps what it has not
//! yet added. A single step that leaves the threshold adds half the threshold more than it must ("overstep"), so that
//! the CPU has room for one and a half thresholds; a larger step adds all there is. Not modelled: the width of the
//! differential (a patched kernel with a large threshold has a wider type) and the order in which memory is written.
//! Checked: a step-by-step run equals the closed form, and snapshot reads equal the true count (property tests).

/// Amount that a CPU adds to the shared words when a single step exceeds the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Its differential and half the threshold; it continues from minus half the threshold.
    Overstep,
    /// Its differential; it continues from 0.
    Exact,
}

/// Counters of some groups and items.
#[derive(Clone, Debug)]
pub struct Differential {
    cpus: usize,
    items: usize,
    overflow: Overflow,
    /// Shared words by group, then item.
    words: Vec<i64>,
    /// The system's words by item.
    system: Vec<i64>,
    /// Differentials, by group, CPU and item.
    diffs: Vec<i32>,
    /// By group.
    thresholds: Vec<u32>,
}

impl Differential {
    /// All zero; thresholds are 0 until they are set.
    pub fn new(groups: usize, cpus: usize, items: usize, overflow: Overflow) -> Differential {
        Differential {
            cpus,
            items,
            overflow,
            words: vec![0; groups * items],
            system: vec![0; items],
            diffs: vec![0; groups * cpus * items],
            thresholds: vec![0; groups],
        }
    }

    /// Threshold of a group.
    pub fn threshold(&self, group: usize) -> u32 {
        self.thresholds[group]
    }

    /// Sets a threshold. Differentials stay as they are, even beyond it.
    pub fn set_threshold(&mut self, group: usize, threshold: u32) {
        // Half as much again must fit the differential.
        self.thresholds[group] = threshold.min(i32::MAX as u32 / 2);
    }

    #[inline]
    fn slot(&self, group: usize, cpu: u32, item: usize) -> usize {
        (group * self.cpus + cpu as usize) * self.items + item
    }

    #[inline]
    fn share(&mut self, group: usize, item: usize, amount: i64) {
        self.words[group * self.items + item] += amount;
        self.system[item] += amount;
    }

    #[inline]
    fn overstep(&self, group: usize) -> i32 {
        match self.overflow {
            Overflow::Overstep => self.thresholds[group] as i32 >> 1,
            Overflow::Exact => 0,
        }
    }

    /// Adds 1; true if that wrote the shared words.
    #[inline]
    pub fn increment(&mut self, group: usize, cpu: u32, item: usize) -> bool {
        let slot = self.slot(group, cpu, item);
        let diff = self.diffs[slot] + 1;
        if diff <= self.thresholds[group] as i32 {
            self.diffs[slot] = diff;
            return false;
        }
        let overstep = self.overstep(group);
        self.diffs[slot] = -overstep;
        self.share(group, item, i64::from(diff + overstep));
        true
    }

    /// Subtracts 1; true if that wrote the shared words.
    #[inline]
    pub fn decrement(&mut self, group: usize, cpu: u32, item: usize) -> bool {
        let slot = self.slot(group, cpu, item);
        let diff = self.diffs[slot] - 1;
        if diff >= -(self.thresholds[group] as i32) {
            self.diffs[slot] = diff;
            return false;
        }
        let overstep = self.overstep(group);
        self.diffs[slot] = overstep;
        self.share(group, item, i64::from(diff - overstep));
        true
    }

    /// Adds `n` in one step; true if that wrote the shared words.
    #[inline]
    pub fn add(&mut self, group: usize, cpu: u32, item: usize, n: i64) -> bool {
        let slot = self.slot(group, cpu, item);
        let sum = i64::from(self.diffs[slot]) + n;
        if sum.unsigned_abs() <= u64::from(self.thresholds[group]) {
            self.diffs[slot] = sum as i32;
            return false;
        }
        self.diffs[slot] = 0;
        self.share(group, item, sum);
        true
    }

    /// Increments from one write of the shared words to the next.
    pub fn period(&self, group: usize) -> u64 {
        u64::from(self.thresholds[group]) + 1 + self.overstep(group) as u64
    }

    /// Increments until the shared words are written, the one that does it included.
    #[inline]
    pub fn until_shared(&self, group: usize, cpu: u32, item: usize) -> u64 {
        let room = i64::from(self.thresholds[group]) + 1 - i64::from(self.diffs[self.slot(group, cpu, item)]);
        room.max(1) as u64
    }

    /// The same as `n` single increments.
    pub fn run(&mut self, group: usize, cpu: u32, item: usize, n: u64) {
        let (slot, first) = (self.slot(group, cpu, item), self.until_shared(group, cpu, item));
        if n < first {
            self.diffs[slot] += n as i32;
            return;
        }
        let (before, overstep, period) =
            (i64::from(self.diffs[slot]), i64::from(self.overstep(group)), self.period(group));
        let (more, rest) = ((n - first) / period, (n - first) % period);
        self.share(group, item, before + first as i64 + overstep + (more * period) as i64);
        self.diffs[slot] = (rest as i64 - overstep) as i32;
    }

    /// Adds what a CPU has of a group to the shared words; true if there was anything.
    pub fn fold(&mut self, group: usize, cpu: u32) -> bool {
        let mut changed = false;
        for item in 0..self.items {
            let slot = self.slot(group, cpu, item);
            let diff = std::mem::take(&mut self.diffs[slot]);
            if diff != 0 {
                self.share(group, item, i64::from(diff));
                changed = true;
            }
        }
        changed
    }

    /// True if a CPU has anything in one of the first `items` items of any group.
    pub fn pending(&self, cpu: u32, items: usize) -> bool {
        (0..self.thresholds.len()).any(|group| {
            let first = self.slot(group, cpu, 0);
            self.diffs[first..first + items.min(self.items)].iter().any(|&diff| diff != 0)
        })
    }

    /// Zeroes the words of all groups and the system's, and what some CPUs have not added.
    pub fn clear(&mut self, cpus: impl Iterator<Item = u32> + Clone) {
        self.words.fill(0);
        self.system.fill(0);
        for group in 0..self.thresholds.len() {
            for cpu in cpus.clone() {
                let first = self.slot(group, cpu, 0);
                self.diffs[first..first + self.items].fill(0);
            }
        }
    }

    /// The shared word of a group, 0 if it is negative.
    #[inline]
    pub fn plain(&self, group: usize, item: usize) -> u64 {
        self.words[group * self.items + item].max(0) as u64
    }

    /// The shared word of a group and what some CPUs have not added, 0 if the sum is negative.
    pub fn snapshot(&self, group: usize, item: usize, cpus: impl Iterator<Item = u32>) -> u64 {
        let diffs: i64 = cpus.map(|cpu| i64::from(self.diffs[self.slot(group, cpu, item)])).sum();
        (self.words[group * self.items + item] + diffs).max(0) as u64
    }

    /// The system's word, negative if the CPUs have yet to add.
    pub fn system(&self, item: usize) -> i64 {
        self.system[item]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_overflow_and_those_after() {
        let mut zone = Differential::new(1, 1, 1, Overflow::Overstep);
        zone.set_threshold(0, 125);
        let written: Vec<u32> = (1..=502).filter(|_| zone.increment(0, 0, 0)).collect();
        assert_eq!(written, [126, 126 + 188, 126 + 376]);
        assert_eq!((zone.period(0), zone.plain(0, 0), zone.system(0)), (188, 502 + 62, 564));
        let mut zone = Differential::new(1, 1, 1, Overflow::Exact);
        zone.set_threshold(0, 65_533);
        let written: Vec<u32> = (1..=140_000).filter(|_| zone.increment(0, 0, 0)).collect();
        assert_eq!((written, zone.plain(0, 0)), (vec![65_534, 131_068], 131_068));
    }

    #[test]
    fn a_lowered_threshold_waits_for_the_next_step() {
        let mut zone = Differential::new(1, 1, 1, Overflow::Overstep);
        zone.set_threshold(0, 125);
        (0..100).for_each(|_| assert!(!zone.increment(0, 0, 0)));
        zone.set_threshold(0, 10);
        assert_eq!((zone.plain(0, 0), zone.until_shared(0, 0, 0)), (0, 1));
        assert!(zone.increment(0, 0, 0));
        assert_eq!((zone.plain(0, 0), zone.snapshot(0, 0, 0..1)), (106, 101));
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Up(u32, usize),
        Down(u32, usize),
        Add(u32, usize, i64),
        Run(u32, usize, u64),
        Fold(u32),
        Threshold(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0u32..3, 0usize..2).prop_map(|(c, i)| Step::Up(c, i)),
            2 => (0u32..3, 0usize..2).prop_map(|(c, i)| Step::Down(c, i)),
            2 => (0u32..3, 0usize..2, -40i64..60).prop_map(|(c, i, n)| Step::Add(c, i, n)),
            2 => (0u32..3, 0usize..2, 0u64..400).prop_map(|(c, i, n)| Step::Run(c, i, n)),
            1 => (0u32..3).prop_map(Step::Fold),
            1 => (1u32..130).prop_map(Step::Threshold),
        ];
        prop::collection::vec(step, 0..300)
    }

    proptest! {
        #[test]
        fn snapshots_are_true_and_plain_reads_within_the_bounds(steps in steps(), exact in any::<bool>()) {
            let overflow = if exact { Overflow::Exact } else { Overflow::Overstep };
            let mut zone = Differential::new(1, 3, 2, overflow);
            let mut one_by_one = zone.clone();
            let (mut truth, mut largest) = ([10_000i64; 2], 32);
            for zone in [&mut zone, &mut one_by_one] {
                zone.set_threshold(0, 32);
                (0..2).for_each(|item| { zone.add(0, 0, item, 10_000); });
            }
            for step in steps {
                match step {
                    Step::Up(c, i) => { truth[i] += 1; zone.increment(0, c, i); one_by_one.increment(0, c, i); }
                    Step::Down(c, i) => { truth[i] -= 1; zone.decrement(0, c, i); one_by_one.decrement(0, c, i); }
                    Step::Add(c, i, n) => { truth[i] += n; zone.add(0, c, i, n); one_by_one.add(0, c, i, n); }
                    Step::Run(c, i, n) => {
                        truth[i] += n as i64;
                        zone.run(0, c, i, n);
                        (0..n).for_each(|_| { one_by_one.increment(0, c, i); });
                    }
                    Step::Fold(c) => { zone.fold(0, c); one_by_one.fold(0, c); prop_assert!(!zone.pending(c, 2)); }
                    Step::Threshold(t) => {
                        largest = largest.max(t);
                        zone.set_threshold(0, t);
                        one_by_one.set_threshold(0, t);
                    }
                }
                prop_assert_eq!(&zone.diffs, &one_by_one.diffs);
                prop_assert_eq!(&zone.words, &one_by_one.words);
                for (item, &truth) in truth.iter().enumerate() {
                    prop_assert_eq!(zone.snapshot(0, item, 0..3) as i64, truth);
                    let error = truth - zone.plain(0, item) as i64;
                    prop_assert!(error.abs() <= 3 * i64::from(largest));
                    prop_assert_eq!(zone.plain(0, item) as i64, zone.system(item));
                }
            }
        }

        #[test]
        fn with_increments_alone_plain_reads_are_closer(
            threshold in 1u32..200, ups in prop::collection::vec((0u32..4, 0u64..500), 0..60), exact in any::<bool>(),
        ) {
            let overflow = if exact { Overflow::Exact } else { Overflow::Overstep };
            let mut zone = Differential::new(1, 4, 1, overflow);
            zone.set_threshold(0, threshold);
            let mut truth = 0i64;
            for (cpu, n) in ups {
                zone.run(0, cpu, 0, n);
                truth += n as i64;
                let error = truth - zone.plain(0, 0) as i64;
                let low = if exact { 0 } else { 4 * i64::from(threshold >> 1) };
                prop_assert!(-low <= error && error <= 4 * i64::from(threshold), "{error}");
            }
        }
    }
}
