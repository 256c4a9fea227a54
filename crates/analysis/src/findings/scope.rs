//! Counters by the kernel's names, of the machine, or of a cgroup where only those of cgroups are there, as with
//! `--cgroup`.

use super::cgroup::Cgroup;
use crate::counters::Counters;

/// Whose counters they are.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    counters: &'a Counters,
    /// `None`: those of `/proc/vmstat`.
    cgroup: Option<&'a str>,
}

impl<'a> Scope<'a> {
    /// The machine.
    pub fn machine(counters: &'a Counters) -> Scope<'a> {
        Scope { counters, cgroup: None }
    }

    /// A cgroup: what its `memory.stat` has.
    pub fn cgroup(counters: &'a Counters, cgroup: &Cgroup<'a>) -> Scope<'a> {
        Scope { counters, cgroup: Some(cgroup.key) }
    }

    fn place(&self, name: &str) -> (&'static str, &'a str, String) {
        match self.cgroup {
            Some(key) => ("cgroup", key, format!("memory.stat.{name}")),
            None => ("vmstat", "", name.to_string()),
        }
    }

    /// Growth of a counter; `None`: not known.
    pub fn grew(&self, name: &str) -> Option<u64> {
        let (source, key, name) = self.place(name);
        self.counters.delta(source, key, &name)
    }

    /// Sum of the growth of several; one that this kernel does not have counts nothing, but at least one must be known.
    pub fn sum(&self, names: &[&str]) -> Option<u64> {
        names.iter().filter_map(|name| self.grew(name)).reduce(u64::saturating_add)
    }

    /// Growth of a sum since the first sample: (nanoseconds, growth). Empty if one of them went backwards, or it is not
    /// known when they were read.
    pub fn over_time(&self, names: &[&str]) -> Vec<(u64, u64)> {
        let mut sums: Vec<(u64, u64)> = Vec::new();
        for (source, key, name) in names.iter().map(|name| self.place(name)) {
            if self.counters.seconds(source, key).is_none() {
                return Vec::new();
            }
            let series = self.counters.series(source, key, &name);
            let Some((_, first)) = series.first().copied() else { continue };
            let Some(first) = first else { return Vec::new() };
            let grown: Option<Vec<(u64, u64)>> =
                series.iter().map(|(at, value)| Some((*at, value.as_ref()?.checked_sub(first)?))).collect();
            let Some(grown) = grown else { return Vec::new() };
            if sums.is_empty() {
                sums = grown;
            } else if sums.len() == grown.len() {
                sums.iter_mut().zip(grown).for_each(|(sum, (_, more))| sum.1 = sum.1.saturating_add(more));
            } else {
                return Vec::new();
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    #[test]
    fn names_are_the_same_of_a_machine_and_of_a_cgroup() {
        let mut r = Recording::default();
        r.vmstat(&[("pgsteal_file", 3, 10), ("pgsteal_anon", 0, 1)]);
        r.counters("cgroup", "/web", &[("memory.stat.pgsteal", 2, 4), ("memory.stat.workingset_refault_file", 0, 9)]);
        let counters = &r.analysis.counters;
        let web = Cgroup::all(&r.analysis).next().unwrap();
        let (machine, web) = (Scope::machine(counters), Scope::cgroup(counters, &web));
        assert_eq!((machine.sum(&["pgsteal_file", "pgsteal_anon"]), machine.grew("pgsteal")), (Some(8), None));
        assert_eq!((web.sum(&["pgsteal", "absent"]), web.sum(&["absent"])), (Some(2), None));
        let at_end = |scope: &Scope, name| scope.over_time(&[name]).last().copied();
        assert_eq!(at_end(&machine, "pgsteal_file"), Some((10_000_000_000, 7)));
        assert_eq!(at_end(&web, "workingset_refault_file"), Some((10_000_000_000, 9)));
    }
}
