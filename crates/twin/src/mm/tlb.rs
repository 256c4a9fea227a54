//! CPUs that may have a region's pages in their TLBs.

/// Where the threads of a region's processes run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cpus {
    #[default]
    None,
    One(u32),
    Several,
}

impl Cpus {
    /// And on those.
    pub(crate) fn with(self, others: Cpus) -> Cpus {
        match others {
            Cpus::None => self,
            Cpus::One(cpu) => self.and(cpu),
            Cpus::Several => Cpus::Several,
        }
    }

    /// And on one more.
    pub(crate) fn and(self, cpu: u32) -> Cpus {
        match self {
            Cpus::None => Cpus::One(cpu),
            Cpus::One(other) if other == cpu => self,
            Cpus::One(_) | Cpus::Several => Cpus::Several,
        }
    }

    /// True if some run on another CPU.
    pub(crate) fn elsewhere(self, cpu: u32) -> bool {
        !matches!(self, Cpus::None) && self != Cpus::One(cpu)
    }
}
