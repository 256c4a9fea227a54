//! The last two values of every counter, and rates between them.
//!
//! Each counter has times of its own: those of a cgroup in which nothing happens are read less often than others.

use crate::counters::is_zone;
use mmtwin_event::CounterRow;
use std::collections::BTreeMap;

/// Counters of all sources, by source and key.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    sources: BTreeMap<String, BTreeMap<String, Counters>>,
}

/// The counters of one source and key, in the order in which they appeared.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    names: Vec<String>,
    values: Vec<Values>,
}

/// A counter.
#[derive(Clone, Copy, Debug, Default)]
struct Values {
    now: Option<u64>,
    at: u64,
    before: Option<(u64, u64)>,
}

impl Rates {
    /// Takes a row, which may have some of the counters of its key. One without any says that the key is gone.
    pub fn row(&mut self, row: &CounterRow<'_>) {
        if row.names.is_empty() {
            if let Some(keys) = self.sources.get_mut(row.source) {
                keys.remove(row.key);
            }
            return;
        }
        if !self.sources.contains_key(row.source) {
            self.sources.insert(row.source.into(), BTreeMap::new());
        }
        let Some(keys) = self.sources.get_mut(row.source) else { return };
        match keys.get_mut(row.key) {
            Some(counters) => counters.add(row),
            None => keys.entry(row.key.into()).or_default().add(row),
        }
    }

    /// Counters of a source and key.
    pub fn of(&self, source: &str, key: &str) -> Option<&Counters> {
        self.sources.get(source)?.get(key)
    }

    /// All keys of a source with their counters, by key.
    pub fn keys(&self, source: &str) -> impl Iterator<Item = (&str, &Counters)> {
        self.sources.get(source).into_iter().flatten().map(|(key, counters)| (key.as_str(), counters))
    }
}

impl Counters {
    fn add(&mut self, row: &CounterRow<'_>) {
        // Rows mostly have the same counters in the same order as the one before.
        let mut next = 0;
        for (name, value) in row.names.iter().zip(row.values) {
            let place = match self.names.get(next) {
                Some(expected) if expected == name => next,
                _ => self.place(name),
            };
            next = place + 1;
            let values = &mut self.values[place];
            if row.at > values.at {
                values.before = values.now.map(|now| (now, values.at));
            }
            (values.now, values.at) = (*value, row.at);
        }
    }

    fn place(&mut self, name: &str) -> usize {
        self.names.iter().position(|n| n == name).unwrap_or_else(|| {
            self.names.push(name.into());
            self.values.push(Values::default());
            self.names.len() - 1
        })
    }

    fn values(&self, name: &str) -> Option<&Values> {
        self.names.iter().position(|n| n == name).map(|i| &self.values[i])
    }

    /// The last value.
    pub fn last(&self, name: &str) -> Option<u64> {
        self.values(name)?.now
    }

    /// Time of the last value of a counter, in nanoseconds of the trace clock.
    pub fn read_at(&self, name: &str) -> Option<u64> {
        self.values(name).map(|values| values.at)
    }

    /// Growth per second of a counter that only grows. `None` with fewer than two values, and where it went backwards:
    /// it was reset.
    pub fn rate(&self, name: &str) -> Option<f64> {
        self.values(name)?.rate()
    }

    /// Sum of the rates of those counters that there are; `None` if none of them is known.
    pub fn sum(&self, names: &[&str]) -> Option<f64> {
        names.iter().filter_map(|name| self.rate(name)).reduce(|a, b| a + b)
    }

    /// Sum over the zones into which kernels split a counter (`allocstall`, `allocstall_normal`).
    pub fn zones(&self, name: &str) -> Option<f64> {
        let fits = |n: &String| n.strip_prefix(name).is_some_and(|rest| rest.is_empty() || is_zone(rest));
        let rates = self.names.iter().zip(&self.values).filter(|(n, _)| fits(n)).filter_map(|(_, v)| v.rate());
        rates.reduce(|a, b| a + b)
    }

    /// All counters: name, last value and rate per second, in the order of the kernel's files.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<u64>, Option<f64>)> {
        self.names.iter().zip(&self.values).map(|(name, values)| (name.as_str(), values.now, values.rate()))
    }
}

impl Values {
    fn rate(&self) -> Option<f64> {
        let ((before, since), now) = (self.before?, self.now?);
        let seconds = self.at.checked_sub(since).filter(|ns| *ns > 0)? as f64 / 1e9;
        Some(now.checked_sub(before)? as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn row(rates: &mut Rates, seconds: u64, counters: &[(&str, u64)]) {
        let names: Vec<String> = counters.iter().map(|(name, _)| name.to_string()).collect();
        let values: Vec<Option<u64>> = counters.iter().map(|(_, value)| Some(*value)).collect();
        let at = seconds * SECOND;
        rates.row(&CounterRow { source: "cgroup", key: "/web", at, names: &names, values: &values });
    }

    #[test]
    fn every_counter_has_its_own_interval() {
        let mut rates = Rates::default();
        row(&mut rates, 1, &[("usage", 10), ("hits", 100), ("stall_normal", 4), ("stall", 1)]);
        assert_eq!(rates.of("cgroup", "/web").unwrap().rate("hits"), None, "one value has no rate");
        row(&mut rates, 3, &[("hits", 120), ("stall_normal", 8)]);
        row(&mut rates, 5, &[("stall", 5), ("hits", 160)]);
        let web = rates.of("cgroup", "/web").unwrap();
        assert_eq!((web.rate("hits"), web.last("hits")), (Some(20.0), Some(160)));
        assert_eq!((web.rate("usage"), web.last("usage")), (None, Some(10)));
        assert_eq!((web.zones("stall"), web.sum(&["hits", "none"])), (Some(3.0), Some(20.0)));
        assert_eq!((web.sum(&["none"]), web.read_at("usage")), (None, Some(SECOND)));
    }

    #[test]
    fn a_reset_counter_has_no_rate_and_a_key_can_go() {
        let mut rates = Rates::default();
        row(&mut rates, 1, &[("hits", 100)]);
        row(&mut rates, 2, &[("hits", 7)]);
        assert_eq!(rates.of("cgroup", "/web").unwrap().rate("hits"), None);
        row(&mut rates, 3, &[]);
        assert!(rates.of("cgroup", "/web").is_none() && rates.keys("cgroup").next().is_none());
    }
}
