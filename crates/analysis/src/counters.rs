//! Counters of the kernel over time.

use mmtwin_event::CounterRow;

/// Counters of the kernel over time.
#[derive(Clone, Debug, Default)]
pub struct Counters {}

impl Counters {
    /// Takes one row.
    pub fn row(&mut self, _row: &CounterRow<'_>) {}

    /// Last value minus first value of a system-wide counter; `None` if it was not recorded twice.
    pub fn delta(&self, _source: &str, _name: &str) -> Option<u64> {
        None
    }
}
