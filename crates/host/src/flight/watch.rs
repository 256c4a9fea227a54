//! The conditions of `--when`, on samples and events.

use super::pressure::PressureWatch;
use super::samples::Sample;
use super::stalls::Told;
use super::when::{Condition, When};
use crate::Error;
use crate::cgroup::Mount;
use std::path::Path;
use std::time::Duration;

/// Why a recording is written out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// For the name of the recording.
    pub name: &'static str,
    /// What happened, in a sentence.
    pub text: String,
}

/// All conditions.
#[derive(Default)]
pub struct Watches {
    pressures: Vec<(String, PressureWatch)>,
    oom: bool,
    /// Kills so far; `None`: no sample yet.
    kills: Option<u64>,
    stall: Option<Duration>,
}

impl Watches {
    /// On a machine with this `/proc` and these cgroups.
    ///
    /// # Errors
    /// If the kernel does not have what a condition needs.
    pub fn new(when: &[When], proc: &Path, mounts: &[Mount]) -> Result<Watches, Error> {
        let mut watches = Watches::default();
        for When { text, condition } in when {
            match condition {
                Condition::Pressure(pressure) => {
                    watches.pressures.push((text.clone(), PressureWatch::new(pressure, proc, mounts)?));
                }
                Condition::OutOfMemory => watches.oom = true,
                Condition::Stall(limit) => watches.stall = Some(watches.stall.map_or(*limit, |it| it.min(*limit))),
            }
        }
        Ok(watches)
    }

    /// The shortest stall that is told; `None`: none is.
    pub fn stall(&self) -> Option<Duration> {
        self.stall
    }

    /// Looks at the machine and at a sample of its counters, taken at this time.
    pub fn sampled(&mut self, at: u64, sample: &Sample) -> Vec<Cause> {
        let mut causes = Vec::new();
        for (text, watch) in &mut self.pressures {
            if watch.look(at) {
                causes.push(Cause { name: "psi", text: text.clone() });
            }
        }
        let vmstat = sample.iter().find(|(source, _)| source == "vmstat");
        if let Some(kills) = vmstat.and_then(|(_, row)| row.value("oom_kill")) {
            let before = self.kills.replace(kills);
            if self.oom && before.is_some_and(|before| kills > before) {
                causes.push(Cause { name: "oom", text: "a process was killed (oom_kill of /proc/vmstat)".into() });
            }
        }
        causes
    }

    /// Takes what events told.
    pub fn told(&self, told: Told) -> Option<Cause> {
        match told {
            Told::Victim if self.oom => {
                Some(Cause { name: "oom", text: "a process was chosen to be killed (oom:mark_victim)".into() })
            }
            Told::Victim => None,
            Told::Stall(pid, ns) => {
                let unit = if ns < 1_000_000_000 { 1_000 } else { 1_000_000 };
                let waited = Duration::from_nanos(ns / unit * unit);
                Some(Cause { name: "stall", text: format!("task {pid} waited {waited:?} in reclaim or compaction") })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_event::counters::Row;

    #[test]
    fn conditions_on_counters_and_events() {
        let when = ["oom", "stall > 2s", "stall > 500ms"].map(|text| text.parse().unwrap());
        let mut watches = Watches::new(&when, Path::new("/nowhere"), &[]).unwrap();
        let sample = |kills| {
            let row = Row { key: String::new(), names: vec!["oom_kill".into()], values: vec![kills] };
            vec![("vmstat".to_owned(), row)]
        };
        let names = |causes: Vec<Cause>| causes.iter().map(|cause| cause.name).collect::<Vec<_>>();
        assert_eq!(names(watches.sampled(1, &sample(Some(7)))), [""; 0], "those before the start are none of ours");
        assert_eq!(names(watches.sampled(2, &sample(None))), [""; 0]);
        assert_eq!(names(watches.sampled(3, &sample(Some(8)))), ["oom"]);
        assert_eq!(watches.stall(), Some(Duration::from_millis(500)));
        assert_eq!(watches.told(Told::Victim).unwrap().name, "oom");
        let stall = watches.told(Told::Stall(7, 1_234_567_890)).unwrap();
        assert_eq!(stall.text, "task 7 waited 1.234s in reclaim or compaction");
        let mut quiet = Watches::default();
        assert_eq!(quiet.told(Told::Victim), None);
        assert_eq!(
            (names(quiet.sampled(1, &sample(Some(1)))), names(quiet.sampled(2, &sample(Some(2))))),
            (vec![], vec![])
        );
    }
}
