//! Free address space: ranges in order of address, searched for the lowest one that fits.
//!
//! Models `free_vmap_area_root` and its list: `find_vmap_lowest_match`, the four ways to clip a range
//! (`va_clip`), and `merge_or_add_vmap_area` (6.1 to 6.18). A treap stands for the red-black tree: the walk depends on
//! the tree's shape only for requests aligned to more than a page, where it may pass over a range that would have fit.
//! Not modelled: the lock and the objects preloaded per CPU. Checked against a plain sorted list (property tests).

/// A node of the tree; 0 is none.
type Link = u32;

#[derive(Clone, Copy, Debug, Default)]
struct Range {
    start: u64,
    end: u64,
    /// Size of the largest range in the subtree.
    largest: u64,
    /// Larger ones are nearer to the root.
    priority: u64,
    left: Link,
    right: Link,
}

/// Free ranges, never touching each other.
#[derive(Clone, Debug)]
pub struct FreeTree {
    /// The first one stands for none: it is empty.
    ranges: Vec<Range>,
    unused: Vec<Link>,
    root: Link,
    /// Room for the way from the root to a range.
    path: Vec<Link>,
}

/// A range that was freed is free already, in part or whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{start:#x}-{end:#x} is free already, or empty")]
pub struct NotInUse {
    /// Its first byte.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
}

impl FreeTree {
    /// All of `start..end` free.
    pub fn new(start: u64, end: u64) -> FreeTree {
        let mut tree = FreeTree { ranges: vec![Range::default()], unused: Vec::new(), root: 0, path: Vec::new() };
        if start < end {
            tree.insert(start, end);
        }
        tree
    }

    /// Takes `size` bytes at the lowest address from `low` to `high` that is a multiple of `align`, a power of two.
    /// `exact`: the caller needs a place in a range of its own, so the search does not allow for alignment.
    pub fn take(&mut self, size: u64, align: u64, low: u64, high: u64, exact: bool, page: u64) -> Option<u64> {
        let search = if align <= page || exact { size } else { size.checked_add(align - 1)? };
        let found = self.lowest(self.root, size, align, low, search)?;
        let Range { start, end, .. } = self.ranges[found as usize];
        let at = fit(start, end, size, align, low)?;
        if at.checked_add(size)? > high {
            return None;
        }
        match (start < at, at + size < end) {
            (false, false) => self.remove(start),
            (false, true) => self.resize(start, at + size, end),
            (true, false) => self.resize(start, start, at),
            (true, true) => {
                self.resize(start, start, at);
                self.insert(at + size, end);
            }
        }
        Some(at)
    }

    /// Gives a range back and merges it with its neighbours.
    pub fn give(&mut self, start: u64, end: u64) -> Result<(), NotInUse> {
        let error = Err(NotInUse { start, end });
        let [before, after] = self.neighbours(start);
        if start >= end || before.is_some_and(|r| r.1 > start) || after.is_some_and(|r| r.0 < end) {
            return error;
        }
        match (before.filter(|r| r.1 == start), after.filter(|r| r.0 == end)) {
            (None, None) => self.insert(start, end),
            (Some((low, _)), None) => self.resize(low, low, end),
            (None, Some((_, high))) => self.resize(end, start, high),
            (Some((low, _)), Some((_, high))) => {
                self.remove(end);
                self.resize(low, low, high);
            }
        }
        Ok(())
    }

    /// All ranges in order of address.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut path = Vec::new();
        let mut at = self.root;
        std::iter::from_fn(move || {
            while at != 0 {
                path.push(at);
                at = self.ranges[at as usize].left;
            }
            let range = self.ranges[path.pop()? as usize];
            at = range.right;
            Some((range.start, range.end))
        })
    }

    fn lowest(&self, at: Link, size: u64, align: u64, low: u64, search: u64) -> Option<Link> {
        if at == 0 {
            return None;
        }
        let range = &self.ranges[at as usize];
        let enough = |link: Link| self.ranges[link as usize].largest >= search;
        if enough(range.left)
            && low < range.start
            && let Some(found) = self.lowest(range.left, size, align, low, search)
        {
            return Some(found);
        }
        if fit(range.start, range.end, size, align, low).is_some() {
            return Some(at);
        }
        if enough(range.right) { self.lowest(range.right, size, align, low, search) } else { None }
    }

    /// The last range that starts at or before an address, and the first one after it.
    fn neighbours(&self, start: u64) -> [Option<(u64, u64)>; 2] {
        let (mut before, mut after, mut at) = (None, None, self.root);
        while at != 0 {
            let range = &self.ranges[at as usize];
            if range.start <= start {
                before = Some((range.start, range.end));
                at = range.right;
            } else {
                after = Some((range.start, range.end));
                at = range.left;
            }
        }
        [before, after]
    }

    fn insert(&mut self, start: u64, end: u64) {
        let range = Range { start, end, largest: end - start, priority: scatter(start), left: 0, right: 0 };
        let new = match self.unused.pop() {
            Some(link) => {
                self.ranges[link as usize] = range;
                link
            }
            None => {
                self.ranges.push(range);
                (self.ranges.len() - 1) as Link
            }
        };
        let (left, right) = self.split(self.root, start);
        let left = self.join(left, new);
        self.root = self.join(left, right);
    }

    /// Moves the ends of a range; it keeps its place among the others.
    fn resize(&mut self, key: u64, start: u64, end: u64) {
        let (mut path, mut at) = (std::mem::take(&mut self.path), self.root);
        while self.ranges[at as usize].start != key {
            path.push(at);
            let range = &self.ranges[at as usize];
            at = if key < range.start { range.left } else { range.right };
        }
        (self.ranges[at as usize].start, self.ranges[at as usize].end) = (start, end);
        self.update(at);
        path.drain(..).rev().for_each(|above| self.update(above));
        self.path = path;
    }

    fn remove(&mut self, start: u64) {
        let (left, rest) = self.split(self.root, start);
        let (this, right) = self.split(rest, start + 1);
        self.unused.push(this);
        self.root = self.join(left, right);
    }

    /// Ranges that start below an address, and the others.
    fn split(&mut self, at: Link, start: u64) -> (Link, Link) {
        if at == 0 {
            return (0, 0);
        }
        let range = self.ranges[at as usize];
        if range.start < start {
            let (left, right) = self.split(range.right, start);
            self.ranges[at as usize].right = left;
            self.update(at);
            (at, right)
        } else {
            let (left, right) = self.split(range.left, start);
            self.ranges[at as usize].left = right;
            self.update(at);
            (left, at)
        }
    }

    /// One tree of two, all of the first before all of the second.
    fn join(&mut self, left: Link, right: Link) -> Link {
        if left == 0 || right == 0 {
            return left + right;
        }
        let (l, r) = (self.ranges[left as usize], self.ranges[right as usize]);
        if l.priority > r.priority {
            self.ranges[left as usize].right = self.join(l.right, right);
            self.update(left);
            left
        } else {
            self.ranges[right as usize].left = self.join(left, r.left);
            self.update(right);
            right
        }
    }

    fn update(&mut self, at: Link) {
        let Range { start, end, left, right, .. } = self.ranges[at as usize];
        let below = self.ranges[left as usize].largest.max(self.ranges[right as usize].largest);
        self.ranges[at as usize].largest = below.max(end - start);
    }
}

/// Where a request fits into a range, if it does.
fn fit(start: u64, end: u64, size: u64, align: u64, low: u64) -> Option<u64> {
    let at = start.max(low).checked_next_multiple_of(align.max(1))?;
    (at.checked_add(size)? <= end).then_some(at)
}

/// Scatters starts evenly, so that the tree is balanced for any addresses: Fibonacci hashing, then the high bits over
/// the low ones.
fn scatter(start: u64) -> u64 {
    let word = (start ^ start >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word ^ word >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: u64 = 4096;

    /// The same as a sorted list.
    struct List(Vec<(u64, u64)>);

    impl List {
        fn take(&mut self, size: u64, low: u64, high: u64) -> Option<u64> {
            let i = self.0.iter().position(|&(start, end)| start.max(low) + size <= end)?;
            let ((start, end), at) = (self.0[i], self.0[i].0.max(low));
            if at + size > high {
                return None;
            }
            self.0.splice(i..=i, [(start, at), (at + size, end)].into_iter().filter(|r| r.0 < r.1));
            Some(at)
        }

        fn give(&mut self, start: u64, end: u64) {
            self.0.push((start, end));
            self.0.sort_unstable();
            let mut merged: Vec<(u64, u64)> = Vec::new();
            for &(start, end) in &self.0 {
                match merged.last_mut().filter(|last| last.1 == start) {
                    Some(last) => last.1 = end,
                    None => merged.push((start, end)),
                }
            }
            self.0 = merged;
        }
    }

    proptest! {
        #[test]
        fn the_lowest_fit_is_taken_and_neighbours_merge(
            steps in prop::collection::vec((any::<bool>(), 1u64..20, 0u64..300, 0u64..64), 1..200)
        ) {
            let (mut tree, mut list) = (FreeTree::new(0, 256 * PAGE), List(vec![(0, 256 * PAGE)]));
            let mut used: Vec<(u64, u64)> = Vec::new();
            for (take, pages, low, which) in steps {
                if take || used.is_empty() {
                    let (size, low) = (pages * PAGE, low.saturating_sub(150) * PAGE);
                    let at = tree.take(size, 1, low, 256 * PAGE, false, PAGE);
                    prop_assert_eq!(at, list.take(size, low, 256 * PAGE));
                    used.extend(at.map(|at| (at, at + size)));
                } else {
                    let (start, end) = used.swap_remove(which as usize % used.len());
                    prop_assert_eq!(tree.give(start, end), Ok(()));
                    prop_assert!(tree.give(start, end).is_err());
                    list.give(start, end);
                }
                prop_assert_eq!(tree.iter().collect::<Vec<_>>(), list.0.clone());
                let largest = list.0.iter().map(|r| r.1 - r.0).max().unwrap_or(0);
                prop_assert_eq!(tree.ranges[tree.root as usize].largest, largest);
            }
        }

        #[test]
        fn alignment_is_kept(requests in prop::collection::vec((1u64..8, 0u32..6), 1..40)) {
            let mut tree = FreeTree::new(3 * PAGE, 4096 * PAGE);
            let mut used: Vec<(u64, u64)> = Vec::new();
            for (pages, shift) in requests {
                let (size, align) = (pages * PAGE, PAGE << shift);
                let at = tree.take(size, align, 0, u64::MAX, false, PAGE).expect("there is room");
                prop_assert_eq!(at % align, 0);
                prop_assert!(used.iter().all(|&(start, end)| at + size <= start || end <= at));
                used.push((at, at + size));
            }
        }
    }

    #[test]
    fn requests_that_cannot_be_are_refused() {
        let mut tree = FreeTree::new(PAGE, 10 * PAGE);
        assert_eq!(tree.take(10 * PAGE, 1, 0, u64::MAX, false, PAGE), None);
        assert_eq!(tree.take(PAGE, 1, 9 * PAGE, 9 * PAGE, false, PAGE), None, "beyond the upper end");
        assert_eq!(tree.take(u64::MAX, u64::MAX / 2 + 1, 0, u64::MAX, false, PAGE), None);
        assert_eq!(tree.take(PAGE, 1, u64::MAX - 5, u64::MAX, false, PAGE), None);
        assert!(tree.give(5 * PAGE, 5 * PAGE).is_err() && tree.give(0, 2 * PAGE).is_err());
        assert_eq!(FreeTree::new(5, 5).iter().count(), 0);
    }
}
