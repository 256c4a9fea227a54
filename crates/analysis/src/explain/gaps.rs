//! What a recording cannot tell, and which event would.

use super::names::{Names, Place, Subject};
use crate::losses::Losses;
use mmtwin_event::Kind;

/// Something that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What.
    pub what: String,
    /// What would tell.
    pub cure: String,
}

/// What the twin's own events tell.
const OF_PAGE: [(Kind, &str); 2] = [
    (Kind::NumaHintFault, "its hinting faults, and by which rule it followed or stayed"),
    (Kind::NumaMigrateRefused, "why it could not follow a fault that wanted it"),
];
const OF_TASK: [(Kind, &str); 8] = [
    (Kind::NumaPlacement, "when and by which rule its preferred node was chosen"),
    (Kind::NumaNodeFaults, "its and its group's faults by node"),
    (Kind::NumaTaskMigrate, "why it looked for another CPU and what it found"),
    (Kind::NumaSearchCpu, "what each CPU was compared to"),
    (Kind::NumaGroup, "when and why it joined, left or kept its group"),
    (Kind::NumaScanPeriod, "how often it scans, and why"),
    (Kind::NumaHintFault, "its hinting faults, and by which rule pages followed or stayed"),
    (Kind::NumaMigrateRefused, "why pages could not follow its faults"),
];
const OF_GROUP: [(Kind, &str); 4] = [
    (Kind::NumaGroup, "when and why tasks joined or left it"),
    (Kind::NumaPlacement, "which node its tasks prefer, and how many nodes are active"),
    (Kind::NumaNodeFaults, "its faults by node"),
    (Kind::NumaHintFault, "by which rule pages followed or stayed"),
];

/// What kernels trace of a task's way.
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
        cure: "record with a larger --buffer".into(),
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
                gaps.push(Gap { what: what.to_string(), cure: format!("record {event}") });
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
                        (Kind::PageFaultUser, "when it was faulted on"),
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
                missing(&[(Kind::MmMigratePages, "pages that followed its faults")]);
            }
            if !names.recorded.has(Kind::NumaPlacement) && names.samples == 0 {
                gaps.push(Gap {
                    what: "its preferred node and group over time".into(),
                    cure: "no event tells; samples of /proc/PID/sched do, which the twin takes".into(),
                });
            }
        }
        Subject::Group(_) => {
            missing(&OF_GROUP);
            missing(&MOVES[..3]);
        }
    }
    if !twin && !names.recorded.has(Kind::NumaHintFault) {
        let cure = "no kernel traces it; run the scenario on the twin with run.events mmtwin:numa_*".into();
        gaps.insert(0, Gap { what: "which rules decided, and on which figures".into(), cure });
    }
    gaps
}
