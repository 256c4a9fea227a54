//! What a recording has pages, tasks and groups of, and which of them is meant.

use crate::recorded::Recorded;
use crate::tasks::Tasks;
use mmtwin_event::vocabulary::{
    NumaGroup, NumaHintFault, NumaMapping, NumaPlacement, SchedMoveNuma, SchedStickNuma, SchedSwapNuma,
    UpdateNumaActiveNodesMask,
};
use mmtwin_event::{CounterRow, Event, Kind, Order, Sink, Source};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Mappings and groups kept; more can only come from a damaged file.
const MAX_NAMES: usize = 1 << 16;
/// Different pages of one frame that are distinguished.
const MAX_PLACES: usize = 64;

/// What is to be explained, as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The page that a frame holds.
    Frame(u64),
    /// The page at an address of a process, by its name or thread group id.
    Address(String, u64),
    /// The page at an offset in bytes of a region: `REGION`, or `PROCESS/REGION`.
    Offset(String, u64),
    /// A task, by thread id or name.
    Task(String),
    /// A NUMA group, by its id.
    Group(String),
}

/// What is to be explained, as the recording knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A page.
    Page(Place),
    /// A task, by its thread id.
    Task(i32),
    /// A group, by its id.
    Group(i32),
}

/// Which page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A page of a region, by the region's number and the page's in it.
    Region(u32, u64),
    /// The page of a process (thread group) that holds an address.
    Address(i32, u64),
    /// Whatever a frame holds: nothing says whose page that is.
    Frame(u64),
}

/// A region as a process has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Thread group.
    pub tgid: i32,
    /// First address.
    pub start: u64,
    /// Behind the last.
    pub end: u64,
    /// Number of the region.
    pub region: u32,
    /// `PROCESS/REGION`.
    pub name: String,
    /// Hinting faults on its pages.
    pub faults: u64,
}

/// What there is, from a first reading.
#[derive(Debug, Default)]
pub struct Names {
    /// What the input says of itself.
    pub source: Source,
    /// Which events it has.
    pub recorded: Recorded,
    /// Who ran.
    pub tasks: Tasks,
    /// Regions of processes.
    pub mappings: Vec<Mapping>,
    /// Ids of groups.
    pub groups: BTreeSet<i32>,
    /// Groups in which a task was, by its thread id: the last one.
    pub group_of: BTreeMap<i32, i32>,
    /// Nodes of CPUs that events name.
    nodes: BTreeMap<u32, u32>,
    /// Hinting faults.
    pub faults: u64,
    /// Rows of `/proc/PID/sched`.
    pub samples: u64,
    pub(super) asked: Option<Query>,
    /// Pages that the frame asked for held, with the time of the first fault that reports it.
    pub(super) places: BTreeMap<Place, u64>,
    /// The nearest frames below and above it, of pages that faulted.
    pub(super) nearest: [Option<u64>; 2],
    /// The frame was allocated or freed.
    pub(super) traced: bool,
    /// Entries for pages in migration name the address that is asked for, by thread group.
    pub(super) moved: BTreeSet<i32>,
}

impl Names {
    /// A first reading that looks out for what is asked.
    pub fn new(asked: &Query) -> Names {
        Names { asked: Some(asked.clone()), ..Names::default() }
    }

    /// A task's name as traces print it.
    pub fn task(&self, pid: i32) -> String {
        match self.tasks.get(pid).map(|task| task.name()) {
            Some(name) if pid != 0 => format!("{name}-{pid}"),
            _ => pid.to_string(),
        }
    }

    /// Node of a CPU, as the input or one of its events says it.
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        self.source.cpu_nodes.get(cpu as usize).or_else(|| self.nodes.get(&cpu)).copied()
    }

    /// Thread group of a task, 0 if not known.
    pub fn tgid(&self, pid: i32) -> i32 {
        self.tasks.get(pid).map_or(0, |task| task.tgid)
    }

    /// The page of an address.
    pub fn place(&self, tgid: i32, addr: u64) -> Place {
        match self.mappings.iter().find(|of| of.tgid == tgid && (of.start..of.end).contains(&addr)) {
            Some(of) => Place::Region(of.region, (addr - of.start) / PAGE),
            None => Place::Address(tgid, addr / PAGE * PAGE),
        }
    }

    /// Which of `pages` pages from an address on a place is, counted from 0.
    pub fn offset(&self, place: &Place, tgid: i32, addr: u64, pages: u32) -> Option<u64> {
        let inside = match (self.place(tgid, addr), place) {
            (Place::Region(region, first), Place::Region(wanted, page)) if region == *wanted => page.checked_sub(first),
            (Place::Address(_, first), Place::Address(of, at)) if tgid == *of => {
                at.checked_sub(first).map(|bytes| bytes / PAGE)
            }
            _ => None,
        };
        inside.filter(|inside| *inside < u64::from(pages))
    }

    /// The frame that was asked for.
    pub(super) fn frame(&self) -> Option<u64> {
        match self.asked {
            Some(Query::Frame(pfn)) => Some(pfn),
            _ => None,
        }
    }

    /// What a subject is called.
    pub fn title(&self, subject: &Subject) -> String {
        match subject {
            Subject::Page(place) => format!("page {}", self.page_title(place)),
            Subject::Task(pid) => format!("task {}", self.task(*pid)),
            Subject::Group(gid) => format!("NUMA group {gid} (created by {})", self.task(*gid)),
        }
    }

    pub(super) fn page_title(&self, place: &Place) -> String {
        match place {
            Place::Region(region, page) => match self.mappings.iter().find(|of| of.region == *region) {
                Some(of) => format!("{}:{:#x}", of.name, page * PAGE),
                None => format!("{page} of region {region}"),
            },
            Place::Address(tgid, addr) => format!("{}@{addr:#x}", self.task(*tgid)),
            Place::Frame(pfn) => format!("frame {pfn:#x}"),
        }
    }

    fn cpu(&mut self, cpu: i32, nid: i32) {
        if let (Ok(cpu), Ok(nid)) = (u32::try_from(cpu), u32::try_from(nid))
            && self.nodes.len() < MAX_NAMES
        {
            self.nodes.insert(cpu, nid);
        }
    }

    fn group(&mut self, gid: i32, pid: i32) {
        if gid > 0 && self.groups.len() < MAX_NAMES && self.group_of.len() < MAX_NAMES {
            self.groups.insert(gid);
            if pid > 0 {
                self.group_of.insert(pid, gid);
            }
        }
    }

    fn fault(&mut self, at: u64, of: &NumaHintFault) {
        self.faults += 1;
        self.group(of.gid, 0);
        let place = self.place(of.tgid, of.addr.0);
        if let Place::Region(region, _) = place
            && let Some(mapping) = self.mappings.iter_mut().find(|m| m.region == region && m.tgid == of.tgid)
        {
            mapping.faults += 1;
        }
        match self.asked {
            Some(Query::Frame(pfn)) => {
                for first in [of.pfn, of.new_pfn] {
                    let end = first.saturating_add(of.nr_pages.into());
                    if (first..end).contains(&pfn) {
                        let inside = pfn - first;
                        let place = match place {
                            Place::Region(region, page) => Place::Region(region, page + inside),
                            Place::Address(tgid, addr) => Place::Address(tgid, addr + inside * PAGE),
                            frame => frame,
                        };
                        if self.places.len() < MAX_PLACES {
                            self.places.entry(place).or_insert(at);
                        }
                    } else if end <= pfn {
                        self.nearest[0] = self.nearest[0].max(end.checked_sub(1));
                    } else {
                        self.nearest[1] = Some(self.nearest[1].map_or(first, |near| near.min(first)));
                    }
                }
            }
            Some(Query::Address(_, addr)) => {
                let page = Place::Address(of.tgid, addr / PAGE * PAGE);
                if self.offset(&page, of.tgid, of.addr.0, of.nr_pages).is_some() {
                    self.places.entry(page).or_insert(at);
                }
            }
            _ => {}
        }
    }
}

impl Sink for Names {
    fn start(&mut self, source: &Source) {
        self.source = source.clone();
        self.recorded.start(source);
    }

    fn task(&mut self, task: &mmtwin_event::Task<'_>) {
        self.tasks.announce(task.pid, task.tgid, task.comm);
    }

    fn order(&self, _: Kind) -> Order {
        Order::Task
    }

    fn event(&mut self, ev: &Event<'_>) {
        self.recorded.saw(ev.kind);
        self.tasks.of(ev);
        match ev.kind {
            Kind::NumaMapping if self.mappings.len() < MAX_NAMES => {
                let of: NumaMapping = ev.typed();
                let (tgid, start, end) = (of.tgid, of.vm_start.0, of.vm_end.0.max(of.vm_start.0));
                let name = String::from_utf8_lossy(of.region.bytes(ev)).into_owned();
                self.mappings.push(Mapping { tgid, start, end, region: of.region_id, name, faults: 0 });
            }
            Kind::NumaHintFault => self.fault(ev.ts, &ev.typed()),
            Kind::NumaGroup => {
                let of: NumaGroup = ev.typed();
                self.group(of.gid, of.pid);
                self.group(of.other_gid, of.other_pid);
            }
            Kind::NumaPlacement => {
                let of: NumaPlacement = ev.typed();
                self.group(of.gid, of.pid);
            }
            Kind::SchedMoveNuma => {
                let of: SchedMoveNuma = ev.typed();
                self.tasks.announce(of.pid, of.tgid, b"");
                self.group(of.ngid, of.pid);
                self.cpu(of.src_cpu, of.src_nid);
                self.cpu(of.dst_cpu, of.dst_nid);
            }
            Kind::SchedStickNuma => {
                let of: SchedStickNuma = ev.typed();
                self.tasks.announce(of.src_pid, of.src_tgid, b"");
                self.group(of.src_ngid, of.src_pid);
                self.cpu(of.src_cpu, of.src_nid);
            }
            Kind::SchedSwapNuma => {
                let of: SchedSwapNuma = ev.typed();
                self.cpu(of.src_cpu, of.src_nid);
                self.cpu(of.dst_cpu, of.dst_nid);
                for (pid, tgid, ngid) in
                    [(of.src_pid, of.src_tgid, of.src_ngid), (of.dst_pid, of.dst_tgid, of.dst_ngid)]
                {
                    self.tasks.announce(pid, tgid, b"");
                    self.group(ngid, pid);
                }
            }
            Kind::UpdateNumaActiveNodesMask => {
                let of: UpdateNumaActiveNodesMask = ev.typed();
                self.group(of.gid, of.pid);
            }
            Kind::MmPageAlloc | Kind::MmPageFree => {
                if let Some(Query::Frame(wanted)) = self.asked {
                    self.traced |= super::page::allocation(ev).is_some_and(|(pages, _)| pages.contains(&wanted));
                }
            }
            Kind::SetMigrationPte | Kind::RemoveMigrationPte | Kind::PageFaultUser => {
                if let Some(Query::Address(_, wanted)) = self.asked
                    && super::page::touched(ev).is_some_and(|bytes| bytes.contains(&wanted))
                {
                    let tgid = self.tasks.of(ev).tgid;
                    self.moved.insert(if tgid != 0 { tgid } else { ev.pid });
                }
            }
            _ => {}
        }
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        if row.source == "sched" {
            self.samples += 1;
        }
    }
}
