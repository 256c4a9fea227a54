//! Other kernels whose run a run is as well.
//!
//! Kernels of a series differ in few rules, and a run depends on a rule only where that decides something. All decisions
//! by the rules of a kernel are made by [`Reclaim::decide`], for its rivals too. As long as a rival decides the same its
//! run is this run, event by event; one that has decided otherwise once is out. Which kernels may be rivals is said in
//! `build`. Checked by `tests/rivals.rs`, which compares with the rivals' own runs.

use super::Variant;
use crate::mm::vmscan::{Reclaim, TaskCtx};
use std::cell::Cell;

/// A kernel beside the one that runs.
#[derive(Clone, Debug)]
pub(crate) struct Rival {
    rules: Variant,
    /// It has decided something otherwise.
    differs: Cell<bool>,
}

impl Rival {
    /// By its rules.
    pub(crate) fn new(rules: Variant) -> Rival {
        Rival { rules, differs: Cell::new(false) }
    }

    /// True if all its decisions were those of the kernel that ran.
    pub(crate) fn is_alike(&self) -> bool {
        !self.differs.get()
    }
}

impl Reclaim {
    /// What the rules of the kernel say.
    #[inline]
    pub(super) fn decide<T: PartialEq>(&self, rule: impl Fn(&Variant) -> T) -> T {
        let own = rule(self.rules.per_zone_lru.as_ref().unwrap_or(&Variant::V2_6_36));
        for rival in self.rivals.iter().filter(|rival| rival.is_alike()) {
            rival.differs.set(rule(&rival.rules) != own);
        }
        own
    }
}

impl TaskCtx<'_> {
    /// What the rules of the kernel say.
    #[inline]
    pub(super) fn decide<T: PartialEq>(&self, rule: impl Fn(&Variant) -> T) -> T {
        self.kernel.reclaim.decide(rule)
    }
}
