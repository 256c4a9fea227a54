//! Statistics of zones: per-CPU counters, when they are folded, and the files that show them.
//!
//! One file per design of the NUMA counters, all behind [`NumaCounters`]; which one runs is decided when the kernel is
//! built. Other zone counters (free pages) have the differentials of [`Differential`] in every release.

pub mod closed_form;
pub mod dialect;
mod differential;
mod event;
mod in_zone;
mod lines;
mod numa;
mod off;
mod pages;
mod reclaim;
mod refresh;
mod separate;
mod switched;
pub mod threshold;

pub use closed_form::closed_form;
pub use dialect::Dialect;
pub use differential::{Differential, Overflow};
pub use event::EventCounters;
pub use in_zone::InZone;
pub use lines::Lines;
pub use numa::{File, NUMA_ITEMS, NumaCounters, NumaItem};
pub use off::Off;
pub use pages::{LISTS, NodeItem, Pages};
pub use reclaim::ReclaimEvents;
pub use refresh::{Refresh, Work};
pub use separate::{SERIES_THRESHOLD, Separate, SeparateCounters};
pub use switched::Switched;

use crate::frame::ZONES;
use crate::hw::PageCosts;
use crate::time::Ns;

/// A zone counter that is not a NUMA counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum ZoneItem {
    /// Pages on the buddy lists.
    FreePages = 0,
}

const ZONE_ITEMS: usize = 1;

/// Which design counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// A: among the zone's items ([`InZone`]).
    InZone,
    /// B: an array of their own ([`SeparateCounters`]).
    Separate(Separate),
    /// C: B with a switch ([`Switched`]).
    Switched(Separate),
    /// D: per-CPU event words ([`EventCounters`]); whether zoneinfo folds them too.
    Event {
        /// `/proc/zoneinfo` folds before it prints (6.13, and stable releases from the end of 2024 on).
        zoneinfo_folds: bool,
    },
    /// Nothing is counted ([`Off`]).
    Off,
}

/// Counters of a kernel and their designs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmStatRules {
    /// The NUMA counters.
    pub design: Design,
    /// Threshold of all zone counters instead of the formula's.
    pub threshold: Option<u32>,
    /// `vm.stat_interval`.
    pub stat_interval: Ns,
    /// Ticks per second.
    pub hz: u32,
    /// Every zone has a drift mark: thresholds were set as CPUs came online, when there were no watermarks yet.
    pub early_drift_marks: bool,
    /// How the files are laid out.
    pub dialect: Dialect,
}

/// Inputs of the thresholds of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneSize {
    /// Its node.
    pub node: usize,
    /// Page frames that exist; 0: there is no such zone.
    pub present: u64,
    /// Pages that the allocator has been given.
    pub managed: u64,
    /// Its watermarks, without the boost.
    pub min: u64,
    /// Where kswapd wakes.
    pub low: u64,
    /// Where kswapd sleeps.
    pub high: u64,
}

/// Words and cache lines that a reader of statistics has accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCost {
    /// Shared words read.
    pub shared_words: u64,
    /// Words of CPUs read.
    pub cpu_words: u64,
    /// Words of CPUs taken: read and set to 0 at once.
    pub exchanges: u64,
    /// Cache lines of CPUs fetched for that.
    pub cpu_lines: u64,
    /// Rows that the kernel prints and the twin does not, as nothing counts them here.
    pub absent_rows: u64,
}

impl ReadCost {
    /// Cycles: the lines that lie in other CPUs' caches, which is nearly all of it.
    pub fn cycles(&self, costs: &PageCosts) -> f64 {
        self.cpu_lines as f64 * costs.read_line
    }
}

/// Event counters. CPUs count them in words of their own that readers add up; only the sum is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Pages allocated, by kind of zone (`pgalloc_*`).
    pub allocated: [u64; ZONES],
    /// Pages freed (`pgfree`).
    pub freed: u64,
    /// Page faults (`pgfault`).
    pub faults: u64,
    /// Faults that allocated a huge page (`thp_fault_alloc`).
    pub thp_fault_alloc: u64,
    /// Faults that could have used a huge page and fell back to a base page (`thp_fault_fallback`).
    pub thp_fault_fallback: u64,
    /// NUMA balancing.
    pub numa: NumaEvents,
    /// Reclaim and related counters.
    pub reclaim: ReclaimEvents,
}

/// Event counters of NUMA balancing and of the migrations it makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumaEvents {
    /// Balancing is on; else these are neither counted nor shown.
    pub on: bool,
    /// Pages marked, huge ones as 512 (`numa_pte_updates`).
    pub pte_updates: u64,
    /// Huge pages marked (`numa_huge_pte_updates`).
    pub huge_pte_updates: u64,
    /// Hinting faults (`numa_hint_faults`).
    pub hint_faults: u64,
    /// Those on pages of the CPU's node (`numa_hint_faults_local`).
    pub hint_faults_local: u64,
    /// Base pages migrated (`numa_pages_migrated`).
    pub pages_migrated: u64,
    /// The same (`pgmigrate_success`).
    pub pgmigrate_success: u64,
    /// Base pages whose migration failed (`pgmigrate_fail`).
    pub pgmigrate_fail: u64,
    /// Huge pages migrated (`thp_migration_success`).
    pub thp_migration_success: u64,
    /// Huge pages whose migration failed (`thp_migration_fail`).
    pub thp_migration_fail: u64,
}

impl NumaEvents {
    /// The counter of a row; `None` if it is another's, or only balancing moves it and that is off.
    pub fn row(&self, name: &str) -> Option<u64> {
        let value = match name {
            "numa_pte_updates" => self.pte_updates,
            "numa_huge_pte_updates" => self.huge_pte_updates,
            "numa_hint_faults" => self.hint_faults,
            "numa_hint_faults_local" => self.hint_faults_local,
            "numa_pages_migrated" => self.pages_migrated,
            // Compaction moves pages too.
            "pgmigrate_success" => return Some(self.pgmigrate_success),
            "pgmigrate_fail" => return Some(self.pgmigrate_fail),
            "thp_migration_success" => self.thp_migration_success,
            "thp_migration_fail" => self.thp_migration_fail,
            _ => return None,
        };
        self.on.then_some(value)
    }
}

/// All statistics.
#[derive(Debug)]
pub struct VmStat {
    /// NUMA counters.
    pub numa: Box<dyn NumaCounters>,
    /// Event counters.
    pub events: Events,
    /// Pages by what they hold.
    pub pages: Pages,
    /// Reclaims of nodes that had too little, and that had enough; `None`: there are none.
    pub node_reclaims: Option<[u64; 2]>,
    /// The kernel has compaction; otherwise its rows are absent.
    pub compaction: bool,
    /// Zones' words in the caches of CPUs.
    pub lines: Lines,
    pub(crate) rules: VmStatRules,
    pub(crate) zone: Differential,
    /// Populated zones.
    pub(crate) populated: Vec<usize>,
    online: Vec<bool>,
    /// Running CPUs, ascending.
    pub(crate) online_list: Vec<u32>,
    /// By zone: free pages below which reads add what CPUs hide.
    drift: Vec<Option<u64>>,
    /// By node: kswapd is awake and thresholds are small.
    pressure: Vec<bool>,
}

impl VmStat {
    /// All counters of some zones zero; `siblings` are the other threads of each CPU's core.
    pub fn new(rules: VmStatRules, zones: &[ZoneSize], siblings: Vec<Vec<u32>>) -> VmStat {
        let (count, cpus) = (zones.len(), siblings.len());
        let numa: Box<dyn NumaCounters> = match rules.design {
            Design::InZone => Box::new(InZone::new(count, cpus)),
            Design::Separate(variant) => Box::new(SeparateCounters::new(variant, count, cpus)),
            Design::Switched(variant) => Box::new(Switched::new(variant, count, cpus)),
            Design::Event { zoneinfo_folds } => Box::new(EventCounters::new(zoneinfo_folds, count, cpus)),
            Design::Off => Box::new(Off),
        };
        let mut stat = VmStat {
            numa,
            events: Events::default(),
            pages: Pages::new(count),
            node_reclaims: None,
            compaction: true,
            lines: Lines::new(count, siblings),
            rules,
            zone: Differential::new(count, cpus, ZONE_ITEMS, Overflow::Overstep),
            populated: (0..count).filter(|&zone| zones[zone].present > 0).collect(),
            online: vec![true; cpus],
            online_list: (0..cpus as u32).collect(),
            drift: vec![None; count],
            pressure: vec![false; count / ZONES],
        };
        stat.set_thresholds(zones);
        stat
    }

    /// Rules it was made with.
    pub fn rules(&self) -> &VmStatRules {
        &self.rules
    }

    /// Number of CPUs, those that do not run included.
    pub fn cpus(&self) -> u32 {
        self.online.len() as u32
    }

    /// CPUs that run, ascending.
    pub fn online(&self) -> &[u32] {
        &self.online_list
    }

    /// Threshold of a zone.
    pub fn threshold(&self, zone: usize) -> u32 {
        self.zone.threshold(zone)
    }

    /// Adds to a zone counter in one step.
    #[inline]
    pub fn add(&mut self, zone: usize, cpu: u32, item: ZoneItem, n: i64) {
        if self.zone.add(zone, cpu, item as usize, n) {
            self.lines.write(zone, cpu);
        }
    }

    /// Counts 1 in a NUMA counter.
    #[inline]
    pub fn count(&mut self, zone: usize, cpu: u32, item: NumaItem) {
        if self.numa.count(zone, cpu, item) {
            self.lines.write(zone, cpu);
        }
    }

    /// A zone counter's shared word.
    #[inline]
    pub fn plain(&self, zone: usize, item: ZoneItem) -> u64 {
        self.zone.plain(zone, item as usize)
    }

    /// A zone counter with what the CPUs have not added.
    pub fn snapshot(&self, zone: usize, item: ZoneItem) -> u64 {
        self.zone.snapshot(zone, item as usize, self.online_list.iter().copied())
    }

    /// Free pages of a zone for exact checks (`zone_watermark_ok_safe`): a snapshot below the drift mark.
    pub fn free_pages_safe(&self, zone: usize) -> u64 {
        let plain = self.plain(zone, ZoneItem::FreePages);
        match self.drift[zone] {
            Some(mark) if plain < mark => self.snapshot(zone, ZoneItem::FreePages),
            _ => plain,
        }
    }

    /// kswapd of a node wakes or sleeps: thresholds of its zones with a drift mark become small or normal.
    pub fn set_pressure(&mut self, node: usize, awake: bool, zones: &[ZoneSize]) {
        self.pressure[node] = awake;
        self.set_thresholds(zones);
    }

    /// Sets all thresholds; done at boot, when a CPU goes online or offline, and when watermarks change.
    pub(crate) fn set_thresholds(&mut self, zones: &[ZoneSize]) {
        let online = self.online_list.len() as u64;
        for &zone in &self.populated {
            let at = &zones[zone];
            let normal = self.rules.threshold.unwrap_or_else(|| threshold::normal(online, at.managed));
            let mark = threshold::drift_mark(online, normal, [at.min, at.low, at.high]);
            // A mark that was set once stays.
            let early = (self.rules.early_drift_marks && online > 1).then_some(online * u64::from(normal));
            self.drift[zone] = mark.or(self.drift[zone]).or(early);
            let threshold = match self.drift[zone] {
                Some(_) if self.pressure[at.node] => threshold::pressure(online, at.low, at.min),
                _ => normal,
            };
            self.zone.set_threshold(zone, threshold);
            self.numa.zone_threshold(zone, threshold);
        }
    }

    /// The fold of a CPU (`refresh_cpu_vm_stats`); true if it had anything to add.
    pub fn fold(&mut self, cpu: u32) -> bool {
        let mut changed = false;
        for at in 0..self.populated.len() {
            let zone = self.populated[at];
            if self.zone.fold(zone, cpu) | self.numa.fold(zone, cpu) {
                self.lines.write(zone, cpu);
                changed = true;
            }
        }
        changed
    }

    /// True if a CPU has something to fold, as far as the kernel checks.
    pub fn needs_update(&self, cpu: u32) -> bool {
        self.zone.pending(cpu, ZONE_ITEMS) || self.numa.needs_update(cpu)
    }

    /// Names of counters whose total is negative after every CPU has folded (`vm.stat_refresh`). Kernel 4.13 refuses
    /// the write then, later ones warn.
    pub fn refresh(&mut self) -> Vec<&'static str> {
        for at in 0..self.online_list.len() {
            self.fold(self.online_list[at]);
        }
        let free = (self.zone.system(ZoneItem::FreePages as usize) < 0).then_some("nr_free_pages");
        free.into_iter().chain(self.numa.negative().into_iter().map(NumaItem::name)).collect()
    }

    /// Sets the switch `vm.numa_stat`; the kernel's log message, or `None` if nothing changes.
    pub fn set_numa_stat(&mut self, enabled: bool) -> Option<&'static str> {
        self.numa.set_enabled(enabled, &self.online_list)
    }

    /// A CPU goes offline: its differentials are folded. Its per-CPU lists must be empty.
    pub fn set_offline(&mut self, cpu: u32, zones: &[ZoneSize]) {
        for at in 0..self.populated.len() {
            let zone = self.populated[at];
            if self.zone.fold(zone, cpu) | self.numa.offline(zone, cpu) {
                self.lines.write(zone, cpu);
            }
        }
        self.set_running(cpu, false, zones);
    }

    /// A CPU starts.
    pub fn set_online(&mut self, cpu: u32, zones: &[ZoneSize]) {
        self.set_running(cpu, true, zones);
    }

    fn set_running(&mut self, cpu: u32, running: bool, zones: &[ZoneSize]) {
        self.online[cpu as usize] = running;
        self.online_list = (0..self.cpus()).filter(|&cpu| self.online[cpu as usize]).collect();
        self.set_thresholds(zones);
    }

    /// True if a CPU runs.
    pub fn is_online(&self, cpu: u32) -> bool {
        self.online.get(cpu as usize) == Some(&true)
    }

    /// Populated zones.
    pub fn populated(&self) -> &[usize] {
        &self.populated
    }
}
