//! The largest of every part of the time, so that what happened around any moment can be shown: waits, and other events.

use crate::explain::waiting::Wait;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Most parts of the time.
const PARTS: usize = 64;

/// What happened at a time.
pub trait Happened {
    /// Its begin in nanoseconds of the trace clock.
    fn from(&self) -> u64;
    /// By what the largest are chosen.
    fn size(&self) -> u64;
    /// Thread id.
    fn pid(&self) -> i32;
}

impl Happened for Wait {
    fn from(&self) -> u64 {
        self.from
    }

    fn size(&self) -> u64 {
        self.length()
    }

    fn pid(&self) -> i32 {
        self.pid
    }
}

/// The largest by time.
#[derive(Clone, Debug)]
pub struct Largest<T> {
    /// How many are kept of each part.
    most: usize,
    /// Parts are `1 << shift` nanoseconds long.
    shift: u32,
    parts: BTreeMap<u64, Part<T>>,
    /// How many there were, also those that are not kept.
    pub count: u64,
}

#[derive(Clone, Debug)]
struct Part<T> {
    kept: Vec<T>,
    /// Smaller ones are not kept.
    least: u64,
}

/// A total order, so that what is kept does not depend on the order in which it came.
fn rank(of: &impl Happened) -> (Reverse<u64>, u64, i32) {
    (Reverse(of.size()), of.from(), of.pid())
}

impl<T: Happened> Largest<T> {
    /// Keeps so many of each of at most 64 parts of the time.
    pub fn new(most: usize) -> Largest<T> {
        Largest { most: most.max(1), shift: 0, parts: BTreeMap::new(), count: 0 }
    }

    /// Takes what happened.
    pub fn add(&mut self, item: T) {
        self.count += 1;
        let part = self.parts.entry(item.from() >> self.shift).or_default();
        if item.size() < part.least {
            return;
        }
        part.kept.push(item);
        if part.kept.len() >= 2 * self.most {
            part.cut(self.most);
        }
        while self.parts.len() > PARTS {
            self.shift += 1;
            let mut joined: BTreeMap<u64, Part<T>> = BTreeMap::new();
            for (number, part) in std::mem::take(&mut self.parts) {
                joined.entry(number >> 1).or_default().kept.extend(part.kept);
            }
            joined.values_mut().for_each(|part| part.cut(self.most));
            self.parts = joined;
        }
    }

    /// Those kept, in the order of their beginnings.
    pub fn kept(&self) -> Vec<&T> {
        let mut all: Vec<&T> = Vec::new();
        for part in self.parts.values() {
            let mut part: Vec<&T> = part.kept.iter().collect();
            part.sort_by_key(|item| rank(*item));
            all.extend(part.into_iter().take(self.most));
        }
        all.sort_by_key(|item| (item.from(), item.pid()));
        all
    }
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Part { kept: Vec::new(), least: 0 }
    }
}

impl<T: Happened> Part<T> {
    /// Keeps the largest.
    fn cut(&mut self, most: usize) {
        self.kept.sort_by_key(rank);
        self.kept.truncate(most);
        self.least = self.kept.get(most - 1).map_or(0, T::size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::waiting::Cause;

    const OF_EACH: usize = 32;

    fn wait(from: u64, length: u64) -> Wait {
        Wait {
            pid: 1,
            who: "a-1".into(),
            from,
            until: from + length,
            cause: Cause::Direct,
            order: None,
            scanned: 0,
            freed: 0,
            returned: None,
            throttled: 0,
            slab: 0,
            written: 0,
        }
    }

    #[test]
    fn every_part_of_the_time_keeps_its_largest() {
        let mut largest = Largest::new(OF_EACH);
        for i in 0..100_000u64 {
            largest.add(wait(i * 1_000_000, 1 + i % 1000));
        }
        let kept = largest.kept();
        assert!(kept.len() <= PARTS * OF_EACH && kept.len() >= PARTS / 2 * OF_EACH, "{}", kept.len());
        assert!(kept.is_sorted_by_key(|wait| wait.from));
        assert!(kept.iter().all(|wait| wait.length() > 900), "the longest of each part");
        assert_eq!(largest.count, 100_000);
    }
}
