//! Parameters of a vmalloc run: machine, kernel rules, workload. Plain values; the scenario has their sources. Times
//! are in microseconds or nanoseconds, by their names.

/// Properties of the machine for vmalloc.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// CPUs online: sets how many lazy pages are allowed, and runs threads and workers.
    pub online_cpus: u32,
    /// CPUs possible: sets how many nodes there are.
    pub possible_cpus: u32,
    /// Service time of the line with the lazy page count ([`HandOff::service_ns`](crate::hw::line::HandOff)).
    pub line_ns: f64,
    /// Time to purge an area without its operation on that line, from cold lines, pool lock and list.
    pub purge_local_us: f64,
    /// Share of its CPU for a purge worker, in (0, 1]; a thread on that CPU has the rest.
    pub worker_share: f64,
    /// Period in which a worker and a thread on one CPU both have their share once.
    pub slice_us: f64,
    /// From queueing a work to its start.
    pub wake_us: f64,
    /// How stale translations are removed.
    pub tlb_flush: TlbFlush,
}

/// How all CPUs are made to forget translations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TlbFlush {
    /// An interrupt to every CPU online, waiting for all.
    Ipi {
        /// Round trip of the first.
        base_us: f64,
        /// Each further CPU.
        per_cpu_us: f64,
    },
    /// The CPU's own broadcast (6.18 where the machine has it).
    Broadcast {
        /// The whole flush.
        flush_us: f64,
    },
}

impl TlbFlush {
    /// Nanoseconds of a flush on a machine with this many CPUs.
    pub fn ns(self, cpus: u32) -> f64 {
        match self {
            TlbFlush::Ipi { base_us, per_cpu_us } => 1e3 * (base_us + per_cpu_us * f64::from(cpus.saturating_sub(1))),
            TlbFlush::Broadcast { flush_us } => 1e3 * flush_us,
        }
    }
}

/// Where areas wait for reuse and purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Areas {
    /// One busy tree and one merged tree of lazy areas (6.1).
    SingleList,
    /// Nodes with pools, lists and works of their own (6.9 on).
    Nodes,
}

/// How the lazy page count falls in a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeAccounting {
    /// One locked subtraction per area, before the 2024 patch.
    PerArea,
    /// One per list.
    Batched,
}

/// Treatment of pools of fewer than four areas in a normal pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmallPools {
    /// Empties it (6.12: the count of what is left wraps).
    Emptied,
    /// Leaves it alone (6.18).
    Kept,
}

/// Where the lazy page count and the count of all vmalloc pages lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// On one cache line: three operations per allocation and free.
    OneLine,
    /// On a line each: one operation on the lazy count's, two on the other.
    Aligned,
}

/// Rules of the modelled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Single list or nodes.
    pub areas: Areas,
    /// Cost of the count in a purge.
    pub purge_accounting: PurgeAccounting,
    /// Decay of small pools.
    pub small_pools: SmallPools,
    /// Layout of the two counts.
    pub counters: Counters,
    /// Number of nodes instead of the kernel's.
    pub nodes: Option<u32>,
    /// Lazy pages allowed instead of the kernel's.
    pub lazy_max: Option<u64>,
    /// Whether the kernel has the vmalloc trace events (not in 6.1).
    pub trace_events: bool,
}

impl Rules {
    /// 6.1: no nodes, no trace events.
    pub const V6_1: Rules = Rules { areas: Areas::SingleList, trace_events: false, ..Rules::V6_11 };
    /// 6.9 to 6.11: nodes, subtraction per area.
    pub const V6_11: Rules = Rules {
        areas: Areas::Nodes,
        purge_accounting: PurgeAccounting::PerArea,
        small_pools: SmallPools::Emptied,
        counters: Counters::OneLine,
        nodes: None,
        lazy_max: None,
        trace_events: true,
    };
    /// 6.12: with the patch.
    pub const V6_12: Rules = Rules { purge_accounting: PurgeAccounting::Batched, ..Rules::V6_11 };
    /// 6.18: small pools kept, counts on lines of their own.
    pub const V6_18: Rules = Rules { small_pools: SmallPools::Kept, counters: Counters::Aligned, ..Rules::V6_12 };

    /// Nodes on a machine with this many possible CPUs: at most 128.
    pub fn nodes(&self, possible_cpus: u32) -> u32 {
        match (self.areas, self.nodes) {
            (Areas::SingleList, _) => 1,
            (Areas::Nodes, Some(nodes)) => nodes,
            (Areas::Nodes, None) => possible_cpus.clamp(1, 128),
        }
    }

    /// Lazy pages allowed before the drain work is queued: 32 MiB per binary digit of the CPUs online.
    pub fn lazy_max(&self, online_cpus: u32) -> u64 {
        self.lazy_max.unwrap_or(u64::from(fls(online_cpus)) * (32 << 20 >> PAGE_SHIFT))
    }
}

/// Base-2 logarithm of the page size.
pub const PAGE_SHIFT: u32 = 12;

/// Number of the highest bit set, counted from 1; 0 for 0.
pub fn fls(n: u32) -> u32 {
    u32::BITS - n.leading_zeros()
}

/// `test_vmalloc` as it is loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// `nr_threads`.
    pub threads: u32,
    /// `run_test_mask`; bits 1, 2 and 4 are modelled.
    pub tests: u32,
    /// `test_loop_count`.
    pub loops: u64,
    /// `test_repeat_count`.
    pub repeats: u32,
    /// `nr_pages` of the first test.
    pub pages: u32,
    /// Microseconds that one loop of each of the three tests takes alone on a machine.
    pub loop_us: [f64; 3],
}

/// All of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The machine.
    pub machine: Machine,
    /// The kernel's rules.
    pub rules: Rules,
    /// The tests to run.
    pub workload: Workload,
}

/// A parameter that no machine, kernel or workload can have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name}: {value} is not {expected}")]
pub struct BadParam {
    /// Its name, as in the structs.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Its allowed values.
    pub expected: &'static str,
}

impl Params {
    /// Refuses what cannot be simulated.
    pub fn check(&self) -> Result<(), BadParam> {
        let (m, w) = (&self.machine, &self.workload);
        let check = |ok: bool, name, value, expected| if ok { Ok(()) } else { Err(BadParam { name, value, expected }) };
        let time = |name, value: f64| check((0.0..1e9).contains(&value), name, value, "from 0 to 1e9");
        let cpus = |name, n: u32| check((1..=65_536).contains(&n), name, n.into(), "from 1 to 65,536");
        cpus("online_cpus", m.online_cpus)?;
        cpus("possible_cpus", m.possible_cpus)?;
        let expected = "at least the CPUs online";
        check(m.possible_cpus >= m.online_cpus, "possible_cpus", m.possible_cpus.into(), expected)?;
        check(m.line_ns >= 1e-3 && m.line_ns < 1e9, "line_ns", m.line_ns, "from 0.001 to 1e9")?;
        check(
            m.purge_local_us >= 1e-3 && m.purge_local_us < 1e9,
            "purge_local_us",
            m.purge_local_us,
            "from 0.001 to 1e9",
        )?;
        check(m.worker_share > 0.0 && m.worker_share <= 1.0, "worker_share", m.worker_share, "in (0, 1]")?;
        time("slice_us", m.slice_us)?;
        time("wake_us", m.wake_us)?;
        match m.tlb_flush {
            TlbFlush::Ipi { base_us, per_cpu_us } => {
                time("base_us", base_us)?;
                time("per_cpu_us", per_cpu_us)?;
            }
            TlbFlush::Broadcast { flush_us } => time("flush_us", flush_us)?,
        }
        if let Some(nodes) = self.rules.nodes {
            check((1..=65_536).contains(&nodes), "nodes", nodes.into(), "from 1 to 65,536")?;
        }
        let lazy_max = self.rules.lazy_max(m.online_cpus);
        check(lazy_max <= 1 << 40, "lazy_max", lazy_max as f64, "at most 2^40 pages")?;
        check((1..=65_535).contains(&w.threads), "threads", w.threads.into(), "from 1 to 65,535")?;
        check(w.tests & !7 == 0 && w.tests != 0, "tests", w.tests.into(), "a mask of the bits 1, 2 and 4")?;
        check((1..=1 << 40).contains(&w.loops), "loops", w.loops as f64, "from 1 to 2^40")?;
        check((1..=1_000_000).contains(&w.repeats), "repeats", w.repeats.into(), "from 1 to 1,000,000")?;
        check((1..=1 << 20).contains(&w.pages), "pages", w.pages.into(), "from 1 to 2^20")?;
        w.loop_us.iter().try_for_each(|&us| check(us > 0.0 && us < 1e9, "loop_us", us, "above 0 and below 1e9"))
    }

    /// Refuses more threads than CPUs, which single events do not model.
    pub fn check_one_thread_per_cpu(&self) -> Result<(), BadParam> {
        let threads = self.workload.threads;
        if threads <= self.machine.online_cpus {
            return Ok(());
        }
        Err(BadParam { name: "threads", value: threads.into(), expected: "at most one per CPU online" })
    }
}
