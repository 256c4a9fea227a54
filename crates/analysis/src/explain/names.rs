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
/// Candidates that a message lists.
const LISTED: usize = 8;
/// Different pages of one frame that are told apart.
const MAX_PLACES: usize = 64;

/// What is to be explained, as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
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

/// Why nothing is explained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// There is no such thing.
    #[error("{0}")]
    Unknown(String),
    /// The name is of several.
    #[error("{0}")]
    Ambiguous(String),
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
    /// Hinting faults.
    pub faults: u64,
    /// Rows of `/proc/PID/sched`.
    pub samples: u64,
    asked: Option<Asked>,
    /// Pages that the frame asked for held, with the time of the first fault that says so.
    places: BTreeMap<Place, u64>,
    /// The nearest frames below and above it, of pages that faulted.
    nearest: [Option<u64>; 2],
    /// The frame was allocated or freed.
    traced: bool,
    /// Entries for pages in migration name the address that is asked for, by thread group.
    moved: BTreeSet<i32>,
}

impl Names {
    /// A first reading that looks out for what is asked.
    pub fn new(asked: &Asked) -> Names {
        Names { asked: Some(asked.clone()), ..Names::default() }
    }

    /// A task's name as traces print it.
    pub fn task(&self, pid: i32) -> String {
        match self.tasks.get(pid).map(|task| task.name()) {
            Some(name) if pid != 0 => format!("{name}-{pid}"),
            _ => pid.to_string(),
        }
    }

    /// Node of a CPU.
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        self.source.cpu_nodes.get(cpu as usize).copied()
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
            Some(Asked::Frame(pfn)) => Some(pfn),
            _ => None,
        }
    }

    /// What a subject is called.
    pub fn title(&self, subject: &Subject) -> String {
        match subject {
            Subject::Page(place) => format!("page {}", self.page_title(place)),
            Subject::Task(pid) => format!("task {}", self.task(*pid)),
            Subject::Group(gid) => format!("NUMA group {gid} (made by {})", self.task(*gid)),
        }
    }

    fn page_title(&self, place: &Place) -> String {
        match place {
            Place::Region(region, page) => match self.mappings.iter().find(|of| of.region == *region) {
                Some(of) => format!("{}:{:#x}", of.name, page * PAGE),
                None => format!("{page} of region {region}"),
            },
            Place::Address(tgid, addr) => format!("{}@{addr:#x}", self.task(*tgid)),
            Place::Frame(pfn) => format!("frame {pfn:#x}"),
        }
    }

    /// Finds what was asked for.
    pub fn find(&self) -> Result<Subject, NotFound> {
        match self.asked.as_ref() {
            Some(Asked::Task(name)) => self.find_task(name),
            Some(Asked::Group(name)) => self.find_group(name),
            Some(Asked::Frame(pfn)) => self.find_frame(*pfn),
            Some(Asked::Address(process, addr)) => self.find_address(process, *addr),
            Some(Asked::Offset(region, offset)) => self.find_offset(region, *offset),
            None => Err(NotFound::Unknown("nothing is asked for".into())),
        }
    }

    fn find_task(&self, name: &str) -> Result<Subject, NotFound> {
        if let Some(pid) = name.parse::<i32>().ok().filter(|pid| self.tasks.get(*pid).is_some()) {
            return Ok(Subject::Task(pid));
        }
        let pids: BTreeSet<i32> =
            self.tasks.iter().filter(|task| task.comm() == name.as_bytes()).map(|task| task.pid).collect();
        match (pids.first(), pids.len()) {
            (Some(pid), 1) => Ok(Subject::Task(*pid)),
            (Some(_), n) => Err(NotFound::Ambiguous(format!(
                "{n} tasks are named `{name}`: --task with a thread id ({})",
                listed(pids.iter())
            ))),
            (None, _) => {
                let known: BTreeSet<i32> = self.tasks.iter().map(|task| task.pid).filter(|pid| *pid != 0).collect();
                let names: BTreeSet<String> =
                    self.tasks.iter().filter(|task| task.pid != 0).map(|task| task.name()).collect();
                let near = mmtwin_event::words::nearest(name, names.iter().map(String::as_str));
                let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                let tasks = listed(known.iter().map(|pid| self.task(*pid)));
                Err(NotFound::Unknown(match known.is_empty() {
                    true => format!("no task `{name}`: the recording has no tasks"),
                    false => format!("no task `{name}`; there are {} tasks: {tasks}{near}", known.len()),
                }))
            }
        }
    }

    fn find_group(&self, name: &str) -> Result<Subject, NotFound> {
        let number = name.parse::<i32>().ok();
        if let Some(gid) = number.filter(|gid| self.groups.contains(gid)) {
            return Ok(Subject::Group(gid));
        }
        if self.groups.is_empty() {
            let how = "groups are named by sched:sched_*_numa, sched:update_numa_active_nodes_mask and mmtwin:numa_group";
            return Err(NotFound::Unknown(format!("no NUMA group `{name}`: the recording names none; {how}")));
        }
        let groups = listed(self.groups.iter());
        let member = number.and_then(|pid| Some((pid, self.group_of.get(&pid)?)));
        let hint = member.map_or(String::new(), |(pid, gid)| format!("; task {pid} was in group {gid}"));
        Err(NotFound::Unknown(format!(
            "no NUMA group `{name}`; there are {} groups: {groups}{hint}",
            self.groups.len()
        )))
    }

    /// How to record pages, and what was recorded of them.
    fn pages_recorded(&self) -> String {
        if self.faults == 0 {
            let how = "pages are named by mmtwin:numa_hint_fault (the twin), migrate:set_migration_pte with \
                       migrate:remove_migration_pte and kmem:mm_page_alloc";
            return format!("the recording has no hinting faults; {how}");
        }
        let regions = listed(self.mappings.iter().filter(|of| of.faults > 0).map(|of| {
            let pages = (of.end - of.start) / PAGE;
            format!("{} ({pages} pages, {} faults)", of.name, of.faults)
        }));
        format!("the recording has {} hinting faults on pages of {regions}", self.faults)
    }

    fn find_frame(&self, pfn: u64) -> Result<Subject, NotFound> {
        let mut places = self.places.iter();
        match (places.next(), self.places.len()) {
            (Some((place, _)), 1) => Ok(Subject::Page(*place)),
            (Some(_), n) => {
                let at = |(place, at): (&Place, &u64)| {
                    format!("{} (from {})", self.page_title(place), super::figures::seconds(*at))
                };
                let places = listed(self.places.iter().map(at));
                Err(NotFound::Ambiguous(format!("frame {pfn:#x} held {n} pages one after another: --page {places}")))
            }
            (None, _) if self.traced => Ok(Subject::Page(Place::Frame(pfn))),
            (None, _) => {
                let near: Vec<String> = self.nearest.iter().flatten().map(|pfn| format!("{pfn:#x}")).collect();
                let near = match near.is_empty() {
                    true => String::new(),
                    false => format!("; the nearest frames of pages that faulted are {}", near.join(" and ")),
                };
                Err(NotFound::Unknown(format!("no page in frame {pfn:#x}: {}{near}", self.pages_recorded())))
            }
        }
    }

    /// Thread groups of a process by name or id.
    fn processes(&self, name: &str) -> BTreeSet<i32> {
        let own: BTreeSet<i32> =
            self.mappings.iter().filter(|of| of.name.split('/').next() == Some(name)).map(|of| of.tgid).collect();
        if !own.is_empty() {
            return own;
        }
        let number = name.parse::<i32>().ok();
        let is = |task: &&crate::tasks::Task| number == Some(task.pid) || task.comm() == name.as_bytes();
        let group = |task: &crate::tasks::Task| if task.tgid != 0 { task.tgid } else { task.pid };
        self.tasks.iter().filter(is).map(group).collect()
    }

    fn find_address(&self, process: &str, addr: u64) -> Result<Subject, NotFound> {
        let groups = self.processes(process);
        let tgid = match (groups.first(), groups.len()) {
            (Some(tgid), 1) => *tgid,
            (Some(_), _) => {
                let groups = listed(groups.iter());
                return Err(NotFound::Ambiguous(format!("several processes are named `{process}`: {groups}")));
            }
            (None, _) => {
                let known: BTreeSet<String> = self.mappings.iter().map(|of| self.task(of.tgid)).collect();
                let known = if known.is_empty() { String::new() } else { format!("; there are {}", listed(known.iter())) };
                return Err(NotFound::Unknown(format!("no process `{process}`{known}")));
            }
        };
        let place = self.place(tgid, addr);
        match place {
            Place::Region(..) => Ok(Subject::Page(place)),
            Place::Address(..) if self.places.contains_key(&place) || self.moved.contains(&tgid) => {
                Ok(Subject::Page(place))
            }
            _ => {
                let own = self.mappings.iter().filter(|of| of.tgid == tgid);
                let own = listed(own.map(|of| format!("{} at {:#x}-{:#x}", of.name, of.start, of.end)));
                let own = match own.is_empty() {
                    true => self.pages_recorded(),
                    false => format!("{process} has {own}"),
                };
                Err(NotFound::Unknown(format!("no page of {process} at {addr:#x}: {own}")))
            }
        }
    }

    fn find_offset(&self, region: &str, offset: u64) -> Result<Subject, NotFound> {
        let fits = |of: &&Mapping| of.name == region || of.name.split_once('/').is_some_and(|(_, name)| name == region);
        let found: BTreeMap<u32, &Mapping> = self.mappings.iter().filter(fits).map(|of| (of.region, of)).collect();
        match (found.first_key_value(), found.len()) {
            (Some((_, of)), 1) if offset < of.end - of.start => {
                Ok(Subject::Page(Place::Region(of.region, offset / PAGE)))
            }
            (Some((_, of)), 1) => Err(NotFound::Unknown(format!(
                "{} has no byte {offset:#x}: it is {:#x} bytes long",
                of.name,
                of.end - of.start
            ))),
            (Some(_), _) => {
                let found = listed(found.values().map(|of| &of.name));
                Err(NotFound::Ambiguous(format!("several regions are named `{region}`: {found}")))
            }
            (None, _) if self.mappings.is_empty() => Err(NotFound::Unknown(format!(
                "no region `{region}`: the recording does not name regions; mmtwin:numa_mapping does (the twin), \
                 otherwise say PROCESS@ADDRESS or a frame"
            ))),
            (None, _) => {
                let names: BTreeSet<&str> = self.mappings.iter().map(|of| of.name.as_str()).collect();
                let names = listed(names.iter());
                Err(NotFound::Unknown(format!("no region `{region}`; there are {names}")))
            }
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
            Some(Asked::Frame(pfn)) => {
                for first in [of.pfn, of.new_pfn] {
                    let end = first + u64::from(of.nr_pages);
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
                        self.nearest[0] = self.nearest[0].max(Some(end - 1));
                    } else {
                        self.nearest[1] = Some(self.nearest[1].map_or(first, |near| near.min(first)));
                    }
                }
            }
            Some(Asked::Address(_, addr)) => {
                let page = Place::Address(of.tgid, addr / PAGE * PAGE);
                if self.offset(&page, of.tgid, of.addr.0, of.nr_pages).is_some() {
                    self.places.entry(page).or_insert(at);
                }
            }
            _ => {}
        }
    }
}

/// Names for a message, the first of them.
fn listed(names: impl Iterator<Item = impl ToString>) -> String {
    let names: Vec<String> = names.map(|name| name.to_string()).collect();
    let more = names.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names[..names.len().min(LISTED)].join(", "))
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
            }
            Kind::SchedStickNuma => {
                let of: SchedStickNuma = ev.typed();
                self.tasks.announce(of.src_pid, of.src_tgid, b"");
                self.group(of.src_ngid, of.src_pid);
            }
            Kind::SchedSwapNuma => {
                let of: SchedSwapNuma = ev.typed();
                for (pid, tgid, ngid) in [(of.src_pid, of.src_tgid, of.src_ngid), (of.dst_pid, of.dst_tgid, of.dst_ngid)]
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
                if let Some(Asked::Frame(wanted)) = self.asked {
                    self.traced |= super::page::allocation(ev).is_some_and(|(pages, _)| pages.contains(&wanted));
                }
            }
            Kind::SetMigrationPte | Kind::RemoveMigrationPte => {
                if let Some(Asked::Address(_, wanted)) = self.asked
                    && super::page::migration(ev).is_some_and(|(pages, _)| pages.contains(&wanted))
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
