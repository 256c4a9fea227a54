//! Telling a process that the out-of-memory killer ended from one that was killed otherwise.

use crate::clock;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Watches from its making on.
#[derive(Debug)]
pub struct Watch {
    /// The kernel's log, from then on; `None` if it may not be read.
    log: Option<File>,
    /// Kills that the kernel had counted then.
    before: u64,
    /// What the kernel has said of kills since, with the time at which it was read.
    said: Vec<(u64, String)>,
    /// Kills that have been told.
    told: u64,
}

/// The killing of a process for lack of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    /// When, by the trace clock: as soon as the recorder read of it.
    pub at: u64,
    /// The kernel's words, or that it counted one.
    pub message: String,
}

impl Watch {
    /// Begins.
    pub fn begin() -> Watch {
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let log = OpenOptions::new().read(true).custom_flags(nonblock).open("/dev/kmsg").ok();
        let log = log.and_then(|mut log| log.seek(SeekFrom::End(0)).ok().map(|_| log));
        Watch { log, before: kills(), said: Vec::new(), told: 0 }
    }

    /// Becomes readable when the kernel says something.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.log.as_ref().map(AsFd::as_fd)
    }

    /// Takes what the kernel has said. Without it, the time of a kill is when its victim was gone, memory and all.
    pub fn read(&mut self) {
        let mut record = [0; 8192];
        // Each read gives one record; the last one fails.
        while let Some(length) = self.log.as_mut().and_then(|log| log.read(&mut record).ok()) {
            let text = String::from_utf8_lossy(&record[..length]);
            self.said.extend(of_record(&text).map(|text| (clock::now(), text)));
        }
    }

    /// How the kernel killed a process that has ended; `None`: it did not.
    pub fn kill(&mut self, pid: u32) -> Option<Kill> {
        self.read();
        let said = self.said.iter().position(|(_, text)| names(text, pid)).map(|at| self.said.remove(at));
        let kill = match said {
            Some((at, message)) => Kill { at, message },
            None if kills() > self.before + self.told => {
                Kill { at: clock::now(), message: "the kernel counted a process killed by the OOM killer".into() }
            }
            None => return None,
        };
        self.told += 1;
        Some(kill)
    }
}

/// A record of `/dev/kmsg` is `PRIORITY,NUMBER,TIME,FLAGS;TEXT` and lines of properties.
fn of_record(record: &str) -> Option<String> {
    let text = record.split_once(';')?.1.lines().next()?;
    text.contains("Killed process").then(|| text.to_string())
}

fn names(text: &str, pid: u32) -> bool {
    text.split([' ', ',']).any(|word| word == pid.to_string())
}

fn kills() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_record_names_the_process() {
        let record = "3,950,88,-;Out of memory: Killed process 412 (eater) total-vm:9kB, anon-rss:8kB\n SUBSYSTEM=x\n";
        let message = of_record(record).unwrap();
        assert!(message.starts_with("Out of memory: Killed process 412") && !message.contains("SUBSYSTEM"));
        assert!(names(&message, 412) && !names(&message, 41));
        assert_eq!(of_record("6,1,2,-;other 412"), None);
    }

    #[test]
    fn each_of_several_kills_is_told_of_its_own_process() {
        let said = |pid: u32| format!("Memory cgroup out of memory: Killed process {pid} (a) total-vm:9kB");
        let mut watch = Watch { log: None, before: kills(), said: vec![(7, said(11)), (9, said(12))], told: 0 };
        assert_eq!(watch.kill(12), Some(Kill { at: 9, message: said(12) }));
        assert_eq!(watch.kill(11), Some(Kill { at: 7, message: said(11) }));
        assert_eq!((watch.kill(11), watch.said.len()), (None, 0));
    }

    #[test]
    fn nobody_was_killed() {
        assert_eq!(Watch { log: None, before: kills(), said: Vec::new(), told: 0 }.kill(std::process::id()), None);
    }
}
