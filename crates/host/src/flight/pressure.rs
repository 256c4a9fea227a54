//! Conditions on pressure stall information: the share of the time between two samples, from the `total` of a PSI file.
//!
//! The kernel's averages lag: `avg10` takes 10 s to tell two thirds of a change. A condition holds once; it has to end
//! before it can hold again, so that pressure that stays makes one recording.

use super::when::Pressure;
use crate::Error;
use crate::cgroup::{Mount, Version};
use crate::sample::read;
use mmtwin_event::counters::{self, Row};
use std::path::{Path, PathBuf};

/// A condition and what was seen of it.
pub struct PressureWatch {
    file: PathBuf,
    /// Name of the counter.
    total: String,
    limit: f64,
    lasting: u64,
    /// Time and microseconds of the sample before.
    last: Option<(u64, u64)>,
    /// Since when the share is above the limit.
    since: Option<u64>,
    /// It has held since then.
    held: bool,
    text: Vec<u8>,
}

impl PressureWatch {
    /// A condition on this machine, whose `/proc` and cgroups are there.
    ///
    /// # Errors
    /// If the kernel has no such file: that of a cgroup may come later, if its hierarchy has any.
    pub fn new(pressure: &Pressure, proc: &Path, mounts: &[Mount]) -> Result<PressureWatch, Error> {
        let leaf = format!("{}.pressure", pressure.resource);
        let missing = |what: String| Error::io(what, std::io::Error::from(std::io::ErrorKind::NotFound));
        let file = match &pressure.cgroup {
            None => {
                let file = proc.join("pressure").join(pressure.resource);
                if !file.exists() {
                    return Err(missing(format!("{} (PSI may be off: boot with psi=1)", file.display())));
                }
                file
            }
            Some(cgroup) => {
                let mount = mounts.iter().find(|mount| mount.version == Version::V2).ok_or_else(|| {
                    missing(format!("{leaf} of {cgroup}: only cgroups of version 2 have it, which are not mounted"))
                })?;
                let path = Path::new(cgroup.as_str());
                let below = path.strip_prefix(&mount.path).or_else(|_| path.strip_prefix("/")).unwrap_or(path);
                mount.path.join(below).join(&leaf)
            }
        };
        Ok(PressureWatch {
            file,
            total: format!("{}_total", pressure.kind),
            limit: pressure.percent,
            lasting: pressure.lasting.as_nanos() as u64,
            last: None,
            since: None,
            held: false,
            text: Vec::new(),
        })
    }

    /// Reads the file at this time. True: the condition has begun to hold.
    pub fn look(&mut self, at: u64) -> bool {
        let mut row = Row::default();
        if let Some(text) = read(&mut self.text, &self.file) {
            counters::pressure(text, "", &mut row, &mut Vec::new());
        }
        self.saw(at, row.value(&self.total))
    }

    /// Takes microseconds that were waited until this time; `None`: there is no such file now.
    fn saw(&mut self, at: u64, total: Option<u64>) -> bool {
        let last = std::mem::replace(&mut self.last, total.map(|total| (at, total)));
        let share = last.zip(total).and_then(|((before, was), total)| {
            // Less than before: another cgroup of the same name.
            let waited = total.checked_sub(was)? as f64 * 1000.0;
            (at > before).then(|| (before, 100.0 * waited / (at - before) as f64))
        });
        match share.filter(|(_, percent)| *percent > self.limit) {
            None => (self.since, self.held) = (None, false),
            Some((before, _)) => {
                let since = *self.since.get_or_insert(before);
                if !self.held && at - since >= self.lasting {
                    self.held = true;
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    const SECOND: u64 = 1_000_000_000;

    fn watch(proc: &Path, cgroup: Option<&str>, mounts: &[Mount], lasting: u64) -> Result<PressureWatch, Error> {
        let (cgroup, lasting) = (cgroup.map(str::to_owned), Duration::from_secs(lasting));
        PressureWatch::new(&Pressure { resource: "memory", kind: "full", cgroup, percent: 10.0, lasting }, proc, mounts)
    }

    #[test]
    fn pressure_has_to_last_and_holds_once() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("pressure")).unwrap();
        fs::write(root.path().join("pressure/memory"), "").unwrap();
        let mut watch = watch(root.path(), None, &[], 3).unwrap();
        let (mut total, mut at) = (0, 0);
        let mut second = |percent: u64| {
            (at, total) = (at + SECOND, total + percent * 10_000);
            watch.saw(at, Some(total))
        };
        assert_eq!([50, 50, 50, 5].map(&mut second), [false; 4], "the first sample tells of no time, then two seconds");
        assert_eq!([11, 11, 11, 11, 11].map(&mut second), [false, false, true, false, false]);
        assert_eq!([10, 20, 20, 20].map(&mut second), [false, false, false, true], "10 % is not above 10 %");
        assert!(!watch.saw(100 * SECOND, None) && watch.since.is_none(), "a cgroup that is gone");
    }

    #[test]
    fn files_of_the_machine_and_of_cgroups_are_read() {
        let root = tempfile::tempdir().unwrap();
        let missing = watch(root.path(), None, &[], 0).err().unwrap().to_string();
        assert!(missing.contains("psi=1"), "{missing}");
        let v1 = [Mount { path: root.path().into(), version: Version::V1 }];
        let missing = watch(root.path(), Some("/web"), &v1, 0).err().unwrap().to_string();
        assert!(missing.contains("version 2"), "{missing}");
        let v2 = [Mount { path: root.path().into(), version: Version::V2 }];
        let mut watch = watch(root.path(), Some("/web"), &v2, 0).unwrap();
        assert!(!watch.look(SECOND), "there is none yet");
        fs::create_dir(root.path().join("web")).unwrap();
        let write = |total: u64| {
            let text = format!("some avg10=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n");
            fs::write(root.path().join("web/memory.pressure"), text).unwrap();
        };
        write(0);
        assert!(!watch.look(2 * SECOND));
        write(100_001);
        assert!(watch.look(3 * SECOND));
    }
}
