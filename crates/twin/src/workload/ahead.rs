//! Marked units that an access will come to, by the number of the touch.
//!
//! A touch and its hinting fault belong together: a thread that faults gets on more slowly, so it makes fewer touches and
//! fewer faults. What is drawn for a time that a thread may not have is therefore bound to touches. Those of pools are
//! drawn for all threads at once where an epoch begins ([`Hints`](crate::mm::accessed::hints::Hints)) and, where a thread gets further than was
//! expected, for it alone; units whose touch is not reached wait for another draw. A walk is looked through as far as it
//! will go before the thread has to stop; marks come only between epochs. Checked against touch by touch in
//! `tests/numa_sampling.rs`.

use super::accessor::{Accessing, Accessor};
use crate::mm::accessed::hints::walked;
use crate::mm::memory::AccessState;
use crate::mm::prot_numa::Unit;
use mmtwin_scenario::program::Pattern;
use std::collections::VecDeque;

/// What an access will come to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    /// In order of the touches.
    found: VecDeque<(u64, Unit)>,
    /// Touches before this one have been drawn, or looked through.
    until: u64,
}

impl Ahead {
    /// A draw for the touches before `until` came to these.
    pub(crate) fn drawn(&mut self, mut hits: Vec<(u64, Unit)>, until: u64) {
        hits.sort_unstable();
        self.found.extend(hits);
        self.until = until;
    }
}

impl Accessor {
    /// The first marked unit among so many turns: its mapping, and the turns before it.
    pub(super) fn next_marked(&mut self, state: &mut AccessState, turns: u64) -> Option<(u64, usize, Unit)> {
        let next = |access: &mut Accessing| {
            let mapping = access.mapping?;
            let (before, unit) = access.next_marked(state, mapping, turns)?;
            Some((before, mapping, unit))
        };
        let active = self.list.iter_mut().filter(|access| access.active());
        active.filter_map(next).min_by_key(|(before, ..)| *before)
    }

    /// New marks may have come: what was found is no longer all. Calls `list` with what is to wait for another draw.
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
    /// The first marked unit of a mapping that so many touches come to, and the touches before it.
    fn next_marked(&mut self, state: &mut AccessState, mapping: usize, touches: u64) -> Option<(u64, Unit)> {
        let count = self.touching.stream.count;
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

    /// Marked units that some touches come to.
    fn look(&self, state: &mut AccessState, mapping: usize, (from, to): (u64, u64)) -> Vec<(u64, Unit)> {
        let of = &state.mappings[mapping];
        let mut found = Vec::new();
        match (self.touching.stream.pattern(), self.pool) {
            (Pattern::Walk(cursor), _) => {
                walked(cursor, &self.touching.pages, of, (from, to), |unit, number| found.push((number, unit)));
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
