//! Out of memory: victims, the reaper, and how long the allocator kept trying.

use mmtwin_event::vocabulary::{MarkVictim, ReclaimRetryZone};
use mmtwin_event::{Event, Kind};

/// Victims kept with their names; all are counted.
const MAX_VICTIMS: usize = 64;

/// What events of the OOM killer tell.
#[derive(Clone, Debug, Default)]
pub struct Oom {
    /// The first victims.
    pub victims: Vec<Victim>,
    /// All victims.
    pub killed: u64,
    /// Victims whose memory was reaped to the end.
    pub reaped: u64,
    /// Victims the reaper left alone.
    pub skipped: u64,
    /// Zones looked at to decide whether reclaim may try again.
    pub retry_checks: u64,
    /// Those that passed the watermark test.
    pub retry_passed: u64,
    /// Largest number of reclaims in a row without progress.
    pub no_progress: Option<i32>,
}

/// A process chosen to die.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Nanoseconds of the trace clock.
    pub at: u64,
    /// Thread id.
    pub pid: i32,
    /// Name, if the event has it.
    pub comm: Option<String>,
    /// Resident anonymous memory in KiB, if the event has it.
    pub anon_rss: Option<u64>,
    /// All resident memory in KiB, if the event has it.
    pub rss: Option<u64>,
}

impl Oom {
    /// Takes one event of this subject.
    pub fn event(&mut self, ev: &Event<'_>) {
        match ev.kind {
            Kind::MarkVictim => {
                self.killed += 1;
                if self.victims.len() < MAX_VICTIMS {
                    let e: MarkVictim = ev.typed();
                    let rss = [e.anon_rss, e.file_rss, e.shmem_rss].into_iter().flatten().reduce(u64::saturating_add);
                    let comm = e.comm.map(|comm| String::from_utf8_lossy(comm.bytes(ev)).into());
                    self.victims.push(Victim { at: ev.ts, pid: e.pid, comm, anon_rss: e.anon_rss, rss });
                }
            }
            Kind::FinishTaskReaping => self.reaped += 1,
            Kind::SkipTaskReaping => self.skipped += 1,
            Kind::ReclaimRetryZone => {
                let e: ReclaimRetryZone = ev.typed();
                self.retry_checks += 1;
                self.retry_passed += u64::from(e.wmark_check);
                self.no_progress = self.no_progress.max(Some(e.no_progress_loops));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;

    #[test]
    fn all_victims_count_and_the_first_are_kept() {
        let mut oom = Oom::default();
        for pid in 0..100 {
            oom.event(&EventBuilder::new(Kind::MarkVictim).set("pid", pid).text("comm", "hog").event());
        }
        assert_eq!((oom.killed, oom.victims.len()), (100, MAX_VICTIMS));
        assert_eq!(oom.victims[1], Victim { at: 0, pid: 1, comm: Some("hog".into()), anon_rss: None, rss: None });
    }

    #[test]
    fn retries_keep_the_longest_run_without_progress() {
        let mut oom = Oom::default();
        for (loops, passed) in [(0, 1), (12, 0), (3, 1)] {
            let e =
                EventBuilder::new(Kind::ReclaimRetryZone).set("no_progress_loops", loops).set("wmark_check", passed);
            oom.event(&e.event());
        }
        assert_eq!((oom.retry_checks, oom.retry_passed, oom.no_progress), (3, 2, Some(12)));
    }
}
