//! The accumulators in two halves that take the same events at the same time.
//!
//! The first half has reclaim and what depends on it. The second has subjects that need no other than the task that an
//! event belongs to: it follows the tasks in a copy of its own, and takes the events that move them between contexts of
//! reclaim a second time. An event is counted by the half that has its subject. Both halves hear of every task, so that
//! their lists have the same order.

use crate::alloc::Alloc;
use crate::compaction::Compaction;
use crate::congestion::Congestion;
use crate::filemap::Filemap;
use crate::invariants::Invariants;
use crate::losses::Losses;
use crate::numa::Numa;
use crate::oom::Oom;
use crate::reclaim::{self, Reclaim};
use crate::recorded::Recorded;
use crate::slab::Slab;
use crate::stacks::Stacks;
use crate::subject::Subject;
use crate::tasks::Tasks;
use crate::thp::Thp;
use crate::throttle::Throttle;
use crate::vmalloc::Vmalloc;
use crate::{Analysis, Span};
use mmtwin_event::{Event, Half, Kind, Share};

/// What the second half has beside its subjects, until both are one again.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    recorded: Recorded,
    span: Span,
    tasks: Tasks,
}

/// The first half.
pub(crate) struct First<'a> {
    recorded: &'a mut Recorded,
    span: &'a mut Span,
    tasks: &'a mut Tasks,
    losses: &'a mut Losses,
    reclaim: &'a mut Reclaim,
    congestion: &'a mut Congestion,
    numa: &'a mut Numa,
    stacks: &'a mut Stacks,
    throttle: &'a mut Throttle,
    oom: &'a mut Oom,
    invariants: &'a mut Invariants,
}

/// The subjects of the second half.
pub(crate) struct Second<'a> {
    vmalloc: &'a mut Vmalloc,
    compaction: &'a mut Compaction,
    slab: &'a mut Slab,
    alloc: &'a mut Alloc,
    thp: &'a mut Thp,
    filemap: &'a mut Filemap,
}

/// The second half on a thread of its own.
struct Apart<'a> {
    copies: &'a mut Copies,
    subjects: Second<'a>,
}

impl Analysis {
    #[inline(always)]
    fn divided(&mut self) -> (First<'_>, Second<'_>, &mut Option<Box<Copies>>) {
        let first = First {
            recorded: &mut self.recorded,
            span: &mut self.span,
            tasks: &mut self.tasks,
            losses: &mut self.losses,
            reclaim: &mut self.reclaim,
            congestion: &mut self.congestion,
            numa: &mut self.numa,
            stacks: &mut self.stacks,
            throttle: &mut self.throttle,
            oom: &mut self.oom,
            invariants: &mut self.invariants,
        };
        let second = Second {
            vmalloc: &mut self.vmalloc,
            compaction: &mut self.compaction,
            slab: &mut self.slab,
            alloc: &mut self.alloc,
            thp: &mut self.thp,
            filemap: &mut self.filemap,
        };
        (first, second, &mut self.copies)
    }

    /// Gives an event to both halves, one after the other.
    #[inline(always)]
    pub(crate) fn take(&mut self, ev: &Event<'_>) {
        let (mut first, mut second, _) = self.divided();
        first.recorded.saw(ev.kind);
        first.span.hold(ev.ts);
        first.stacks.event(ev, first.tasks);
        let subject = Subject::of(ev.kind);
        match subject.is_of_second() {
            false => first.subject(subject, ev),
            true => second.subject(subject, ev, first.tasks),
        }
    }

    /// Both halves, to be joined again.
    pub(crate) fn divide(&mut self) -> [Box<dyn Half + '_>; 2] {
        let (first, subjects, copies) = self.divided();
        let copies = copies.insert(Box::new(Copies { tasks: first.tasks.clone(), ..Copies::default() }));
        [Box::new(first), Box::new(Apart { copies, subjects })]
    }

    /// Makes one of two halves that have taken the same events.
    pub(crate) fn unite(&mut self) {
        let Some(copies) = self.copies.take() else { return };
        self.recorded.add(&copies.recorded);
        if let Some(first) = copies.span.first {
            self.span.hold(first);
            self.span.hold(copies.span.last);
        }
        self.tasks.take_shrinking(&copies.tasks);
    }
}

/// True if an event of a kind changes for whom its task reclaims.
fn moves_its_task(kind: Kind) -> bool {
    let kswapd = matches!(kind, Kind::MmVmscanKswapdWake | Kind::MmVmscanKswapdSleep);
    kswapd || reclaim::begins(kind).is_some() || reclaim::ends(kind)
}

impl First<'_> {
    #[inline(always)]
    fn subject(&mut self, subject: Subject, ev: &Event<'_>) {
        match subject {
            Subject::Isolate => {
                let (e, task) = (ev.typed(), self.tasks.of(ev));
                self.reclaim.isolate(&e, task);
                self.invariants.isolate(ev.ts, &e, task.context);
            }
            Subject::ShrinkInactive => {
                let (e, task) = (ev.typed(), self.tasks.of(ev));
                self.reclaim.shrink_inactive(ev.ts, &e, task);
                self.invariants.shrink_inactive(ev.ts, &e, task.context);
            }
            Subject::Reclaim => {
                self.reclaim.event(ev, self.tasks.of(ev), self.losses);
                self.invariants.event(ev);
            }
            Subject::Throttle => self.throttle.event(ev, self.tasks.of(ev)),
            Subject::Congestion => self.congestion.event(ev, self.tasks.of(ev)),
            Subject::Migrate => {
                self.numa.event(ev, self.tasks.of(ev));
                self.invariants.event(ev);
            }
            Subject::Numa => self.numa.event(ev, self.tasks.of(ev)),
            Subject::Oom => self.oom.event(ev),
            Subject::Count if ev.kind == Kind::Other => self.recorded.untyped(ev.name),
            _ => {}
        }
    }
}

impl Second<'_> {
    #[inline(always)]
    fn subject(&mut self, subject: Subject, ev: &Event<'_>, tasks: &mut Tasks) {
        match subject {
            Subject::Slab => self.slab.event(ev, tasks.of(ev)),
            Subject::Compaction => self.compaction.event(ev, tasks.of(ev)),
            Subject::Vmalloc => self.vmalloc.event(ev),
            Subject::Alloc => self.alloc.event(ev),
            Subject::Filemap => self.filemap.event(ev),
            Subject::Thp => self.thp.event(ev),
            _ => {}
        }
    }
}

impl Half for First<'_> {
    fn share(&self, kind: Kind) -> Share {
        let stacks = matches!(kind, Kind::MmCompactionBegin | Kind::MmCompactionEnd) && self.stacks.are_recorded();
        let subject = Subject::of(kind);
        match (!subject.is_of_second() || stacks, subject.names_its_task()) {
            (true, _) => Share::Events,
            (false, true) => Share::Task,
            (false, false) => Share::Nothing,
        }
    }

    fn event(&mut self, ev: &Event<'_>) {
        let subject = Subject::of(ev.kind);
        if subject.is_of_second() {
            self.stacks.event(ev, self.tasks);
            self.tasks.of(ev);
            return;
        }
        self.recorded.saw(ev.kind);
        self.span.hold(ev.ts);
        self.stacks.event(ev, self.tasks);
        self.subject(subject, ev);
    }

    fn ran(&mut self, cpu: u32, pid: i32) -> bool {
        self.tasks.ran(cpu, pid)
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.losses.lost(cpu, events, at);
    }
}

impl Half for Apart<'_> {
    fn share(&self, kind: Kind) -> Share {
        let subject = Subject::of(kind);
        match (subject.is_of_second() || moves_its_task(kind), subject.names_its_task()) {
            (true, _) => Share::Events,
            (false, true) => Share::Task,
            (false, false) => Share::Nothing,
        }
    }

    fn event(&mut self, ev: &Event<'_>) {
        let Copies { recorded, span, tasks } = &mut *self.copies;
        let subject = Subject::of(ev.kind);
        if subject.is_of_second() {
            recorded.saw(ev.kind);
            span.hold(ev.ts);
            self.subjects.subject(subject, ev, tasks);
        } else {
            reclaim::follow(ev, tasks.of(ev));
        }
    }

    fn ran(&mut self, cpu: u32, pid: i32) -> bool {
        self.copies.tasks.ran(cpu, pid)
    }

    fn lost(&mut self, _cpu: u32, _events: Option<u64>, _at: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;
    use mmtwin_event::Sink;
    use mmtwin_event::vocabulary::SCHEMAS;

    /// A task does something of every kind, in the middle of a reclaim and behind it.
    fn events() -> Vec<EventBuilder> {
        let kinds = || SCHEMAS.iter().map(|schema| schema.kind);
        let of = |pid, kind| EventBuilder::new(kind).pid(pid);
        let begun = [Kind::MmVmscanMemcgReclaimBegin, Kind::MmShrinkSlabStart];
        let tasks = kinds().zip(1..).flat_map(move |(kind, pid)| {
            let ended = [Kind::MmShrinkSlabEnd, Kind::MmVmscanMemcgReclaimEnd, kind];
            begun.into_iter().chain([kind]).chain(ended).map(move |kind| of(pid, kind))
        });
        let alone = kinds().zip(1000..).map(|(kind, pid)| of(pid, kind));
        tasks.chain(alone).zip(1..).map(|(event, at)| event.at(at)).collect()
    }

    fn give(half: &mut dyn Half, event: &Event<'_>) {
        match half.share(event.kind) {
            Share::Events => half.event(event),
            Share::Task => assert!(half.ran(event.cpu, event.pid)),
            Share::Nothing => {}
        }
    }

    #[test]
    fn halves_make_what_one_makes() {
        let events = events();
        let (mut one, mut two) = (Analysis::default(), Analysis::default());
        events.iter().for_each(|event| one.event(&event.event()));
        // Begun as one, with a shrinker that runs on.
        let (before, rest) = events.split_at(2);
        before.iter().for_each(|event| two.event(&event.event()));
        let (divided, behind) = rest.split_at(rest.len() / 2);
        let [mut first, mut second] = two.halves().expect("halves");
        for event in divided {
            give(&mut *second, &event.event());
        }
        for event in divided {
            give(&mut *first, &event.event());
        }
        drop((first, second));
        two.join();
        behind.iter().for_each(|event| two.event(&event.event()));
        assert_eq!(format!("{one:#?}"), format!("{two:#?}"));
    }
}
