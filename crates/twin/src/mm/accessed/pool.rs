//! Pools: pages that wait for the same kind of draw.
//!
//! The pages that a pattern draws from fall into classes in which every page is equally likely. A pool has for each
//! class the pages that have no frame yet and the nodes of the others, so that the first accesses of an epoch are a few
//! random picks, and the mean latency of an access is a sum over classes and nodes. A page that was faulted in by
//! another access meanwhile stays in its list until it is picked, which changes no probability.

use super::hints::Hints;
use crate::mm::kernel::Kernel;
use crate::mm::prot_numa::{Bits, Mapping};
use crate::mm::region::{Entry, Region};
use mmtwin_scenario::program::{Classes, Permutation};
use std::ops::Range;

/// Pages of one class.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    /// All of them.
    pub pages: u64,
    /// Its share of the accesses.
    pub share: f64,
    /// Pages that have not been accessed, as far as recorded in this pool.
    pub absent: Vec<u32>,
    /// Pages that were only read: the zero page is mapped.
    pub zero: Vec<u32>,
    /// Its other pages by node.
    pub by_node: Vec<u64>,
}

/// The pages that one access of a thread, or of all threads, draws from.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// Classes, most popular first.
    pub classes: Vec<Class>,
    /// Its number in the run, for random numbers.
    pub number: u64,
    /// Random numbers used so far.
    pub draws: u64,
    /// Marked pages; `None` without NUMA balancing.
    pub hints: Option<Hints>,
    /// Mean values of an access.
    pub mean: Mean,
    /// Pages were added or removed since `mean` was computed.
    pub stale: bool,
    /// The mapping of the region that it draws from.
    pub mapper: usize,
    /// Pages of the region that it draws from, and in which order of popularity.
    range: Range<u64>,
    permutation: Permutation,
    /// By class: the rank behind its last page.
    ends: Vec<u64>,
    /// Pages in the lists of those that are absent; `None` before a page was reclaimed.
    listed: Option<Bits>,
}

/// Mean values of an access to a pool, over its classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mean {
    /// Share of each node.
    pub by_node: Vec<f64>,
    /// Share of classes without pages.
    pub nowhere: f64,
    /// Some page is missing.
    pub missing: bool,
}

impl Pool {
    /// The pool for draws from these pages of a region, by the current page table.
    pub(crate) fn new(
        (classes, permutation): (&Classes, &Permutation),
        range: &Range<u64>,
        (region, mapper): (&Region, usize),
        kernel: &Kernel,
        (number, mapping): (u64, Option<&Mapping>),
    ) -> Pool {
        let seen = (region, mapper);
        let nodes = kernel.machine.nodes.len();
        let mut hints = mapping.map(|_| Hints::new(classes, permutation, range, region.may_be_huge()));
        let class = |of: &mmtwin_scenario::program::Class| {
            let (absent, zero) = Default::default();
            Class { pages: of.pages, share: of.share, absent, zero, by_node: vec![0; nodes] }
        };
        let mut list: Vec<Class> = classes.list().iter().map(class).collect();
        if let (Some(hints), Some(mapping)) = (&mut hints, mapping) {
            // In order of address, which is many times faster than in order of rank.
            for page in range.clone() {
                list[hints.class(page)].add(page as u32, seen, kernel, Some(hints));
            }
            mapping.each_marked(range.start, range.end, |unit| hints.list(unit));
        } else if list.len() > 1 && region.is_whole(range) && region.unmapped_within(mapper, range) == 0 {
            // No page waits in a list, so their order does not matter, and that of addresses is many times faster.
            let class_of = class_of(&list, permutation, range);
            for page in range.clone() {
                list[usize::from(class_of[(page - range.start) as usize])].add(page as u32, seen, kernel, None);
            }
        } else {
            for (class, of) in list.iter_mut().zip(classes.list()) {
                for rank in of.first..of.first + of.pages {
                    class.add((range.start + permutation.page(rank)) as u32, seen, kernel, None);
                }
            }
        }
        let (range, permutation) = (range.clone(), *permutation);
        let (mean, stale, listed) = (Mean::default(), true, None);
        let ends = classes.list().iter().map(|of| of.first + of.pages).collect();
        Pool { classes: list, number, draws: 0, hints, mean, stale, mapper, range, permutation, ends, listed }
    }

    /// The class of a page. Its rank is computed: of a byte for each page most would miss the caches.
    fn class_of(&self, page: u64) -> usize {
        match self.ends.len() {
            0 | 1 => 0,
            _ => {
                let rank = self.permutation.rank(page - self.range.start);
                self.ends.partition_point(|&end| end <= rank)
            }
        }
    }

    /// Pages of the region that it draws from.
    pub(crate) fn pages(&self) -> &Range<u64> {
        &self.range
    }

    /// A page was freed on a node: the next access faults.
    pub(crate) fn missing(&mut self, page: u64, node: usize) {
        if !self.range.contains(&page) {
            return;
        }
        self.stale = true;
        let number = self.class_of(page);
        let listed = self.listed.get_or_insert_with(|| listed(&self.classes, &self.range));
        if listed.insert(page - self.range.start) {
            let class = &mut self.classes[number];
            class.absent.push(page as u32);
            class.by_node[node] = class.by_node[node].saturating_sub(1);
            self.hints.iter_mut().for_each(|hints| hints.uncount(page));
        }
    }

    /// Probability that an access is to a page.
    pub(crate) fn probability(&self, page: u64) -> f64 {
        if !self.range.contains(&page) {
            return 0.0;
        }
        let of = &self.classes[self.class_of(page)];
        of.share / of.pages as f64
    }

    /// Takes a random page of a class off the list of those that are absent.
    pub(crate) fn pick_absent(&mut self, class: usize, at: u64) -> u32 {
        let page = take(&mut self.classes[class].absent, at);
        if let Some(listed) = &mut self.listed {
            listed.remove(u64::from(page) - self.range.start);
        }
        page
    }

    /// Updates the mean values of accesses.
    pub(crate) fn refresh(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        let nodes = self.classes.first().map_or(0, |class| class.by_node.len());
        let mut mean = Mean { by_node: vec![0.0; nodes], ..Mean::default() };
        for class in &self.classes {
            mean.missing |= !class.absent.is_empty() || !class.zero.is_empty();
            let placed: u64 = class.by_node.iter().sum();
            if placed == 0 {
                mean.nowhere += class.share;
                continue;
            }
            for (mean, &pages) in mean.by_node.iter_mut().zip(&class.by_node) {
                *mean += class.share * pages as f64 / placed as f64;
            }
        }
        self.mean = mean;
    }

    /// The number of the next random number.
    pub(crate) fn draw(&mut self) -> u64 {
        self.draws += 1;
        self.draws - 1
    }
}

/// The pages of a range that wait in the lists of those that are absent.
fn listed(classes: &[Class], range: &Range<u64>) -> Bits {
    let mut listed = Bits::new(range.end - range.start);
    classes.iter().flat_map(|class| &class.absent).for_each(|&page| {
        listed.insert(u64::from(page) - range.start);
    });
    listed
}

/// Takes a page out of a list. Unused room of a list of millions is freed: the frames and places of the pages that left
/// it need as much. Some is kept, so that pages can return without growth at once.
pub(crate) fn take(list: &mut Vec<u32>, at: u64) -> u32 {
    let page = list.swap_remove(at as usize);
    if list.len() < list.capacity() / 8 * 7 {
        list.shrink_to(list.len() / 16 * 17);
    }
    page
}

/// The class of each page.
fn class_of(classes: &[Class], permutation: &Permutation, range: &Range<u64>) -> Vec<u8> {
    // The largest class need not be checked.
    let largest = (0..classes.len()).max_by_key(|&number| classes[number].pages).unwrap_or(0);
    let mut class_of = vec![largest as u8; (range.end - range.start) as usize];
    let mut first = 0;
    for (number, class) in classes.iter().enumerate() {
        let ranks = first..first + class.pages;
        first = ranks.end;
        if number != largest {
            ranks.for_each(|rank| class_of[permutation.page(rank) as usize] = number as u8);
        }
    }
    class_of
}

impl Class {
    /// Notes a page as the page table of a mapping has it.
    pub(crate) fn add(
        &mut self,
        page: u32,
        (region, mapper): (&Region, usize),
        kernel: &Kernel,
        hints: Option<&mut Hints>,
    ) {
        match region.entry_of(mapper, page.into()) {
            Entry::Absent | Entry::Gone(_) => self.absent.push(page),
            Entry::Zero => self.zero.push(page),
            Entry::Present(pfn) => {
                self.by_node[kernel.machine.node_of_page(pfn.into()).unwrap_or(0)] += 1;
                hints.into_iter().for_each(|hints| hints.count(page.into()));
            }
        }
    }
}
