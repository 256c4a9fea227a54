//! Pages taken from LRU lists, by list.
//!
//! Which list an isolation is from is reported differently by the kernels. Today `lru` names it. 2.6.36 to 3.1 have
//! `isolate_mode` 0 inactive, 1 active, 2 both; 3.2 to 3.4 the bits 1 inactive, 2 active (3.3 adds `file`). From 3.5
//! until `lru` came the mode says nothing about it: then only the shrink event that follows tells inactive pages.

use mmtwin_event::vocabulary::{MmVmscanLruIsolate, MmVmscanMemcgIsolate};

/// What an isolation was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum List {
    /// Inactive anonymous pages.
    InactiveAnon,
    /// Active anonymous pages.
    ActiveAnon,
    /// Inactive file pages.
    InactiveFile,
    /// Active file pages.
    ActiveFile,
    /// Pages that cannot be reclaimed.
    Unevictable,
    /// Inactive pages of a kind the kernel does not tell.
    Inactive,
    /// Active pages of a kind the kernel does not tell.
    Active,
    /// Active and inactive pages alike (lumpy reclaim).
    Both,
    /// The kernel does not tell.
    Unknown,
}

impl List {
    /// All lists, by their number.
    pub const ALL: [List; 9] = [
        List::InactiveAnon,
        List::ActiveAnon,
        List::InactiveFile,
        List::ActiveFile,
        List::Unevictable,
        List::Inactive,
        List::Active,
        List::Both,
        List::Unknown,
    ];

    /// Stable name; the kernel's where it has one.
    pub fn name(self) -> &'static str {
        match self {
            List::InactiveAnon => "inactive_anon",
            List::ActiveAnon => "active_anon",
            List::InactiveFile => "inactive_file",
            List::ActiveFile => "active_file",
            List::Unevictable => "unevictable",
            List::Inactive => "inactive",
            List::Active => "active",
            List::Both => "both",
            List::Unknown => "unknown",
        }
    }

    /// True if its pages count as scanned for reclaim: everything but active lists alone.
    pub fn counts_as_scanned(self) -> bool {
        matches!(self, List::InactiveAnon | List::InactiveFile | List::Inactive | List::Both)
    }

    fn of_kind(file: Option<i32>, anon: List, files: List, unknown: List) -> List {
        match file {
            Some(0) => anon,
            Some(_) => files,
            None => unknown,
        }
    }

    fn of_mode(mode: Option<u32>, file: Option<i32>, lumpy: bool, bits: bool) -> List {
        let inactive = List::of_kind(file, List::InactiveAnon, List::InactiveFile, List::Inactive);
        let active = List::of_kind(file, List::ActiveAnon, List::ActiveFile, List::Active);
        match mode {
            Some(mode) if lumpy && bits => match mode & 3 {
                1 => inactive,
                2 => active,
                3 => List::Both,
                _ => List::Unknown,
            },
            Some(0) if lumpy => inactive,
            Some(1) if lumpy => active,
            Some(2) if lumpy => List::Both,
            _ => List::Unknown,
        }
    }
}

/// One isolation.
#[derive(Clone, Copy, Debug)]
pub struct Isolation {
    /// From which list.
    pub list: List,
    /// Pages wanted.
    pub requested: u64,
    /// Pages looked at.
    pub scanned: u64,
    /// Of these, pages of a zone that does not help; `None` where the kernel does not tell.
    pub skipped: Option<u64>,
    /// Pages taken.
    pub taken: u64,
}

impl Isolation {
    /// Of the event. `bits`: the kernel is 3.2, whose modes are bits although it has no `file`.
    #[inline]
    pub fn of(e: &MmVmscanLruIsolate, bits: bool) -> Isolation {
        let list = match e.lru {
            Some(lru) => List::ALL.get(lru.0 as usize).copied().filter(|_| lru.0 < 5).unwrap_or(List::Unknown),
            None => List::of_mode(e.isolate_mode, e.file, e.contig_taken.is_some(), bits || e.file.is_some()),
        };
        let (requested, scanned, skipped, taken) = (e.nr_requested, e.nr_scanned, e.nr_skipped, e.nr_taken);
        Isolation { list, requested, scanned, skipped, taken }
    }

    /// Of an isolation for a cgroup, an event of its own until 3.x.
    pub fn of_memcg(e: &MmVmscanMemcgIsolate, bits: bool) -> Isolation {
        let list = List::of_mode(e.isolate_mode, e.file, e.contig_taken.is_some(), bits || e.file.is_some());
        let (requested, scanned, taken) = (e.nr_requested, e.nr_scanned, e.nr_taken);
        Isolation { list, requested, scanned, skipped: None, taken }
    }
}

/// Sums of isolations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Isolated {
    /// Isolations.
    pub batches: u64,
    /// Pages wanted.
    pub requested: u64,
    /// Pages looked at.
    pub scanned: u64,
    /// Of these, pages of a zone that does not help.
    pub skipped: u64,
    /// Pages taken.
    pub taken: u64,
}

impl Isolated {
    #[inline]
    pub(crate) fn add(&mut self, one: &Isolation) {
        self.batches += 1;
        self.requested = self.requested.saturating_add(one.requested);
        self.scanned = self.scanned.saturating_add(one.scanned);
        self.skipped = self.skipped.saturating_add(one.skipped.unwrap_or(0));
        self.taken = self.taken.saturating_add(one.taken);
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Isolated) {
        self.batches += other.batches;
        self.requested = self.requested.saturating_add(other.requested);
        self.scanned = self.scanned.saturating_add(other.scanned);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.taken = self.taken.saturating_add(other.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;
    use mmtwin_event::Kind;

    fn list(fields: &[(&str, i64)], bits: bool) -> List {
        let made = fields
            .iter()
            .fold(EventBuilder::new(Kind::MmVmscanLruIsolate), |made, (name, value)| made.set(name, *value));
        Isolation::of(&made.event().typed(), bits).list
    }

    #[test]
    fn lists_of_2_6_36() {
        for (mode, expected) in [(0, List::Inactive), (1, List::Active), (2, List::Both), (3, List::Unknown)] {
            assert_eq!(list(&[("isolate_mode", mode), ("contig_taken", 0)], false), expected);
        }
    }

    #[test]
    fn lists_of_3_2() {
        for (mode, expected) in [(1, List::Inactive), (2, List::Active), (3, List::Both), (5, List::Inactive)] {
            assert_eq!(list(&[("isolate_mode", mode), ("contig_taken", 0)], true), expected);
        }
    }

    #[test]
    fn lists_of_3_3() {
        for (mode, file, expected) in [(1, 0, List::InactiveAnon), (2, 1, List::ActiveFile), (9, 1, List::InactiveFile)]
        {
            assert_eq!(list(&[("isolate_mode", mode), ("contig_taken", 0), ("file", file)], false), expected);
        }
    }

    #[test]
    fn lists_of_3_5_are_not_told() {
        for mode in [0, 1, 2] {
            assert_eq!(list(&[("isolate_mode", mode), ("file", 1)], false), List::Unknown);
        }
    }

    #[test]
    fn lists_of_6_1() {
        for (i, &expected) in List::ALL[..5].iter().enumerate() {
            assert_eq!(list(&[("isolate_mode", 0), ("lru", i as i64)], false), expected);
        }
        assert_eq!(list(&[("lru", 7)], false), List::Unknown);
    }
}
