//! Why a page, a task or a NUMA group is where it is: the chain of events and rules that led there.
//!
//! A recording is read twice: [`names::Names`] learns what there is and finds what was asked for, then an [`Explain`]
//! of the [`names::Subject`] collects its steps in time order. Every figure is one of an event; what the
//! recorded events cannot tell is a [`gaps::Gap`], never a guess. The twin's own events (system `mmtwin`) hold the rules;
//! kernels trace the outcomes only. Steps are bounded: of very long chains the middle is dropped and counted.

mod faults;
pub mod figures;
pub mod find;
pub mod gaps;
mod group;
mod moves;
pub mod names;
mod page;
mod samples;
mod task;
#[cfg(test)]
mod tests;
pub mod waiting;

use crate::losses::Losses;
use gaps::Gap;
use mmtwin_event::rules::Rule;
use mmtwin_event::{CounterRow, Event, Kind, Order, Sink};
use names::{Names, Subject};
use std::collections::VecDeque;

/// Steps kept from the beginning of a chain, and as many from its end.
pub const MAX_STEPS: usize = 1000;

/// One step, or several that are alike and follow one another.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Nanoseconds of the trace clock.
    pub at: u64,
    /// Time of the last of several.
    pub until: u64,
    /// How many they are.
    pub times: u64,
    /// The event that tells, or the source of the counters.
    pub event: &'static str,
    /// The rule that decided; `None` if the event has none.
    pub rule: Option<Rule>,
    /// What happened, with the figures it was decided on.
    pub what: String,
    /// Steps with equal likeness that follow one another are one; `None`: it stands alone.
    likeness: Option<[i64; 4]>,
}

impl Step {
    /// A step that stands alone.
    pub(crate) fn new(at: u64, kind: Kind, rule: Option<Rule>, what: String) -> Step {
        let event = kind.schema().map_or("", |schema| schema.name);
        Step { at, until: at, times: 1, event, rule, what, likeness: None }
    }

    /// The same, as one with those before it that are like it.
    pub(crate) fn like(mut self, likeness: [i64; 4]) -> Step {
        self.likeness = Some(likeness);
        self
    }
}

/// Steps in time order.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    first: Vec<Step>,
    last: VecDeque<Step>,
    dropped: u64,
}

impl Steps {
    /// Takes a step.
    pub(crate) fn push(&mut self, step: Step) {
        let before = self.last.back_mut().or(self.first.last_mut());
        if let Some(before) = before.filter(|before| {
            step.likeness.is_some()
                && (before.likeness, before.event, before.rule) == (step.likeness, step.event, step.rule)
        }) {
            before.times += step.times;
            before.until = step.until;
            return;
        }
        if self.first.len() < MAX_STEPS {
            return self.first.push(step);
        }
        if self.last.len() == MAX_STEPS {
            self.dropped += self.last.pop_front().map_or(0, |step| step.times);
        }
        self.last.push_back(step);
    }

    fn finish(self) -> (Vec<Step>, Option<(usize, u64)>) {
        let cut = (self.dropped > 0).then_some((self.first.len(), self.dropped));
        (self.first.into_iter().chain(self.last).collect(), cut)
    }
}

/// An explanation.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// What is explained, for people.
    pub title: String,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Steps that are not kept, and before which of [`Chain::steps`] they were.
    pub dropped: Option<(usize, u64)>,
    /// What was not recorded.
    pub gaps: Vec<Gap>,
    /// Why it is where it is, in a sentence or two.
    pub answer: String,
}

/// Follows one subject.
enum Follower {
    Page(Box<page::Page>),
    Task(Box<task::Task>),
    Group(Box<group::Group>),
}

/// Collects the steps of one subject.
pub struct Explain<'n> {
    names: &'n Names,
    subject: Subject,
    follower: Follower,
    steps: Steps,
    losses: Losses,
}

impl<'n> Explain<'n> {
    /// Explains a subject that was found in a recording.
    pub fn new(names: &'n Names, subject: Subject) -> Explain<'n> {
        let follower = match &subject {
            Subject::Page(place) => Follower::Page(Box::new(page::Page::new(*place, names.frame()))),
            Subject::Task(pid) => Follower::Task(Box::new(task::Task::new(*pid))),
            Subject::Group(gid) => Follower::Group(Box::new(group::Group::new(*gid))),
        };
        Explain { names, subject, follower, steps: Steps::default(), losses: Losses::default() }
    }

    /// The chain, when everything has been read.
    pub fn chain(self) -> Chain {
        let Explain { names, subject, follower, mut steps, losses } = self;
        let answer = match follower {
            Follower::Page(page) => page.finish(names),
            Follower::Task(task) => task.finish(names, &mut steps),
            Follower::Group(group) => group.finish(names, &mut steps),
        };
        let (steps, dropped) = steps.finish();
        let gaps = gaps::lost(&losses).into_iter().chain(gaps::of(names, &subject)).collect();
        Chain { title: names.title(&subject), steps, dropped, gaps, answer }
    }
}

impl Sink for Explain<'_> {
    fn order(&self, _: Kind) -> Order {
        Order::Time
    }

    fn event(&mut self, event: &Event<'_>) {
        match &mut self.follower {
            Follower::Page(page) => page.event(event, self.names, &mut self.steps),
            Follower::Task(task) => task.event(event, self.names, &mut self.steps),
            Follower::Group(group) => group.event(event, self.names, &mut self.steps),
        }
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.losses.lost(cpu, events, at);
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        if let Follower::Task(task) = &mut self.follower {
            task.counters(row, self.names);
        }
    }
}
