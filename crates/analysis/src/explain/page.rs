//! One page: its hinting faults, migrations and refusals, and the frames it was in.

use super::faults::{Faults, since};
use super::figures::{self, seconds};
use super::names::{Names, PAGE, Place};
use super::{Step, Steps};
use mmtwin_event::names::MIGRATE_REASON;
use mmtwin_event::rules::Rule;
use mmtwin_event::value::Hex;
use mmtwin_event::vocabulary::{
    MmMigratePages, MmPageAlloc, MmPageFree, NumaHintFault, NumaMigrateRefused, PageFaultUser, RemoveMigrationPte,
    SetMigrationPte,
};
use mmtwin_event::{Event, Kind};
use std::ops::Range;

/// Bits of a page-table entry that hold the frame, on x86-64 and arm64 with pages of 4 KiB.
const FRAME_BITS: u64 = (1 << 40) - 1;

/// State of a page while its events are read.
pub(super) struct Page {
    place: Place,
    /// The frame it is in.
    pfn: Option<u64>,
    /// It is known to be in that frame; otherwise the user named the frame.
    is_in: bool,
    /// The last allocation of the frame before the first fault.
    allocated: Option<Step>,
    first: Option<u64>,
    nid: Option<i32>,
    /// When it came to its node, and why.
    came: Option<(u64, String)>,
    /// Faults since it came.
    faults: Faults,
    freed: Option<u64>,
    /// The task that migrates it.
    migrating: Option<i32>,
}

/// Frames of an allocation or free; true: an allocation.
pub(super) fn allocation(ev: &Event<'_>) -> Option<(Range<u64>, bool)> {
    let (pfn, order, is_alloc) = match ev.kind {
        Kind::MmPageAlloc => {
            let of: MmPageAlloc = ev.typed();
            (of.pfn?, of.order, true)
        }
        Kind::MmPageFree => {
            let of: MmPageFree = ev.typed();
            (of.pfn?, of.order, false)
        }
        _ => return None,
    };
    Some((pfn..pfn.checked_add(1u64.checked_shl(order)?)?, is_alloc))
}

/// Addresses of an entry that a migration replaces or puts back, and the entry if it is put back.
pub(super) fn migration(ev: &Event<'_>) -> Option<(Range<u64>, Option<u64>)> {
    let (Hex(addr), order, pte) = match ev.kind {
        Kind::SetMigrationPte => {
            let of: SetMigrationPte = ev.typed();
            (of.addr, of.order, None)
        }
        Kind::RemoveMigrationPte => {
            let of: RemoveMigrationPte = ev.typed();
            (of.addr, of.order, Some(of.pte.0))
        }
        _ => return None,
    };
    let bytes = PAGE.checked_shl(u32::try_from(order).ok().filter(|order| *order < 32)?)?;
    Some((addr..addr.checked_add(bytes)?, pte))
}

/// Addresses that a migration or a page fault is about.
pub(super) fn touched(ev: &Event<'_>) -> Option<Range<u64>> {
    if ev.kind == Kind::PageFaultUser {
        let page = ev.typed::<PageFaultUser>().address / PAGE * PAGE;
        return Some(page..page.checked_add(PAGE)?);
    }
    migration(ev).map(|(bytes, _)| bytes)
}

impl Page {
    pub(super) fn new(place: Place, asked: Option<u64>) -> Page {
        Page {
            place,
            pfn: asked,
            is_in: false,
            allocated: None,
            first: None,
            nid: None,
            came: None,
            faults: Faults::default(),
            freed: None,
            migrating: None,
        }
    }

    pub(super) fn event(&mut self, ev: &Event<'_>, names: &Names, steps: &mut Steps) {
        match ev.kind {
            Kind::NumaHintFault => self.fault(ev, &ev.typed(), names, steps),
            Kind::NumaMigrateRefused => {
                let of: NumaMigrateRefused = ev.typed();
                let has = |pfn: u64| (of.pfn..of.pfn.saturating_add(of.nr_pages.into())).contains(&pfn);
                if self.is_in && self.pfn.is_some_and(has) {
                    let by = Rule::of(of.rule);
                    self.faults.refuse(&of);
                    let what = format!("migration to node {} failed: {}", of.dst_nid, figures::refused(&of, by));
                    steps.push(Step::new(ev.ts, ev.kind, by, what).like([of.dst_nid.into(), 0, 0, 0]));
                }
            }
            Kind::MmPageAlloc | Kind::MmPageFree => self.allocation(ev, names, steps),
            Kind::SetMigrationPte | Kind::RemoveMigrationPte => self.entry(ev, names, steps),
            Kind::PageFaultUser => self.page_fault(ev, names, steps),
            Kind::MmMigratePages if self.migrating == Some(ev.pid) => self.migrated(ev, names, steps),
            _ => {}
        }
    }

    fn fault(&mut self, ev: &Event<'_>, of: &NumaHintFault, names: &Names, steps: &mut Steps) {
        let Some(inside) = names.offset(&self.place, of.tgid, of.addr.0, of.nr_pages) else { return };
        let (before, after) = (of.pfn.wrapping_add(inside), of.new_pfn.wrapping_add(inside));
        if self.first.is_none() {
            self.allocated.take().filter(|_| self.pfn == Some(before)).into_iter().for_each(|step| steps.push(step));
            self.first = Some(ev.ts);
        } else if self.pfn.is_some_and(|pfn| pfn != before) {
            let what = format!("it is in frame {before:#x} now, but no hinting fault moved it: it was mapped again");
            steps.push(Step::new(ev.ts, ev.kind, None, what));
            (self.came, self.faults) = (None, Faults::default());
        }
        (self.pfn, self.is_in, self.freed) = (Some(after), true, None);
        self.nid = Some(if of.migrated { of.dst_nid } else { of.src_nid });
        let by = Rule::of(of.rule);
        let (src, dst) = (of.src_nid, of.dst_nid);
        let who = format!("{} on CPU {}, node {dst}, accesses it", names.task(ev.pid), ev.cpu);
        let unit = if of.nr_pages > 1 { format!(" as one of {} pages", of.nr_pages) } else { String::new() };
        let becomes = match (src == dst, of.wanted, of.migrated) {
            (true, ..) => "it is local".to_string(),
            (_, _, true) => format!("it is migrated{unit} from node {src}, frame {before:#x}, to frame {after:#x}"),
            (_, true, false) => format!("its migration{unit} from node {src} fails"),
            (_, false, false) => format!("it is not migrated from node {src}"),
        };
        let figures = figures::fault(of, by, names);
        let figures = if figures.is_empty() { figures } else { format!(": {figures}") };
        steps.push(Step::new(ev.ts, ev.kind, by, format!("{who}; {becomes}{figures}")).like([
            src.into(),
            dst.into(),
            of.wanted.into(),
            if of.migrated { ev.ts as i64 } else { 0 },
        ]));
        if of.migrated {
            let rule = by.map_or(String::new(), |by| format!(" ({})", figures::rule(by)));
            let whose = names.task(ev.pid);
            self.came = Some((ev.ts, format!("migrated from node {src} on a fault of {whose}{rule}{figures}")));
            self.faults = Faults::default();
        } else {
            self.faults.add(ev.ts, of);
        }
    }

    fn allocation(&mut self, ev: &Event<'_>, names: &Names, steps: &mut Steps) {
        let Some((pages, is_alloc)) = allocation(ev) else { return };
        if !self.pfn.is_some_and(|pfn| pages.contains(&pfn)) {
            return;
        }
        let what = if is_alloc { "allocates" } else { "frees" };
        let count = pages.end - pages.start;
        let step = Step::new(
            ev.ts,
            ev.kind,
            None,
            format!("{} on CPU {} {what} its frame ({count} pages)", names.task(ev.pid), ev.cpu),
        );
        match self.place {
            Place::Frame(_) => steps.push(step),
            _ if self.first.is_none() => self.allocated = is_alloc.then_some(step),
            _ if !is_alloc => {
                self.freed = Some(ev.ts);
                self.is_in = false;
                steps.push(step);
            }
            _ => {}
        }
        if let Place::Frame(_) = self.place {
            self.first.get_or_insert(ev.ts);
            self.freed = (!is_alloc).then_some(ev.ts);
        }
    }

    /// True if an event of a task is of the page's address space.
    fn is_of(&self, ev: &Event<'_>, names: &Names) -> Option<u64> {
        let Place::Address(tgid, addr) = self.place else { return None };
        let group = names.tgid(ev.pid);
        (tgid == if group != 0 { group } else { ev.pid }).then_some(addr)
    }

    /// A page fault of a program for any reason: to the CPU a page with a NUMA hint (PROT_NONE) is not present.
    fn page_fault(&mut self, ev: &Event<'_>, names: &Names, steps: &mut Steps) {
        let of: PageFaultUser = ev.typed();
        if self.is_of(ev, names) != Some(of.address / PAGE * PAGE) {
            return;
        }
        self.first.get_or_insert(ev.ts);
        let why = if of.error_code & 1 == 0 { "not present or PROT_NONE" } else { "protection" };
        let how = if of.error_code & 2 == 0 { "read" } else { "write" };
        let at = names.node_of(ev.cpu).map_or(String::new(), |nid| format!(", node {nid},"));
        let what = format!("{} on CPU {}{at} has a page fault on it: {how}, {why}", names.task(ev.pid), ev.cpu);
        steps.push(Step::new(ev.ts, ev.kind, None, what));
    }

    fn entry(&mut self, ev: &Event<'_>, names: &Names, steps: &mut Steps) {
        let (Some((pages, pte)), Some(addr)) = (migration(ev), self.is_of(ev, names)) else { return };
        if !pages.contains(&addr) {
            return;
        }
        self.first.get_or_insert(ev.ts);
        let who = names.task(ev.pid);
        let what = match pte {
            None => format!("{who} on CPU {} unmaps it for migration", ev.cpu),
            Some(pte) => format!("{who} on CPU {} maps it in frame {:#x}", ev.cpu, pte >> 12 & FRAME_BITS),
        };
        if let Some(pte) = pte {
            self.pfn = Some((pte >> 12 & FRAME_BITS).wrapping_add((addr - pages.start) / PAGE));
            self.migrating = Some(ev.pid);
        }
        steps.push(Step::new(ev.ts, ev.kind, None, what));
    }

    fn migrated(&mut self, ev: &Event<'_>, names: &Names, steps: &mut Steps) {
        self.migrating = None;
        let of: MmMigratePages = ev.typed();
        let reason = MIGRATE_REASON.word(of.reason.0.into());
        let numa = reason == crate::numa::NUMA_MISPLACED;
        let nid = names.node_of(ev.cpu).filter(|_| numa);
        let to = nid.map_or(String::new(), |nid| format!(", to node {nid} of the access"));
        let what =
            format!("migration ends: {} pages migrated, {} failed, reason {reason}{to}", of.nr_succeeded, of.nr_failed);
        steps.push(Step::new(ev.ts, ev.kind, None, what));
        if numa && of.nr_succeeded > 0 {
            self.nid = nid.map(|nid| nid as i32);
            self.came =
                Some((ev.ts, format!("migrated on a hinting fault of {} on CPU {}", names.task(ev.pid), ev.cpu)));
        }
    }

    pub(super) fn finish(self, names: &Names) -> String {
        let frame = self.pfn.map_or(String::new(), |pfn| format!(", frame {pfn:#x}"));
        let node = self.nid.map(|nid| format!("on node {nid}{frame}"));
        let mut answer = match (node, &self.came) {
            (Some(node), Some((at, why))) => format!("It is {node} since {}: {why}.", seconds(*at)),
            (Some(node), None) => {
                let at = self.first.map_or(String::new(), |at| format!(" at {}", seconds(at)));
                format!("It is {node}, as at its first recorded fault{at}; no fault migrated it.")
            }
            (None, Some((at, why))) => {
                format!("It is on an unknown node{frame} since {}: {why}.", seconds(*at))
            }
            (None, None) => match names.recorded.has(Kind::NumaHintFault) {
                true => "It had no hinting fault, so NUMA balancing did not migrate it.".to_string(),
                false => "Its node, and why it is there, were not recorded.".to_string(),
            },
        };
        let from = self.came.as_ref().map(|(at, _)| *at).or(self.first);
        answer.push_str(&from.map_or(String::new(), |at| since(at, &self.faults)));
        if let Some(at) = self.freed {
            answer.push_str(&format!(" It was freed at {}.", seconds(at)));
        }
        answer
    }
}
