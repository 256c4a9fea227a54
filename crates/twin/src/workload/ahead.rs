//! Marked units that a stream of accesses will reach, by the number of the access.
//!
//! An access and its hinting fault belong together: a thread that faults is slower, so it makes fewer accesses and
//! fewer faults. Faults are therefore drawn by number of access, not by time. Those of pools are drawn for all threads
//! at once when an epoch begins ([`Hints`](crate::mm::accessed::hints::Hints)) and, if a thread makes more accesses
//! than expected, for it alone; units whose access is not reached wait for another draw. A walk is searched up to the
//! point where the thread has to stop; marks are set only between epochs. Checked against single accesses in
//! `tests/numa_sampling.rs`.

use super::accessor::{Accessing, Accessor};
use crate::mm::accessed::hints::walked;
use crate::mm::memory::AccessState;
use crate::mm::prot_numa::Unit;
use mmtwin_scenario::program::Pattern;
use std::collections::VecDeque;

/// Marked units ahead of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    /// In order of the accesses.
    found: VecDeque<(u64, Unit)>,
    /// Accesses before this one have been drawn or searched.
    until: u64,
}

impl Ahead {
    /// Adds the result of a draw for the accesses before `until`.
    pub(crate) fn drawn(&mut self, mut hits: Vec<(u64, Unit)>, until: u64) {
        hits.sort_unstable();
        self.found.extend(hits);
        self.until = until;
    }
}

impl Accessor {
    /// The first marked unit among this many turns: its mapping, and the turns before it.
    pub(super) fn next_marked(&mut self, state: &mut AccessState, turns: u64) -> Option<(u64, usize, Unit)> {
        let next = |access: &mut Accessing| {
            let mapping = access.mapping?;
            let (before, unit) = access.next_marked(state, mapping, turns)?;
            Some((before, mapping, unit))
        };
        let active = self.list.iter_mut().filter(|access| access.active());
        active.filter_map(next).min_by_key(|(before, ..)| *before)
    }

    /// New marks are possible: the units found are no longer complete. Calls `list` with the units that wait for
    /// another draw.
    pub(crate) fn forget_ahead(&mut self, mut list: impl FnMut(usize, Unit)) {
        for access in &mut self.list {
            let Ahead { found, .. } = std::mem::take(&mut access.ahead);
            if let (Some(mapping), Some(_)) = (access.mapping, access.pool) {
                found.into_iter().for_each(|(_, unit)| list(mapping, unit));
            }
        }
    }
}

impl Accessing {
    /// The first marked unit of a mapping that this many accesses reach, and the accesses before it.
    fn next_marked(&mut self, state: &mut AccessState, mapping: usize, touches: u64) -> Option<(u64, Unit)> {
        let count = self.plan.stream.count;
        if state.mappings[mapping].marked() == 0 {
            return None;
        }
        let (from, to) = (self.ahead.until.max(count), count.saturating_add(touches));
        if from < to {
            let hits = self.look(state, mapping, (from, to));
            self.ahead.drawn(hits, to);
        }
        while let Some(&(number, unit)) = self.ahead.found.front() {
            if number >= count && state.mappings[mapping].has(unit) {
                return (number < to).then_some((number - count, unit));
            }
            self.ahead.found.pop_front();
        }
        None
    }

    /// Marked units that some accesses reach.
    fn look(&self, state: &mut AccessState, mapping: usize, (from, to): (u64, u64)) -> Vec<(u64, Unit)> {
        let of = &state.mappings[mapping];
        let mut found = Vec::new();
        match (self.plan.stream.pattern(), self.pool) {
            (Pattern::Walk(cursor), _) => {
                walked(cursor, &self.plan.pages, of, (from, to), |unit, number| found.push((number, unit)));
            }
            (Pattern::Draws(..), Some(number)) => {
                let Some(pool) = state.pools[number].as_mut() else { return found };
                let Some(hints) = &mut pool.hints else { return found };
                let mut hits = Vec::new();
                hints.draw(&[to - from], of, &state.hint_random, pool.number, &mut hits);
                found.extend(hits.into_iter().map(|hit| (hit.touch(from, to - from), hit.unit)));
            }
            (Pattern::Draws(..), None) => {}
        }
        found
    }
}
