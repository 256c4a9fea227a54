//! Durations of function calls, from function_graph traces: what `funclatency` prints.
//!
//! A slot of the histogram is chosen by whole microseconds, mean and total come from the nanoseconds. A call that
//! was still open at the end of the trace is not counted.

use crate::histogram::Log2;
use mmtwin_event::Call;
use rustc_hash::FxHashMap;

/// Functions kept separate; a kernel has fewer.
const MAX_FUNCTIONS: usize = 1 << 18;

/// Calls by function.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    positions: FxHashMap<Box<str>, usize>,
    functions: Vec<Function>,
    last: usize,
    /// Calls of functions beyond the limit.
    pub dropped: u64,
}

/// The calls of one function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Durations in whole microseconds.
    pub usecs: Log2,
    /// Sum of the durations in nanoseconds.
    pub nanoseconds: u128,
    /// Longest, in nanoseconds.
    pub longest: u64,
}

impl Function {
    /// Mean in nanoseconds.
    pub fn mean(&self) -> f64 {
        self.nanoseconds as f64 / self.usecs.count as f64
    }
}

impl Calls {
    /// Takes one finished call.
    pub fn call(&mut self, call: &Call<'_>) {
        if self.functions.get(self.last).is_none_or(|f| f.name != call.function) {
            let Some(at) = self.position(call.function) else {
                self.dropped += 1;
                return;
            };
            self.last = at;
        }
        let function = &mut self.functions[self.last];
        function.usecs.add(call.nanoseconds / 1000);
        function.nanoseconds += u128::from(call.nanoseconds);
        function.longest = function.longest.max(call.nanoseconds);
    }

    fn position(&mut self, name: &str) -> Option<usize> {
        if let Some(&at) = self.positions.get(name) {
            return Some(at);
        }
        if self.functions.len() == MAX_FUNCTIONS {
            return None;
        }
        self.positions.insert(name.into(), self.functions.len());
        self.functions.push(Function { name: name.into(), usecs: Log2::default(), nanoseconds: 0, longest: 0 });
        Some(self.functions.len() - 1)
    }

    /// The calls of a function, if there were any.
    pub fn get(&self, name: &str) -> Option<&Function> {
        self.functions.get(*self.positions.get(name)?)
    }

    /// All functions, largest total first, then by name.
    pub fn by_total(&self) -> Vec<&Function> {
        let mut all: Vec<_> = self.functions.iter().collect();
        all.sort_by(|a, b| b.nanoseconds.cmp(&a.nanoseconds).then_with(|| a.name.cmp(&b.name)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_truncate_to_microseconds_and_the_mean_does_not() {
        let mut calls = Calls::default();
        for (function, nanoseconds) in [("a", 1_999), ("b", 5_000_000), ("a", 4_500)] {
            calls.call(&Call { function, cpu: 0, nanoseconds });
        }
        let a = calls.get("a").unwrap();
        assert_eq!(a.usecs.slots(), [(0, 1, 1), (2, 3, 0), (4, 7, 1)]);
        assert_eq!((a.mean(), a.longest), (3249.5, 4_500));
        assert_eq!(calls.by_total().iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert!(calls.get("c").is_none());
    }
}
