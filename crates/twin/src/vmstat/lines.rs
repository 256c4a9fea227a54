//! CPUs that have a zone's words in their caches.
//!
//! The zone's free-page word, which every allocation reads for the watermark test, lies in the same or a neighbouring
//! cache line as its counters. So a CPU that adds to a shared counter takes the line from all others, and each of them
//! pays to fetch it again at its next allocation. That is the cost of a small threshold; the addition itself is not
//! visible in the published figures. Model: one line per zone with a version; a CPU stores the version it has read.
//! Threads of a core share its caches, so a sibling that was current stays current. Not modelled: the cost of the
//! addition for the writer, line transfers that overlap (the time of each fetch is drawn, see [`crate::mm::kernel`]),
//! distance (a zone's readers are the CPUs of its node). Checked against the published table of thresholds (`mmtwin
//! reproduce numa-counters`) and against the closed form in [`crate::vmstat::closed_form`].

/// Versions of every zone's line.
#[derive(Clone, Debug)]
pub struct Lines {
    cpus: usize,
    siblings: Vec<Vec<u32>>,
    /// By zone.
    versions: Vec<u64>,
    /// By zone and CPU.
    seen: Vec<u64>,
}

impl Lines {
    /// All CPUs have the lines of all zones. `siblings` are the other threads of each CPU's core.
    pub fn new(zones: usize, siblings: Vec<Vec<u32>>) -> Lines {
        let cpus = siblings.len();
        Lines { cpus, siblings, versions: vec![0; zones], seen: vec![0; zones * cpus] }
    }

    /// True if a CPU has the line of a zone.
    #[inline]
    pub fn current(&self, zone: usize, cpu: u32) -> bool {
        self.seen[zone * self.cpus + cpu as usize] == self.versions[zone]
    }

    /// A CPU reads the line; true if it had to fetch it.
    #[inline]
    pub fn read(&mut self, zone: usize, cpu: u32) -> bool {
        let fetched = !self.current(zone, cpu);
        self.seen[zone * self.cpus + cpu as usize] = self.versions[zone];
        fetched
    }

    /// A CPU writes the line.
    #[inline]
    pub fn write(&mut self, zone: usize, cpu: u32) {
        let before = self.versions[zone];
        self.versions[zone] += 1;
        let seen = &mut self.seen[zone * self.cpus..][..self.cpus];
        seen[cpu as usize] = before + 1;
        for &sibling in &self.siblings[cpu as usize] {
            let sibling = &mut seen[sibling as usize];
            *sibling += u64::from(*sibling == before);
        }
    }

    /// Takes the line from a CPU.
    pub(crate) fn take(&mut self, zone: usize, cpu: u32) {
        // A version that never was: the first write makes version 1, and versions only grow.
        self.seen[zone * self.cpus + cpu as usize] = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_takes_the_line_from_other_cores() {
        let mut lines = Lines::new(2, vec![vec![1], vec![0], vec![]]);
        lines.write(0, 0);
        assert_eq!([0, 1, 2].map(|cpu| lines.current(0, cpu)), [true, true, false]);
        assert_eq!([0, 1, 2].map(|cpu| lines.current(1, cpu)), [true; 3]);
        assert_eq!([lines.read(0, 2), lines.read(0, 2)], [true, false]);
        lines.write(0, 2);
        lines.write(0, 0);
        // CPU 1 had lost the line before its sibling wrote it.
        assert_eq!([0, 1, 2].map(|cpu| lines.current(0, cpu)), [true, false, false]);
        lines.take(1, 1);
        assert_eq!([lines.current(1, 1), lines.read(1, 1), lines.current(1, 1)], [false, true, true]);
    }
}
