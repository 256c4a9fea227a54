//! Which page, task or group of a recording is meant, or what there is instead.

use super::figures::{count, seconds};
use super::names::{Mapping, Names, PAGE, Place, Query, Subject};
use mmtwin_event::words::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// Candidates that a message lists.
const LISTED: usize = 8;

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

impl Names {
    /// Finds what was asked for.
    pub fn find(&self) -> Result<Subject, NotFound> {
        match self.asked.as_ref() {
            Some(Query::Task(name)) => self.find_task(name),
            Some(Query::Group(name)) => self.find_group(name),
            Some(Query::Frame(pfn)) => self.find_frame(*pfn),
            Some(Query::Address(process, addr)) => self.find_address(process, *addr),
            Some(Query::Offset(region, offset)) => self.find_offset(region, *offset),
            None => Err(NotFound::Unknown("no page, task or group is specified".into())),
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
                "{n} tasks are named `{name}`; specify --task with a thread id: {}",
                listed(pids.iter())
            ))),
            (None, _) => {
                let known: BTreeSet<i32> = self.tasks.iter().map(|task| task.pid).filter(|pid| *pid != 0).collect();
                let names: BTreeSet<String> =
                    self.tasks.iter().filter(|task| task.pid != 0).map(|task| task.name()).collect();
                let near = nearest(name, names.iter().map(String::as_str));
                let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                let tasks = listed(known.iter().map(|pid| self.task(*pid)));
                Err(NotFound::Unknown(match known.is_empty() {
                    true => format!("no task `{name}`: the recording has no tasks"),
                    false => {
                        format!(
                            "no task `{name}`; the recording has {}: {tasks}{near}",
                            count(known.len() as u64, "task")
                        )
                    }
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
            let how = "record sched:sched_*_numa, sched:update_numa_active_nodes_mask or mmtwin:numa_group";
            return Err(NotFound::Unknown(format!("no NUMA group `{name}`: the recording has none; {how}")));
        }
        let groups = listed(self.groups.iter());
        let member = number.and_then(|pid| Some((pid, self.group_of.get(&pid)?)));
        let hint = member.map_or(String::new(), |(pid, gid)| format!("; task {pid} was in group {gid}"));
        Err(NotFound::Unknown(format!(
            "no NUMA group `{name}`; the recording has {}: {groups}{hint}",
            count(self.groups.len() as u64, "group")
        )))
    }

    /// How to record pages, and what was recorded of them.
    fn pages_recorded(&self) -> String {
        if self.faults == 0 {
            let how = "record mmtwin:numa_hint_fault (the twin), migrate:set_migration_pte with \
                       migrate:remove_migration_pte, exceptions:page_fault_user or kmem:mm_page_alloc";
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
                let at = |(place, at): (&Place, &u64)| format!("{} (from {})", self.page_title(place), seconds(*at));
                let places = listed(self.places.iter().map(at));
                Err(NotFound::Ambiguous(format!(
                    "frame {pfn:#x} held {n} pages one after another; specify --page: {places}"
                )))
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
        let is = |task: &&crate::tasks::Task| {
            number.is_some_and(|id| id == task.pid || id == task.tgid && id != 0) || task.comm() == name.as_bytes()
        };
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
                let known =
                    if known.is_empty() { String::new() } else { format!("; processes: {}", listed(known.iter())) };
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
                "offset {offset:#x} is outside {}, which has {:#x} bytes",
                of.name,
                of.end - of.start
            ))),
            (Some(_), _) => {
                let found = listed(found.values().map(|of| &of.name));
                Err(NotFound::Ambiguous(format!("several regions are named `{region}`: {found}")))
            }
            (None, _) if self.mappings.is_empty() => Err(NotFound::Unknown(format!(
                "no region `{region}`: the recording has no regions; record mmtwin:numa_mapping (the twin), or \
                 specify PROCESS@ADDRESS or a frame"
            ))),
            (None, _) => {
                let names: BTreeSet<&str> = self.mappings.iter().map(|of| of.name.as_str()).collect();
                let names = listed(names.iter());
                Err(NotFound::Unknown(format!("no region `{region}`; regions: {names}")))
            }
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
