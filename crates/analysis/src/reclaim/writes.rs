//! Pages that reclaim started to write, by the flags of the event.
//!
//! Tables read the flags by different rules (a page without the word SYNC, or without the word ASYNC), so the
//! counts are kept by all five flags.

use mmtwin_event::value::ReclaimFlags;

/// Flags that exist.
const FLAGS: u32 = 31;

/// Counts of started writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    by_flags: Vec<u64>,
}

impl Writes {
    #[inline]
    pub(crate) fn add(&mut self, flags: ReclaimFlags) {
        let at = (flags.0 & FLAGS) as usize;
        if at >= self.by_flags.len() {
            self.by_flags.resize(at + 1, 0);
        }
        self.by_flags[at] += 1;
    }

    /// Writes whose flags satisfy a rule.
    pub fn count(&self, rule: impl Fn(ReclaimFlags) -> bool) -> u64 {
        (0..).map(ReclaimFlags).zip(&self.by_flags).filter(|(flags, _)| rule(*flags)).map(|(_, n)| n).sum()
    }

    /// Writes of file pages or of others, synchronous or not, by the words FILE and SYNC.
    pub fn of(&self, file: bool, sync: bool) -> u64 {
        self.count(|flags| flags.has(ReclaimFlags::FILE) == file && flags.has(ReclaimFlags::SYNC) == sync)
    }

    /// All writes.
    pub fn total(&self) -> u64 {
        self.by_flags.iter().sum()
    }

    /// Adds other counts.
    pub fn merge(&mut self, other: &Writes) {
        if other.by_flags.len() > self.by_flags.len() {
            self.by_flags.resize(other.by_flags.len(), 0);
        }
        for (mine, theirs) in self.by_flags.iter_mut().zip(&other.by_flags) {
            *mine += theirs;
        }
    }
}
