//! Cost of a page allocation on a CPU of this machine.
//!
//! The numbers are the machine's: they are from its file, where each has a source. Here they only become picoseconds,
//! because a cycle is not a whole number of nanoseconds and a loop is a few hundred of them.

/// Picoseconds of a millisecond; with kHz it turns cycles into picoseconds.
const PS_PER_MS: f64 = 1e9;

/// The type of a per-CPU NUMA counter, which decides what an increment costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum CounterType {
    /// Signed byte, tested against a threshold that is loaded each time.
    S8 = 0,
    /// 16 bits, tested against a constant.
    U16 = 1,
    /// A word that is only added to.
    Word = 2,
}

impl CounterType {
    /// All.
    pub const ALL: [CounterType; 3] = [CounterType::S8, CounterType::U16, CounterType::Word];
}

/// Cycles of one allocation with the free that follows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopCosts {
    /// Everything but counters. Half of it is the allocation's, half the free's.
    pub work: f64,
    /// A page that a free moves to the buddy lists beyond the CPU's list.
    pub free_to_buddy: f64,
    /// An increment of a NUMA counter that is a signed byte.
    pub count_s8: f64,
    /// An increment of a NUMA counter of 16 bits.
    pub count_u16: f64,
    /// An increment of a NUMA counter that is a word without threshold.
    pub count_word: f64,
}

/// Cycles of everything that the allocator is charged for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageCosts {
    /// Cycles per millisecond of the clock that cycles are counted with (the TSC).
    pub clock_khz: u64,
    /// A CPU whose core has no other busy thread.
    pub alone: LoopCosts,
    /// A CPU whose core has another busy thread.
    pub shared_core: LoopCosts,
    /// To fetch a zone's words again after another core has written one of them.
    pub refetch: f64,
    /// To fetch one cache line of another CPU's counters when statistics are read.
    pub read_line: f64,
    /// Picoseconds to choose a node by interleaving.
    pub interleave: u64,
    /// Picoseconds for each block that refills a CPU's list.
    pub refill: u64,
    /// Picoseconds to put a page on its LRU list, huge or not.
    pub lru_add: u64,
}

impl LoopCosts {
    /// Cycles of one increment.
    pub fn count(&self, counter: CounterType) -> f64 {
        match counter {
            CounterType::S8 => self.count_s8,
            CounterType::U16 => self.count_u16,
            CounterType::Word => self.count_word,
        }
    }
}

#[cfg(test)]
impl PageCosts {
    /// Work alone, at 1 GHz.
    pub(crate) fn of_work(work: f64) -> PageCosts {
        let alone = LoopCosts { work, free_to_buddy: 0.0, count_s8: 0.0, count_u16: 0.0, count_word: 0.0 };
        PageCosts {
            clock_khz: 1_000_000,
            alone,
            shared_core: alone,
            refetch: 0.0,
            read_line: 0.0,
            interleave: 0,
            refill: 0,
            lru_add: 0,
        }
    }
}

impl PageCosts {
    /// Whole picoseconds of some cycles.
    pub fn picoseconds(&self, cycles: f64) -> u64 {
        (cycles * PS_PER_MS / self.clock_khz as f64 + 0.5) as u64
    }

    /// Cycles of some picoseconds.
    pub fn cycles(&self, picoseconds: f64) -> f64 {
        picoseconds * self.clock_khz as f64 / PS_PER_MS
    }
}
