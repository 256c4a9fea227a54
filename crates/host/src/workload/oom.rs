//! Telling a process that the out-of-memory killer ended from one that was killed otherwise.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Watches from its making on.
#[derive(Debug)]
pub struct Watch {
    /// The kernel's log, from then on; `None` if it may not be read.
    log: Option<File>,
    kills: u64,
}

impl Watch {
    /// Begins.
    pub fn begin() -> Watch {
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let log = OpenOptions::new().read(true).custom_flags(nonblock).open("/dev/kmsg").ok();
        let log = log.and_then(|mut log| log.seek(SeekFrom::End(0)).ok().map(|_| log));
        Watch { log, kills: kills() }
    }

    /// What the kernel says of the killing of a process; `None`: it killed none.
    pub fn message(&mut self, pid: u32) -> Option<String> {
        let counted = kills() - self.kills;
        let mut record = [0; 8192];
        let mut found = None;
        // Each read gives one record; the last one fails.
        while let Some(length) = self.log.as_mut().and_then(|log| log.read(&mut record).ok()) {
            let text = String::from_utf8_lossy(&record[..length]);
            found = found.or_else(|| of_record(&text, pid));
        }
        found.or_else(|| (counted > 0).then(|| format!("the kernel killed {counted} processes for want of memory")))
    }
}

/// A record of `/dev/kmsg` is `PRIORITY,NUMBER,TIME,FLAGS;TEXT` and lines of properties.
fn of_record(record: &str, pid: u32) -> Option<String> {
    let text = record.split_once(';')?.1.lines().next()?;
    let killed = text.contains("Killed process") && text.split([' ', ',']).any(|word| word == pid.to_string());
    killed.then(|| text.to_string())
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
        let message = of_record(record, 412).unwrap();
        assert!(message.starts_with("Out of memory: Killed process 412") && !message.contains("SUBSYSTEM"));
        assert_eq!(of_record(record, 41), None);
        assert_eq!(of_record("6,1,2,-;other 412", 412), None);
    }

    #[test]
    fn nobody_was_killed() {
        assert_eq!(Watch { log: None, kills: kills() }.message(std::process::id()), None);
    }
}
