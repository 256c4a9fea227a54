//! Thresholds of findings that alert rules share: those on counters alone.

pub use super::cgroup_near_limit::{MIN_HITS as CGROUP_HITS, MIN_PERCENT as CGROUP_PERCENT};
pub use super::direct_reclaim::MIN_PER_SECOND as STALLS_PER_SECOND;
pub use super::efficiency::{MIN_PERCENT as SCAN_PERCENT, MIN_SCANNED as SCANNED};
pub use super::numa_failures::{MIN_PAGES as MIGRATIONS, MIN_PERCENT as MIGRATION_FAILED_PERCENT};
pub use super::numa_fallback::{MIN_MISSES as MISSES, MIN_PERCENT as FALLBACK_PERCENT};
pub use super::numa_locality::{MIN_FAULTS as NUMA_FAULTS, MIN_LOCAL as NUMA_LOCAL_PERCENT};
pub use super::refault::{MIN_PERCENT as REFAULT_PERCENT, WAITED as REFAULT_WAITED};
pub use super::refaults::MIN_REFAULTS as REFAULTS;
pub use super::swap_storm::{MIN_PAGES as SWAP_PAGES, MIN_PRESSURE as SWAP_PRESSURE};
pub use super::thp_stalls::{MIN_FALLBACK as THP_FALLBACK_PERCENT, MIN_FAULTS as THP_FAULTS, MIN_STALLS as THP_STALLS};
