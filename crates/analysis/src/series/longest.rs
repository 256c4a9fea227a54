//! The longest waits of every part of the time, so that the waits around any moment can be shown.

use crate::explain::waiting::Wait;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Most parts of the time.
const PARTS: usize = 64;
/// Waits kept of each.
const OF_EACH: usize = 32;

/// Waits by time.
#[derive(Clone, Debug, Default)]
pub struct Longest {
    /// Parts are `1 << shift` nanoseconds long.
    shift: u32,
    parts: BTreeMap<u64, Vec<Wait>>,
    /// All waits, also those that are not kept.
    pub count: u64,
}

/// A total order, so that what is kept does not depend on how waits are sorted.
fn rank(wait: &Wait) -> (Reverse<u64>, u64, i32) {
    (Reverse(wait.length()), wait.from, wait.pid)
}

impl Longest {
    /// Takes a wait.
    pub fn add(&mut self, wait: Wait) {
        self.count += 1;
        let part = self.parts.entry(wait.from >> self.shift).or_default();
        part.push(wait);
        if part.len() >= 2 * OF_EACH {
            cut(part);
        }
        while self.parts.len() > PARTS {
            self.shift += 1;
            let mut joined: BTreeMap<u64, Vec<Wait>> = BTreeMap::new();
            for (part, waits) in std::mem::take(&mut self.parts) {
                joined.entry(part >> 1).or_default().extend(waits);
            }
            joined.values_mut().for_each(cut);
            self.parts = joined;
        }
    }

    /// Those kept, in the order of their beginnings.
    pub fn waits(&self) -> Vec<&Wait> {
        let mut all: Vec<&Wait> = Vec::new();
        for part in self.parts.values() {
            let mut part: Vec<&Wait> = part.iter().collect();
            part.sort_by_key(|wait| rank(wait));
            all.extend(part.into_iter().take(OF_EACH));
        }
        all.sort_by_key(|wait| (wait.from, wait.pid));
        all
    }
}

fn cut(waits: &mut Vec<Wait>) {
    waits.sort_by_key(rank);
    waits.truncate(OF_EACH);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::waiting::Cause;

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
    fn every_part_of_the_time_keeps_its_longest() {
        let mut longest = Longest::default();
        for i in 0..100_000u64 {
            longest.add(wait(i * 1_000_000, 1 + i % 1000));
        }
        let kept = longest.waits();
        assert!(kept.len() <= PARTS * OF_EACH && kept.len() >= PARTS / 2 * OF_EACH, "{}", kept.len());
        assert!(kept.is_sorted_by_key(|wait| wait.from));
        assert!(kept.iter().all(|wait| wait.length() > 900), "the longest of each part");
        assert_eq!(longest.count, 100_000);
    }
}
