//! What was not recorded, and which event to record for it.

use super::names::{Names, Place, Subject};
use crate::losses::Losses;
use mmtwin_event::Kind;

/// Something that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What.
    pub what: String,
    /// What to record.
    pub fix: String,
}

/// What the twin's own events report.
const OF_PAGE: [(Kind, &str); 2] = [
    (Kind::NumaHintFault, "its hinting faults, and by which rule it was migrated or not"),
    (Kind::NumaMigrateRefused, "why its migration failed"),
];
const OF_TASK: [(Kind, &str); 8] = [
    (Kind::NumaPlacement, "when and by which rule its preferred node was chosen"),
    (Kind::NumaNodeFaults, "its and its group's faults by node"),
    (Kind::NumaTaskMigrate, "its searches for another CPU"),
    (Kind::NumaSearchCpu, "how each CPU was compared"),
    (Kind::NumaGroup, "when and why it joined, left or stayed in its group"),
    (Kind::NumaScanPeriod, "its scan period, and why it changed"),
    (Kind::NumaHintFault, "its hinting faults, and by which rule pages were migrated or not"),
    (Kind::NumaMigrateRefused, "why page migrations failed"),
];
const OF_GROUP: [(Kind, &str); 4] = [
    (Kind::NumaGroup, "when and why tasks joined or left it"),
    (Kind::NumaPlacement, "which node its tasks prefer, and how many nodes are active"),
    (Kind::NumaNodeFaults, "its faults by node"),
    (Kind::NumaHintFault, "by which rule pages were migrated or not"),
];

/// What kernels trace of a task's moves.
const MOVES: [(Kind, &str); 4] = [
    (Kind::SchedMoveNuma, "moves of tasks"),
    (Kind::SchedSwapNuma, "swaps of tasks"),
    (Kind::SchedStickNuma, "searches that found no CPU"),
    (Kind::SchedMigrateTask, "changes of CPU for other reasons"),
];

/// What is not known because the kernel lost events.
pub(super) fn lost(losses: &Losses) -> Option<Gap> {
    let lost = losses.total();
    let unknown = if lost.unknown_gaps > 0 { " at least" } else { "" };
    losses.any().then(|| Gap {
        what: format!("what happened in {} gaps, where{unknown} {} events were lost", lost.gaps, lost.events),
        fix: "record with a larger --buffer".into(),
    })
}

/// What is not known of a subject.
pub fn of(names: &Names, subject: &Subject) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let full = |kind: Kind| kind.schema().map_or(String::new(), |schema| format!("{}:{}", schema.system, schema.name));
    let twin = names.source.arm == "twin";
    let mut missing = |kinds: &[(Kind, &'static str)]| {
        for (kind, what) in kinds.iter().filter(|(kind, _)| !names.recorded.has(*kind)) {
            let event = full(*kind);
            if twin || !event.starts_with("mmtwin:") {
                gaps.push(Gap { what: what.to_string(), fix: format!("record {event}") });
            }
        }
    };
    match subject {
        Subject::Page(place) => {
            missing(&OF_PAGE);
            if !names.recorded.has(Kind::NumaHintFault) {
                missing(match place {
                    Place::Frame(_) => &[
                        (Kind::MmPageAlloc, "when the frame was allocated"),
                        (Kind::MmPageFree, "when the frame was freed"),
                    ],
                    _ => &[
                        (Kind::PageFaultUser, "page faults on it"),
                        (Kind::SetMigrationPte, "when its migrations began"),
                        (Kind::RemoveMigrationPte, "when its migrations ended, and in which frame"),
                        (Kind::MmMigratePages, "why it was migrated"),
                    ],
                });
            }
        }
        Subject::Task(_) => {
            missing(&OF_TASK);
            missing(&MOVES);
            if !names.recorded.has(Kind::NumaHintFault) {
                missing(&[(Kind::MmMigratePages, "pages migrated on its faults")]);
            }
            if !names.recorded.has(Kind::NumaPlacement) && names.samples == 0 {
                gaps.push(Gap {
                    what: "its preferred node and group over time".into(),
                    fix: "no event reports it; sample /proc/PID/sched, as the twin does".into(),
                });
            }
        }
        Subject::Group(_) => {
            missing(&OF_GROUP);
            missing(&MOVES[..3]);
        }
    }
    if !twin && !names.recorded.has(Kind::NumaHintFault) {
        let fix = "kernels do not trace it; run the scenario on the twin with run.events mmtwin:numa_*".into();
        gaps.insert(0, Gap { what: "the rules that decided, and their figures".into(), fix });
    }
    gaps
}
