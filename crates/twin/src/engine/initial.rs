//! The LRU lists of a kernel that has been running, as the lab's `/proc/mmtwin_lru` and `/proc/mmtwin_shrinkers` showed
//! them: its reclaimable memory, in order.
//!
//! The pages are there with their flags. Anonymous ones, but for large folios, are the recorder's and the processes', which
//! read some of them ([`super::report`]); all others belong to no thread of the run and are never accessed. Pages of a block
//! device whose buffers the file system holds are activated when reclaim scans them. Pages on the unevictable list and
//! the kinds of shrinkers' objects are not known. Files of the workload are on the disk that was mounted last.

use super::RunError;
use super::main_loop::Engine;
use crate::frame::{Flag, Migratetype, Pfn, ZONES, ZoneKind};
use crate::mm::region::{Region, Shape};
use crate::mm::slab::shrinker::{SUPERBLOCK, Shrinker};
use crate::page_alloc::{Caller, Policy};
use crate::probe::Task;
use mmtwin_event::counters::{Backing, Lru, Run};
use mmtwin_scenario::workload::{ActionKind, Process};

/// File system of the workload, cost of an object of a superblock, and objects scanned at once.
const FILE_SYSTEM: &str = "ext4";
const SEEKS: u64 = 2;
/// The function of a superblock's shrinker in 2012.
const OF_2012: &str = "prune_super";
const OF_SUPERBLOCK: u64 = 1024;

impl Engine<'_> {
    /// Takes over the lists. Their pages are taken from what is free, so zones must still have more than they had. Returns
    /// the region of the recorder's memory.
    pub(super) fn restore_lru(&mut self, lru: &Lru) -> Result<usize, RunError> {
        let lists = || lru.lruvecs.iter().flat_map(|vec| vec.lists.iter().flatten().map(|run| (vec.node, run)));
        let batches = || lru.batches.iter().filter(|batch| batch.name == "lru_add");
        let waiting = || batches().flat_map(|batch| &batch.runs);
        let mut others = Others::default();
        for (_, run) in lists().chain(waiting().map(|(node, run)| (*node, run))) {
            others.pages[kind_of(run)] += run.folios << run.order;
        }
        // The recorder and each process have the same share.
        let programs = self.processes.len() as u64 + 1;
        others.share = others.pages[PROGRAM].div_ceil(programs).max(1);
        others.programs = (0..programs).map(|_| self.region_of_others(PROGRAM, others.share)).collect();
        for (process, &region) in self.processes.iter_mut().zip(&others.programs[1..]) {
            process.image.push(region);
            process.program = Some(region);
        }
        others.regions = [SHMEM, FILE, HELD, LARGE].map(|kind| self.region_of_others(kind, others.pages[kind]));
        for vec in &lru.lruvecs {
            for run in vec.lists.iter().flatten() {
                for page in self.others(&mut others, vec.node as usize, run)? {
                    let kernel = &mut self.kernel;
                    kernel.reclaim.lru.add(&mut kernel.alloc.frames, &mut kernel.stat.pages, page, false);
                }
            }
            // Only the root's are known.
            if vec.cgroup == "/" {
                let number = self.kernel.reclaim.lru.number(vec.node as usize, 0);
                let to = self.kernel.reclaim.lru.vec_mut(number);
                (to.cost, to.nonresident_age) = ([vec.anon_cost, vec.file_cost], vec.nonresident_age);
                (to.refaults, to.activated) =
                    ([vec.refaults_anon, vec.refaults_file], [vec.refaults_anon, vec.refaults_file]);
            }
        }
        for batch in batches() {
            for (node, run) in &batch.runs {
                for page in self.others(&mut others, *node as usize, run)? {
                    self.kernel.add_to_lru(batch.cpu, page);
                }
            }
        }
        Ok(others.programs[0])
    }

    /// A region for that many pages of a kind.
    fn region_of_others(&mut self, kind: usize, pages: u64) -> usize {
        let (parts, anon, file, exec, locked) = (1, is_anon(kind), is_file(kind), false, false);
        let shape = Shape { pages, parts, anon, file, huge: Vec::new(), exec, locked, policy: Policy::Default };
        let mut region = Region::new(shape, self.kernel.machine.nodes.len(), self.memory.next_base());
        (region.held, region.users) = (kind == HELD, u32::from(kind == PROGRAM));
        region.add_mapper();
        self.memory.regions.push(region);
        self.memory.regions.len() - 1
    }

    /// Pages of a run of alike ones, prepared.
    fn others(&mut self, others: &mut Others, node: usize, run: &Run) -> Result<Vec<Pfn>, RunError> {
        let kind = kind_of(run);
        let Some(zone) = ZoneKind::ALL.into_iter().find(|kind| kind.name() == run.zone) else { return Ok(Vec::new()) };
        let zone = node * ZONES + zone as usize;
        let caller = Caller::new(0, Task::default(), Policy::Default);
        let flags = [
            (Flag::Swapbacked, !is_file(kind)),
            (Flag::Active, run.active),
            (Flag::Referenced, run.referenced),
            (Flag::Dirty, run.dirty),
            (Flag::Reclaim, run.reclaim),
            (Flag::Workingset, run.workingset),
        ];
        let flags: Vec<Flag> = flags.into_iter().filter(|(_, has)| *has).map(|(flag, _)| flag).collect();
        let mut pages = Vec::new();
        for _ in 0..run.folios {
            // Another kernel than the one that was seen may have less.
            let Some(page) = self.kernel.alloc.take_for(zone, run.order, Migratetype::Movable) else { break };
            let (region, place) = others.place(kind);
            let region = &mut self.memory.regions[region];
            (0..1 << run.order).for_each(|i| region.put(place + i, page + i as u32, node));
            if kind == SHMEM || run.mapped && is_file(kind) {
                region.map_shared(0, place, node);
            }
            if run.mapped {
                // Whoever mapped it accessed it, and reclaim has not looked since.
                (place..place + (1 << run.order)).for_each(|page| region.touch(0, page));
            }
            others.used[kind] += 1 << run.order;
            self.kernel.prepare(&caller, page, region.content(place), &flags);
            region.items().iter().for_each(|&item| self.kernel.stat.pages.add(node, item, 1 << run.order));
            if run.dirty && is_file(kind) {
                self.kernel.count_dirty(page, 1);
            }
            pages.push(page);
        }
        Ok(pages)
    }

    /// Restores the shrinkers; names that are looked up will be added to theirs.
    pub(super) fn restore_shrinkers(&mut self, shrinkers: &[mmtwin_event::counters::Shrinker]) {
        let nodes = self.kernel.machine.nodes.len();
        let mut all: Vec<(&str, Option<&str>, Shrinker)> = Vec::new();
        for config in shrinkers {
            let key = (config.name.as_str(), config.of.as_deref());
            let of_first_node = config.node == 0;
            let known = all.iter_mut().rev().find(|(name, of, _)| (*name, *of) == key && !of_first_node);
            let number = config.node as usize;
            let shrinker = match known {
                Some((_, _, shrinker)) => shrinker,
                None => {
                    all.push((key.0, key.1, Shrinker::new(&config.name, config.seeks.into(), config.batch, nodes)));
                    let Some((_, _, shrinker)) = all.last_mut() else { continue };
                    shrinker
                }
            };
            if number < nodes {
                (shrinker.freeable[number], shrinker.deferred[number]) = (config.objects, config.deferred);
            }
        }
        let looks_up = |process: &Process| {
            let mut actions = process.phases.iter().flat_map(|phase| &phase.actions);
            actions.any(|action| matches!(action.kind, ActionKind::Lookup { .. }))
        };
        if self.scenario.processes.iter().any(looks_up) {
            if !all.iter().any(|(_, of, _)| *of == Some(FILE_SYSTEM)) {
                let shrinker = Shrinker::new(SUPERBLOCK, SEEKS, OF_SUPERBLOCK, nodes);
                all.push((SUPERBLOCK, Some(FILE_SYSTEM), shrinker));
            }
            let last = all.iter_mut().rev().find(|(name, of, _)| *name == SUPERBLOCK && *of == Some(FILE_SYSTEM));
            last.into_iter().for_each(|(_, _, shrinker)| shrinker.dentries = true);
        }
        if self.memory.inodes.any() {
            let shrinker = Shrinker::new(OF_2012, SEEKS, OF_SUPERBLOCK, nodes);
            all.push((OF_2012, None, Shrinker { files: true, ..shrinker }));
        }
        self.kernel.reclaim.shrinkers = all.into_iter().map(|(_, _, shrinker)| shrinker).collect();
    }
}

/// Kinds of regions that stand for memory of other programs.
const SHMEM: usize = 0;
const FILE: usize = 1;
/// Pages of a device with buffers.
const HELD: usize = 2;
/// Anonymous folios of several pages.
const LARGE: usize = 3;
/// Other anonymous memory: that of programs, each of which has a region.
const PROGRAM: usize = 4;

fn is_anon(kind: usize) -> bool {
    matches!(kind, LARGE | PROGRAM)
}

fn is_file(kind: usize) -> bool {
    matches!(kind, FILE | HELD)
}

fn kind_of(run: &Run) -> usize {
    match run.backing {
        Backing::Anon if run.order > 0 => LARGE,
        Backing::Anon => PROGRAM,
        Backing::Shmem => SHMEM,
        Backing::Device if run.buffers => HELD,
        Backing::File | Backing::Device => FILE,
    }
}

/// Pages of each kind, how many of them are given out, and their regions.
#[derive(Default)]
struct Others {
    pages: [u64; 5],
    used: [u64; 5],
    /// Of all kinds but the last.
    regions: [usize; 4],
    /// Of programs, and how many pages each has.
    programs: Vec<usize>,
    share: u64,
}

impl Others {
    /// Region and place in it of the next page of a kind.
    fn place(&self, kind: usize) -> (usize, u64) {
        let next = self.used[kind];
        match self.regions.get(kind) {
            Some(&region) => (region, next),
            None => (self.programs[(next / self.share) as usize], next % self.share),
        }
    }
}
