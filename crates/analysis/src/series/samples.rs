//! Samples of counters, thinned by time: a block keeps the least and the most of each counter, and which came first.
//!
//! As long as they are few, each sample is a block of its own. Then blocks become as wide as a power of two of
//! nanoseconds. Rates are formed between two samples before anything is thinned, so that a short peak stays.

use super::watch::{How, watched};
use mmtwin_event::CounterRow;
use std::collections::BTreeMap;

/// Most blocks of a source that there is once, and of one of many cgroups or regions.
const MOST: usize = 4096;
const MOST_OF_MANY: usize = 512;
/// Most keys of a source.
const KEYS: usize = 1024;
/// Narrowest block of more than one sample, as a power of two of nanoseconds: some 1 ms.
const NARROWEST: u32 = 20;

/// Counters over time by source and key, as in [`mmtwin_event::counters`].
#[derive(Clone, Debug, Default)]
pub struct Samples {
    sources: BTreeMap<String, BTreeMap<String, Group>>,
    /// Rows of keys beyond those kept.
    pub omitted: u64,
}

/// What is known of one counter in one block.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Extent {
    /// Not a number: not known.
    low: f64,
    high: f64,
    /// The most came before the least.
    falling: bool,
}

/// Samples of a stretch of time.
#[derive(Clone, Debug)]
struct Block {
    /// Nanoseconds of the trace clock at its first and last sample.
    first: u64,
    last: u64,
    /// In the order of the columns; a column that appeared later is not in it.
    extents: Vec<Extent>,
}

/// The counters of one source and key over time.
#[derive(Clone, Debug, Default)]
pub struct Group {
    columns: Vec<Column>,
    /// Names of the row before, and the columns of its values.
    names: Vec<String>,
    places: Vec<Option<usize>>,
    blocks: Vec<Block>,
    /// Blocks are `1 << shift` nanoseconds wide; 0: a block for each sample.
    shift: u32,
    most: usize,
}

/// One name.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    how: How,
    /// Time and value of the sample before.
    before: Option<(u64, u64)>,
}

impl Samples {
    /// Takes a row of counters.
    pub fn row(&mut self, row: &CounterRow<'_>) {
        if !self.sources.contains_key(row.source) {
            if !row.names.iter().any(|name| watched(row.source, row.key, name).is_some()) {
                return;
            }
            self.sources.insert(row.source.into(), BTreeMap::new());
        }
        let Some(keys) = self.sources.get_mut(row.source) else { return };
        if !keys.contains_key(row.key) {
            if keys.len() >= KEYS {
                self.omitted += 1;
                return;
            }
            let many = ["cgroup", "numa_maps"].contains(&row.source);
            let most = if many { MOST_OF_MANY } else { MOST };
            keys.insert(row.key.into(), Group { most, ..Group::default() });
        }
        if let Some(group) = keys.get_mut(row.key) {
            group.row(row);
        }
    }

    /// The counters of a source and key.
    pub fn group(&self, source: &str, key: &str) -> Option<&Group> {
        self.sources.get(source)?.get(key)
    }

    /// Keys of a source with their counters, in the order of bytes.
    pub fn groups(&self, source: &str) -> impl Iterator<Item = (&str, &Group)> {
        self.sources.get(source).into_iter().flatten().map(|(key, group)| (key.as_str(), group))
    }

    /// Joins blocks until no source and key has more than so many.
    pub fn thin(&mut self, most: usize) {
        for group in self.sources.values_mut().flat_map(BTreeMap::values_mut) {
            group.thin(most);
        }
    }
}

impl Group {
    fn row(&mut self, row: &CounterRow<'_>) {
        if self.names != row.names {
            self.places = row.names.iter().map(|name| self.place(row, name)).collect();
            self.names = row.names.to_vec();
        }
        let mut sums: Vec<Option<u64>> = vec![None; self.columns.len()];
        for (place, value) in self.places.iter().zip(row.values) {
            if let (Some(place), Some(value)) = (place, value) {
                sums[*place] = Some(sums[*place].unwrap_or(0).saturating_add(*value));
            }
        }
        // A clock that went backwards gives no rates.
        if self.blocks.last().is_some_and(|block| row.at < block.last) {
            return;
        }
        let extents = self.columns.iter_mut().zip(sums).map(|(column, sum)| column.extent(row.at, sum)).collect();
        self.push(Block { first: row.at, last: row.at, extents });
    }

    /// The column of a name of a row, a new one if there is none.
    fn place(&mut self, row: &CounterRow<'_>, name: &str) -> Option<usize> {
        let (name, how) = watched(row.source, row.key, name)?;
        Some(self.columns.iter().position(|column| column.name == name).unwrap_or_else(|| {
            self.columns.push(Column { name: name.into(), how, before: None });
            self.columns.len() - 1
        }))
    }

    fn push(&mut self, block: Block) {
        if let Some(last) = self.blocks.last_mut()
            && self.shift > 0
            && last.first >> self.shift == block.first >> self.shift
        {
            last.join(block);
            return;
        }
        self.blocks.push(block);
        if self.blocks.len() > self.most {
            self.thin(self.most / 2);
        }
    }

    fn thin(&mut self, most: usize) {
        while self.blocks.len() > most.max(1) && self.shift < 63 {
            self.shift = (self.shift + 1).max(NARROWEST);
            let mut joined: Vec<Block> = Vec::with_capacity(self.blocks.len());
            for block in std::mem::take(&mut self.blocks) {
                match joined.last_mut().filter(|last| last.first >> self.shift == block.first >> self.shift) {
                    Some(last) => last.join(block),
                    None => joined.push(block),
                }
            }
            self.blocks = joined;
        }
    }

    /// Names of the counters, in order of appearance.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Times of the points of every counter in nanoseconds of the trace clock: one of a block of one sample, else two.
    pub fn times(&self) -> Vec<u64> {
        let both = |block: &Block| [Some(block.first), Some(block.last).filter(|last| *last > block.first)];
        self.blocks.iter().flat_map(both).flatten().collect()
    }

    /// A counter at these times, as a level or as growth per second: of a block of several samples the least and the
    /// most, in their order. `None`: not known. `None` as a whole: there is no such counter.
    pub fn points(&self, name: &str) -> Option<Vec<Option<f64>>> {
        let place = self.columns.iter().position(|column| column.name == name)?;
        let mut points = Vec::new();
        for block in &self.blocks {
            let extent = block.extents.get(place).copied().unwrap_or(Extent::UNKNOWN);
            let (before, after) = if extent.falling { (extent.high, extent.low) } else { (extent.low, extent.high) };
            points.push(Some(before).filter(|value| value.is_finite()));
            if block.last > block.first {
                points.push(Some(after).filter(|value| value.is_finite()));
            }
        }
        Some(points)
    }
}

impl Column {
    fn extent(&mut self, at: u64, value: Option<u64>) -> Extent {
        let known = match (self.how, value, self.before) {
            (How::Level, Some(value), _) => Some(value as f64),
            // One that went backwards was reset.
            (How::Rate, Some(value), Some((from, before))) if from < at => {
                value.checked_sub(before).map(|grown| grown as f64 * 1e9 / (at - from) as f64)
            }
            _ => None,
        };
        self.before = value.map(|value| (at, value));
        known.map_or(Extent::UNKNOWN, |value| Extent { low: value, high: value, falling: false })
    }
}

impl Block {
    /// Adds the block after it.
    fn join(&mut self, after: Block) {
        self.last = after.last;
        self.extents.resize(self.extents.len().max(after.extents.len()), Extent::UNKNOWN);
        for (extent, after) in self.extents.iter_mut().zip(after.extents) {
            *extent = extent.then(after);
        }
    }
}

impl Extent {
    const UNKNOWN: Extent = Extent { low: f64::NAN, high: f64::NAN, falling: false };

    /// That of both, of which the other comes after.
    fn then(self, after: Extent) -> Extent {
        if self.low.is_nan() {
            return after;
        }
        if after.low.is_nan() {
            return self;
        }
        let (low_after, high_after) = (after.low < self.low, after.high > self.high);
        let falling = match (low_after, high_after) {
            (false, false) => self.falling,
            (true, true) => after.falling,
            (low_after, _) => low_after,
        };
        Extent { low: self.low.min(after.low), high: self.high.max(after.high), falling }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(samples: &mut Samples, source: &str, key: &str, at: u64, values: &[(&str, Option<u64>)]) {
        let names: Vec<String> = values.iter().map(|(name, _)| name.to_string()).collect();
        let values: Vec<_> = values.iter().map(|(_, value)| *value).collect();
        samples.row(&CounterRow { source, key, at, names: &names, values: &values });
    }

    #[test]
    fn levels_and_rates() {
        const S: u64 = 1_000_000_000;
        let mut samples = Samples::default();
        let values = |free, swapped, normal| {
            [("nr_free_pages", free), ("pswpout", swapped), ("allocstall_dma", Some(1)), ("allocstall_normal", normal)]
        };
        row(&mut samples, "vmstat", "", S, &values(Some(9), Some(10), Some(0)));
        row(&mut samples, "vmstat", "", 3 * S, &values(Some(8), Some(30), Some(6)));
        row(&mut samples, "vmstat", "", 4 * S, &values(None, Some(7), Some(6)));
        let group = samples.group("vmstat", "").unwrap();
        assert_eq!(group.times(), [S, 3 * S, 4 * S]);
        assert_eq!(group.points("nr_free_pages").unwrap(), [Some(9.0), Some(8.0), None]);
        assert_eq!(group.points("pswpout").unwrap(), [None, Some(10.0), None], "a reset is not known");
        assert_eq!(group.points("allocstall").unwrap(), [None, Some(3.0), Some(0.0)], "zones are added up");
        assert_eq!(group.points("pgfault"), None);
        row(&mut samples, "sched", "1", S, &[("numa_scan_seq", Some(1))]);
        assert!(samples.group("sched", "1").is_none());
    }

    #[test]
    fn keys_are_bounded() {
        let mut samples = Samples::default();
        for i in 0..KEYS + 3 {
            row(&mut samples, "cgroup", &format!("/{i}"), 1, &[("memory.current", Some(1))]);
        }
        assert_eq!((samples.groups("cgroup").count(), samples.omitted), (KEYS, 3));
    }

    proptest! {
        #[test]
        fn thinning_keeps_least_and_most(values in prop::collection::vec(0u64..1000, 1..200), most in 1usize..40) {
            let mut samples = Samples::default();
            for (i, value) in values.iter().enumerate() {
                row(&mut samples, "vmstat", "", i as u64 * 50_000_000, &[("nr_dirty", Some(*value))]);
            }
            samples.thin(most);
            let group = samples.group("vmstat", "").unwrap();
            let points: Vec<f64> = group.points("nr_dirty").unwrap().into_iter().flatten().collect();
            let times = group.times();
            prop_assert_eq!(times.len(), points.len());
            prop_assert!(times.len() <= 2 * most && times.is_sorted());
            let bound = |of: fn(f64, f64) -> f64| points.iter().copied().reduce(of).unwrap() as u64;
            prop_assert_eq!(Some(bound(f64::min)), values.iter().copied().min());
            prop_assert_eq!(Some(bound(f64::max)), values.iter().copied().max());
        }
    }
}
