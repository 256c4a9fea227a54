//! The rules of NUMA balancing by which a kernel decides where pages and tasks go.
//!
//! The twin writes them into its own events (system `mmtwin`), explanations name them. A rule has the number of its
//! section, the kernel function that has it, and the word that events print; docs/model/numa-balancing.md lists them.

use crate::names::NameTable;
use crate::value::NumaRule;

macro_rules! rules {
    ($($name:ident $word:literal, $section:literal, $title:literal, $function:literal;)*) => {
        /// A rule; [`Rule::title`] says what it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u32)]
        #[allow(missing_docs)] // their titles say what they are
        pub enum Rule { $($name),* }

        impl Rule {
            /// All of them, in the order of their numbers in events.
            pub const ALL: &[Rule] = &[$(Rule::$name),*];

            /// The word that events print.
            pub fn word(self) -> &'static str {
                match self { $(Rule::$name => $word),* }
            }

            /// Section and, where that has several, number within it: `2.4 rule 4`.
            pub fn section(self) -> &'static str {
                match self { $(Rule::$name => $section),* }
            }

            /// What it is, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Rule::$name => $title),* }
            }

            /// The kernel function that has it.
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
    // Whether a page follows a fault.
    Local "local", "2.2", "the page is on this node", "mpol_misplaced";
    OtherPolicy "other_policy", "2.2", "the policy does not allow this node", "mpol_misplaced";
    NoMemory "no_memory", "2.2", "this node has no memory", "mpol_misplaced";
    EarlyLife "early_life", "2.4 rule 3", "early life of a task, page of its own", "should_numa_migrate_memory";
    TwoStage "two_stage", "2.4 rule 4", "two-stage filter", "should_numa_migrate_memory";
    Private "private", "2.4 rule 5", "private page", "should_numa_migrate_memory";
    NoGroup "no_group", "2.4 rule 6", "task without a group", "should_numa_migrate_memory";
    TripleCpu "triple_cpu", "2.4 rule 7", "three times the CPU faults", "should_numa_migrate_memory";
    ThreeQuarters "three_quarters", "2.4 rule 8", "3/4 of the memory faults per CPU fault", "should_numa_migrate_memory";
    NoBrake "no_brake", "2.4", "shared pages without a brake", "should_numa_migrate_memory";
    DstInactive "dst_inactive", "2.5", "this node is not active", "should_numa_migrate_memory";
    SrcInactive "src_inactive", "2.5", "the page's node is not active", "should_numa_migrate_memory";
    BothActive "both_active", "2.5", "3/4 of the memory faults between active nodes", "should_numa_migrate_memory";
    Deferred "deferred", "2.6", "shared migrations are deferred", "mpol_misplaced";
    NotDeferred "not_deferred", "2.6", "nothing deferred any more", "mpol_misplaced";
    // Why a migration that is wanted does not happen.
    RateLimit "rate_limit", "2.7", "rate limit of the node", "numamigrate_update_ratelimit";
    NodeFull "node_full", "2.7", "no zone of the node stays above its high watermark", "migrate_balanced_pgdat";
    NoPage "no_page", "2.7", "no free page without reclaim", "alloc_misplaced_dst_page";
    // Where a task belongs.
    MostFaults "most_faults", "4.4", "the node with most memory faults", "task_numa_placement";
    NearestCpus "nearest_cpus", "4.4", "nearest node with CPUs", "task_numa_placement";
    NoFaults "no_faults", "4.4", "0 faults never win", "task_numa_placement";
    TaskAndGroup "task_and_group", "4.4", "largest sum of task and group weight", "task_numa_placement";
    GroupTopology "group_topology", "4.7", "topology of the group's faults", "preferred_group_nid";
    // How often a task scans.
    ScanStart "scan_start", "1.3", "first scan of a task", "task_tick_numa";
    MovedNode "moved_node", "1.7", "the task came to another node", "update_scan_period";
    NothingShared "nothing_shared", "4.5", "no local and no shared faults", "update_task_scan_period";
    FailedMigration "failed_migration", "4.5", "a migration failed", "update_task_scan_period";
    MostlyPrivate "mostly_private", "4.5", "enough private faults", "update_task_scan_period";
    MostlyLocal "mostly_local", "4.5", "enough local faults", "update_task_scan_period";
    ScanFaster "scan_faster", "4.5", "too few local or private faults", "update_task_scan_period";
    MigrateReset "migrate_reset", "6.2", "the task looks for another node", "task_numa_migrate";
    // Groups.
    Created "created", "5 rule 1", "first shared fault of a task", "task_numa_group";
    NotRunning "not_running", "5 rule 2", "who faulted before no longer runs there", "task_numa_group";
    NoOtherGroup "no_other_group", "5 rule 2", "who faulted before has no group", "task_numa_group";
    LargerGroup "larger_group", "5 rule 3", "a larger group does not give way", "task_numa_group";
    YoungerGroup "younger_group", "5 rule 3", "of two as large the younger does not give way", "task_numa_group";
    OtherMemory "other_memory", "5 rule 4", "another address space, page not shared", "task_numa_group";
    Joined "joined", "5 rule 5", "the smaller or older group gives way", "task_numa_group";
    Left "left", "5", "the task ended", "task_numa_free";
    // Which node is searched for a CPU.
    PreferredNode "preferred_node", "6.2", "the preferred node", "task_numa_migrate";
    OtherNode "other_node", "6.2", "another node", "task_numa_migrate";
    BothWorse "both_worse", "6.2", "task and group would lose", "task_numa_migrate";
    NoCapacity "no_capacity", "6.5", "no capacity on the node", "numa_has_capacity";
    IdleAtOnce "idle_at_once", "6.4", "an idle CPU of a node with room", "task_numa_find_cpu";
    // What a CPU of it offers.
    IdleCpu "idle_cpu", "6.5", "idle CPU", "task_numa_compare";
    IdleRefused "idle_refused", "6.5", "idle CPU, but the move is worse or leaves the nodes unbalanced", "task_numa_compare";
    Itself "itself", "6.5", "the task itself runs there", "task_numa_compare";
    Bound "bound", "6.5", "who runs there may not run here", "task_numa_compare";
    HeldIsBetter "held_is_better", "6.5", "the partner at hand prefers this node", "task_numa_compare";
    SameGroupRoom "same_group_room", "6.5", "same group, and the node has room", "task_numa_compare";
    PlainMove "plain_move", "6.5", "moving gains more than swapping", "task_numa_compare";
    BetterPartner "better_partner", "6.5", "a partner that prefers this node", "task_numa_compare";
    Swap "swap", "6.5", "swap gains enough", "task_numa_compare";
    TooSmall "too_small", "6.5", "improvement below 30, or not 15 above the best", "task_numa_compare";
    NoBetter "no_better", "6.5", "no better than the best, or the nodes get unbalanced", "task_numa_compare";
    // How a search ends.
    MoveTask "move_task", "6.2", "move", "task_numa_migrate";
    SwapTasks "swap_tasks", "6.2", "swap", "task_numa_migrate";
    Stick "stick", "6.2", "no CPU found", "task_numa_migrate";
    OneDomain "one_domain", "6.2", "no domain spans nodes", "task_numa_migrate";
    // Load balancing between nodes.
    Improves "improves", "6.6", "locality improves", "migrate_degrades_locality";
    Degrades "degrades", "6.6", "locality degrades", "migrate_degrades_locality";
    Neutral "neutral", "6.6", "locality stays", "migrate_degrades_locality";
    CacheHot "cache_hot", "6.6", "locality stays, caches are hot", "can_migrate_task";
    Forced "forced", "6.6", "balancing failed too often", "can_migrate_task";
    // Behind the others, so that these keep their numbers: why a migration that is wanted does not happen.
    Unmovable "unmovable", "2.7", "a file's page that is dirty or being written, or code that several map", "migrate_misplaced_page";
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
