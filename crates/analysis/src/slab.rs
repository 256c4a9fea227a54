//! Slab shrinking, by shrinker.
//!
//! A shrinker is known by its scan function; many of one function (one per mounted file system, say) are summed.
//! From 3.12 the end event tells the objects freed and those left to scan; before, only what the function
//! returned last, so freed and scanned are not known there.

use crate::index::Index;
use crate::tasks::{Context, Task};
use mmtwin_event::durations::Durations;
use mmtwin_event::vocabulary::{MmShrinkSlabEnd, MmShrinkSlabStart};
use mmtwin_event::{Event, Kind, Source, Symbol};

/// Shrinkers whose function is remembered by address; those beyond are looked up each time.
const MAX_REMEMBERED: u32 = 1 << 16;
/// Functions kept separate; more can only come from a damaged file.
const MAX_FUNCTIONS: usize = 1 << 10;

/// Slab shrinking.
#[derive(Clone, Debug, Default)]
pub struct Slab {
    shrinkers: Vec<Shrinker>,
    by_address: Index,
    /// Position in `shrinkers` by position in `by_address`.
    functions: Vec<usize>,
}

/// A run of a shrinker that a task has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    at: u64,
    shr: u64,
    total_scan: i64,
}

/// The scan function of a shrinker.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Function {
    Name(Vec<u8>),
    Address(u64),
    Others,
}

/// Sums over the runs of one function.
#[derive(Clone, Debug)]
pub struct Shrinker {
    function: Function,
    /// Runs.
    pub calls: u64,
    /// Objects that should be scanned.
    pub to_scan: u64,
    /// Objects scanned; `None` if the kernel does not say.
    pub scanned: Option<u64>,
    /// Objects freed; `None` if the kernel does not say.
    pub freed: Option<u64>,
    /// Nanoseconds between begin and end.
    pub times: Durations,
    /// Nanoseconds by [`Context`] number.
    pub by_context: [u128; Context::ALL.len()],
}

impl Shrinker {
    /// Name of the scan function; its address if the recording cannot resolve it.
    pub fn name(&self, source: &Source) -> String {
        match &self.function {
            Function::Name(name) => String::from_utf8_lossy(name).into(),
            Function::Address(address) => {
                source.symbol(*address).map_or_else(|| format!("{address:#x}"), str::to_string)
            }
            Function::Others => "(others)".into(),
        }
    }
}

impl Slab {
    /// Takes one event of this subject.
    #[inline]
    pub fn event(&mut self, ev: &Event<'_>, task: &mut Task) {
        match ev.kind {
            Kind::MmShrinkSlabStart => {
                let start: MmShrinkSlabStart = ev.typed();
                let at = self.shrinker(start.shr.0, || ev.symbol(start.shrink));
                let shrinker = &mut self.shrinkers[at];
                shrinker.calls += 1;
                shrinker.to_scan = shrinker.to_scan.saturating_add(start.total_scan.max(0) as u64);
                task.shrinking = Some(Run { at: ev.ts, shr: start.shr.0, total_scan: start.total_scan });
            }
            Kind::MmShrinkSlabEnd => {
                let end: MmShrinkSlabEnd = ev.typed();
                let open = task.shrinking.take().filter(|open| open.shr == end.shr.0);
                let at = self.shrinker(end.shr.0, || ev.symbol(end.shrink));
                let shrinker = &mut self.shrinkers[at];
                if end.nid.is_some() {
                    let freed = shrinker.freed.get_or_insert(0);
                    *freed = freed.saturating_add(end.retval.max(0) as u64);
                }
                let Some(open) = open else { return };
                if end.nid.is_some() {
                    let scanned = shrinker.scanned.get_or_insert(0);
                    *scanned = scanned.saturating_add(open.total_scan.saturating_sub(end.total_scan).max(0) as u64);
                }
                if let Some(ns) = ev.ts.checked_sub(open.at) {
                    shrinker.times.add(ns);
                    shrinker.by_context[task.context as usize] += u128::from(ns);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn shrinker<'e>(&mut self, address: u64, symbol: impl FnOnce() -> Symbol<'e>) -> usize {
        match self.by_address.get(address) {
            Some(at) => self.functions[at as usize],
            None => self.find(address, symbol()),
        }
    }

    #[cold]
    fn find(&mut self, address: u64, symbol: Symbol<'_>) -> usize {
        let mut function = match symbol {
            Symbol::Name(name) => Function::Name(name.into()),
            Symbol::Address(address) => Function::Address(address),
        };
        let mut found = self.shrinkers.iter().position(|s| s.function == function);
        if found.is_none() && self.shrinkers.len() >= MAX_FUNCTIONS {
            function = Function::Others;
            found = self.shrinkers.iter().position(|s| s.function == function);
        }
        let at = found.unwrap_or(self.shrinkers.len());
        if found.is_none() {
            self.shrinkers.push(Shrinker {
                function,
                calls: 0,
                to_scan: 0,
                scanned: None,
                freed: None,
                times: Durations::default(),
                by_context: [0; Context::ALL.len()],
            });
        }
        if (self.functions.len() as u32) < MAX_REMEMBERED {
            self.by_address.insert(address);
            self.functions.push(at);
        }
        at
    }

    /// Nanoseconds in shrinkers on behalf of a context.
    pub fn nanoseconds(&self, context: Context) -> u128 {
        self.shrinkers.iter().map(|s| s.by_context[context as usize]).sum()
    }

    /// All shrinkers: most time first, then most calls, then by name.
    pub fn by_time(&self, source: &Source) -> Vec<(String, &Shrinker)> {
        let mut all: Vec<_> = self.shrinkers.iter().map(|s| (s.name(source), s)).collect();
        all.sort_by(|(a, x), (b, y)| (y.times.sum, y.calls).cmp(&(x.times.sum, x.calls)).then_with(|| a.cmp(b)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{EventBuilder, task};

    fn start(at: u64, shr: i64, total: i64) -> EventBuilder {
        let made = EventBuilder::new(Kind::MmShrinkSlabStart).at(at).set("shr", shr).set("total_scan", total);
        made.text("shrink", "super_cache_scan+0x0/0x210")
    }
    fn end(at: u64, shr: i64, left: i64, freed: i64) -> EventBuilder {
        let made = EventBuilder::new(Kind::MmShrinkSlabEnd)
            .at(at)
            .set("shr", shr)
            .set("total_scan", left)
            .set("retval", freed);
        made.text("shrink", "super_cache_scan+0x0/0x210")
    }

    #[test]
    fn shrinkers_of_one_function_are_summed() {
        let mut slab = Slab::default();
        let (mut a, mut b) = (task(1, Context::Kswapd), task(2, Context::Direct));
        slab.event(&start(10, 100, 128).event(), &mut a);
        slab.event(&start(15, 200, 64).event(), &mut b);
        slab.event(&end(30, 100, 28, 90).set("nid", 0).event(), &mut a);
        slab.event(&end(25, 200, 64, 0).set("nid", 0).event(), &mut b);
        slab.event(&end(99, 300, 0, 7).set("nid", 0).event(), &mut b);
        let all = slab.by_time(&Source::default());
        let [(name, s)] = &all[..] else { panic!("{all:?}") };
        assert_eq!(name, "super_cache_scan");
        assert_eq!((s.calls, s.to_scan, s.scanned, s.freed), (2, 192, Some(100), Some(97)));
        assert_eq!((s.times.count(), s.times.sum), (2, 30));
        assert_eq!((slab.nanoseconds(Context::Kswapd), slab.nanoseconds(Context::Direct)), (20, 10));
    }

    #[test]
    fn old_kernels_do_not_tell_what_was_freed() {
        let mut slab = Slab::default();
        slab.event(&start(10, 100, 128).event(), &mut Task::default());
        slab.event(&end(30, 100, 0, 40).event(), &mut Task::default());
        let (_, s) = slab.by_time(&Source::default())[0];
        assert_eq!((s.calls, s.scanned, s.freed), (1, None, None));
    }

    #[test]
    fn an_address_is_resolved_by_the_recording() {
        let mut slab = Slab::default();
        slab.find(1, Symbol::Address(0x1010));
        slab.find(2, Symbol::Address(0x2010));
        let source = Source { kallsyms: vec![(0x2000, "xfs_buftarg_shrink_scan".into())].into(), ..Source::default() };
        let names: Vec<_> = slab.by_time(&source).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["0x1010", "xfs_buftarg_shrink_scan"]);
    }

    #[test]
    fn damaged_symbols_stay_bounded() {
        let mut slab = Slab::default();
        for i in 0..2 * MAX_FUNCTIONS as u64 {
            slab.find(i, Symbol::Address(i));
        }
        assert_eq!(slab.shrinkers.len(), MAX_FUNCTIONS + 1);
    }
}
