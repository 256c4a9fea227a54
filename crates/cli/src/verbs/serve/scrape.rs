//! One scrape: counters of this host as `record` samples them, and of its cgroups.
//!
//! Cgroups come and go, and each would be a series for ever where the answers are kept. So there are places for a number of
//! them, those nearest the root first, and a cgroup that has gone keeps its place for an hour. Those without a place are
//! counted.

use crate::Failure;
use mmtwin_event::CounterRow;
use mmtwin_host::cgroup::{self, Mount};
use mmtwin_host::sample::Sampler;
use mmtwin_report::openmetrics::Exposition;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a cgroup that has gone keeps its place.
const KEPT: Duration = Duration::from_secs(3600);

/// Takes samples.
pub struct Scraper {
    mounts: Vec<Mount>,
    /// Cgroups that are wanted; none: all are.
    wanted: Vec<String>,
    /// Cgroups that have a place, and when they were there last.
    places: BTreeMap<String, Instant>,
    most_cgroups: usize,
    most_series: usize,
    kernel: String,
}

impl Scraper {
    /// One of this host. A pattern of cgroups that is none is an error; that there is none of them is not: they may come.
    pub fn new(wanted: Vec<String>, most_cgroups: usize, most_series: usize) -> Result<Scraper, Failure> {
        let mounts = cgroup::mounts();
        for pattern in &wanted {
            if let Err(error @ mmtwin_host::Error::CgroupPattern { .. }) = cgroup::find(pattern, &mounts) {
                return Err(error.into());
            }
        }
        Ok(Scraper::of(mounts, wanted, most_cgroups, most_series))
    }

    /// The same with cgroups at other places.
    pub fn of(mounts: Vec<Mount>, wanted: Vec<String>, most_cgroups: usize, most_series: usize) -> Scraper {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
        Scraper { mounts, wanted, places: BTreeMap::new(), most_cgroups, most_series, kernel }
    }

    /// The text for Prometheus.
    pub fn scrape(&mut self) -> Vec<u8> {
        let mut sampler = Sampler::new();
        let (chosen, omitted) = self.choose(Instant::now());
        for (key, directory) in &chosen {
            sampler.add_cgroup(key, directory);
        }
        let mut exposition = Exposition::new(self.most_series);
        exposition.about(vec![("arm", "host".into()), ("kernel", self.kernel.clone())]);
        exposition.own("mmtwin_cgroups", "Cgroups with counters in this text.", chosen.len() as u64);
        exposition.own("mmtwin_cgroups_omitted", "Cgroups that were omitted because there are too many.", omitted);
        sampler.sample(|source, rows| {
            for row in &rows {
                let (names, values) = (&row.names, &row.values);
                exposition.add(&CounterRow { source, key: &row.key, at: 0, names, values }, None);
            }
        });
        let mut text = Vec::new();
        // Into memory.
        let _ = exposition.write(&mut text);
        text
    }

    /// Cgroups with a place, and how many have none.
    fn choose(&mut self, now: Instant) -> (Vec<(String, PathBuf)>, u64) {
        let mut found = BTreeMap::new();
        if self.wanted.is_empty() {
            found.extend(cgroup::existing(&self.mounts));
        }
        for pattern in &self.wanted {
            found.extend(cgroup::find(pattern, &self.mounts).unwrap_or_default());
        }
        self.places.retain(|_, last| now.saturating_duration_since(*last) < KEPT);
        let mut by_depth: Vec<(String, PathBuf)> = found.into_iter().collect();
        by_depth.sort_by_key(|(key, _)| (key.trim_end_matches('/').matches('/').count(), key.clone()));
        let mut omitted = 0;
        by_depth.retain(|(key, _)| {
            let place = self.places.contains_key(key) || self.places.len() < self.most_cgroups;
            if place {
                self.places.insert(key.clone(), now);
            } else {
                omitted += 1;
            }
            place
        });
        (by_depth, omitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_host::cgroup::Version;

    fn keys((chosen, omitted): (Vec<(String, PathBuf)>, u64)) -> (Vec<String>, u64) {
        (chosen.into_iter().map(|(key, _)| key).collect(), omitted)
    }

    #[test]
    fn cgroups_that_come_and_go_have_so_many_places_an_hour() {
        let root = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            std::fs::create_dir_all(root.path().join(name)).unwrap();
            std::fs::write(root.path().join(name).join("memory.stat"), "anon 1\n").unwrap();
        };
        let mount = Mount { path: root.path().into(), version: Version::V2 };
        let mut scraper = Scraper::of(vec![mount], Vec::new(), 2, 1000);
        ["a", "a/deep", "b"].into_iter().for_each(make);
        let begin = Instant::now();
        assert_eq!(keys(scraper.choose(begin)), (vec!["/a".into(), "/b".into()], 1));
        std::fs::remove_dir_all(root.path().join("b")).unwrap();
        make("c");
        assert_eq!(keys(scraper.choose(begin + KEPT / 2)), (vec!["/a".into()], 2), "the place of b is kept");
        assert_eq!(keys(scraper.choose(begin + KEPT)), (vec!["/a".into(), "/c".into()], 1));
        let text = String::from_utf8(scraper.scrape()).unwrap();
        assert!(text.contains("mmtwin_cgroup_memory_stat_anon_bytes{cgroup=\"/a\"} 1\n"), "{text}");
        assert!(text.contains("\nmmtwin_cgroups_omitted 1\n") && text.ends_with("# EOF\n"));
    }
}
