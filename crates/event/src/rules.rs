//! The rules of NUMA balancing by which a kernel places pages and tasks.
//!
//! The twin writes them into its own events (system `mmtwin`), explanations name them. A rule has the kernel function that
//! implements it, a title, and the word that events print; docs/model/numa-balancing.md lists them.

use crate::names::NameTable;
use crate::value::NumaRule;

macro_rules! rules {
    ($($name:ident $word:literal, $title:literal, $function:literal;)*) => {
        /// A rule; [`Rule::title`] is its description.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u32)]
        #[allow(missing_docs)] // described by their titles
        pub enum Rule { $($name),* }

        impl Rule {
            /// All of them, in the order of their numbers in events.
            pub const ALL: &[Rule] = &[$(Rule::$name),*];

            /// The word that events print.
            pub fn word(self) -> &'static str {
                match self { $(Rule::$name => $word),* }
            }

            /// Its description, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Rule::$name => $title),* }
            }

            /// The kernel function that implements it.
            pub fn function(self) -> &'static str {
                match self { $(Rule::$name => $function),* }
            }
        }

        /// The words of all rules.
        pub static NUMA_RULE: NameTable = NameTable {
            what: "NUMA rule",
            words: &[$($word),*],
            numbers: &[$(Rule::$name as u64),*],
            none: "",
        };
    };
}

rules! {
    // Whether a page is migrated on a hinting fault.
    Local "local", "page is already local", "mpol_misplaced";
    OtherPolicy "other_policy", "memory policy does not allow this node", "mpol_misplaced";
    NoMemory "no_memory", "node has no memory", "mpol_misplaced";
    FirstScans "early_life", "first scans of the task, page not used by another task", "should_numa_migrate_memory";
    TwoStage "two_stage", "two-stage filter", "should_numa_migrate_memory";
    Private "private", "private page", "should_numa_migrate_memory";
    NoGroup "no_group", "task without a NUMA group", "should_numa_migrate_memory";
    TripleCpu "triple_cpu", "more than three times the CPU faults of the source node", "should_numa_migrate_memory";
    ThreeQuarters "three_quarters", "memory faults per CPU fault, with 3/4 hysteresis", "should_numa_migrate_memory";
    UnfilteredShared "no_brake", "shared pages are not filtered", "should_numa_migrate_memory";
    DstInactive "dst_inactive", "destination node is not active", "should_numa_migrate_memory";
    SrcInactive "src_inactive", "source node is not active", "should_numa_migrate_memory";
    BothActive "both_active", "both nodes active, memory faults with 3/4 hysteresis", "should_numa_migrate_memory";
    Deferred "deferred", "shared page migration is deferred", "mpol_misplaced";
    NotDeferred "not_deferred", "no shared page migration is deferred any more", "mpol_misplaced";
    // Reasons why a wanted migration does not happen.
    RateLimit "rate_limit", "rate limit of the node", "numamigrate_update_ratelimit";
    NodeFull "node_full", "no zone of the node stays above its high watermark", "migrate_balanced_pgdat";
    NoPage "no_page", "no free page without reclaim", "alloc_misplaced_dst_page";
    // Where a task belongs.
    MostFaults "most_faults", "node with most memory faults", "task_numa_placement";
    NearestCpus "nearest_cpus", "nearest node with CPUs", "task_numa_placement";
    NoFaults "no_faults", "no node has faults", "task_numa_placement";
    TaskAndGroup "task_and_group", "largest sum of task and group weight", "task_numa_placement";
    GroupTopology "group_topology", "topology of the group's faults", "preferred_group_nid";
    // How often a task scans.
    ScanStart "scan_start", "first scan of the task", "task_tick_numa";
    MovedNode "moved_node", "task moved to another node", "update_scan_period";
    NothingShared "nothing_shared", "no local and no shared faults", "update_task_scan_period";
    FailedMigration "failed_migration", "a migration failed", "update_task_scan_period";
    MostlyPrivate "mostly_private", "enough private faults", "update_task_scan_period";
    MostlyLocal "mostly_local", "enough local faults", "update_task_scan_period";
    ScanFaster "scan_faster", "too few local or private faults", "update_task_scan_period";
    MigrateReset "migrate_reset", "task searches another node", "task_numa_migrate";
    // Groups.
    Created "created", "first shared fault of the task", "task_numa_group";
    NotRunning "not_running", "last accessor no longer runs on that CPU", "task_numa_group";
    NoOtherGroup "no_other_group", "last accessor has no group", "task_numa_group";
    LargerGroup "larger_group", "the larger group does not join", "task_numa_group";
    YoungerGroup "younger_group", "of two groups of equal size the younger does not join", "task_numa_group";
    OtherMemory "other_memory", "another address space, page not shared", "task_numa_group";
    Joined "joined", "the smaller or older group joins", "task_numa_group";
    Left "left", "task ended", "task_numa_free";
    // Which node is searched for a CPU.
    PreferredNode "preferred_node", "preferred node", "task_numa_migrate";
    OtherNode "other_node", "another node", "task_numa_migrate";
    BothWorse "both_worse", "task and group weight would both drop", "task_numa_migrate";
    NoCapacity "no_capacity", "node has no capacity", "numa_has_capacity";
    IdleAtOnce "idle_at_once", "idle CPU on a node with capacity", "task_numa_find_cpu";
    // Improvement that a CPU of it offers.
    IdleCpu "idle_cpu", "idle CPU", "task_numa_compare";
    IdleRefused "idle_refused", "idle CPU, but the move does not improve or unbalances the nodes", "task_numa_compare";
    Itself "itself", "the task itself runs there", "task_numa_compare";
    Bound "bound", "affinity of the running task forbids the swap", "task_numa_compare";
    CurrentBestBetter "held_is_better", "the best partner so far prefers this node", "task_numa_compare";
    SameGroupRoom "same_group_room", "same group, and the node has capacity", "task_numa_compare";
    PlainMove "plain_move", "a move improves more than a swap", "task_numa_compare";
    BetterPartner "better_partner", "partner that prefers this node", "task_numa_compare";
    Swap "swap", "the swap improves enough", "task_numa_compare";
    TooSmall "too_small", "improvement below 30, or not 15 above the best", "task_numa_compare";
    NoBetter "no_better", "no improvement over the best, or unbalanced nodes", "task_numa_compare";
    // How a search ends.
    MoveTask "move_task", "move", "task_numa_migrate";
    SwapTasks "swap_tasks", "swap", "task_numa_migrate";
    Stick "stick", "no CPU found", "task_numa_migrate";
    OneDomain "one_domain", "no sched domain spans nodes", "task_numa_migrate";
    // Load balancing between nodes.
    Improves "improves", "locality improves", "migrate_degrades_locality";
    Degrades "degrades", "locality degrades", "migrate_degrades_locality";
    Neutral "neutral", "locality unchanged", "migrate_degrades_locality";
    CacheHot "cache_hot", "locality unchanged, task is cache-hot", "can_migrate_task";
    Forced "forced", "load balancing failed too often", "can_migrate_task";
    // Appended, so that the others keep their numbers: reasons why a wanted migration does not happen.
    Unmovable "unmovable", "file page that is dirty, under writeback, or executable and shared", "migrate_misplaced_page";
}

impl Rule {
    /// The rule as events hold it.
    pub fn number(self) -> NumaRule {
        NumaRule(self as u32)
    }

    /// The rule of an event; `None` for a number that no rule has.
    pub fn of(number: NumaRule) -> Option<Rule> {
        Rule::ALL.get(number.0 as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (place, &rule) in Rule::ALL.iter().enumerate() {
            assert_eq!((rule as usize, Rule::of(rule.number())), (place, Some(rule)));
            assert_eq!(NUMA_RULE.index_of(rule.word().as_bytes()), Some(place as u64), "{}", rule.word());
        }
        assert_eq!(Rule::of(NumaRule(u32::MAX)), None);
    }

    #[test]
    fn every_rule_is_in_the_model_document() {
        let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/model/numa-balancing.md");
        let text = std::fs::read_to_string(document).expect("the document");
        for rule in Rule::ALL {
            let row = |line: &str| {
                line.contains(&format!("`{}`", rule.word())) && line.contains(&format!("`{}`", rule.function()))
            };
            assert!(text.lines().any(row), "`{}` ... `{}`", rule.word(), rule.function());
        }
    }
}
