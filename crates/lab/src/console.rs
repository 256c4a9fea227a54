//! The guest's console: its progress, and the reason why it stopped.

use crate::Error;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Progress of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The kernel starts and is set up.
    Booting,
    /// The agent runs.
    Running,
    /// Results are written out.
    Sending,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Booting => "booting",
            Stage::Running => "running the workload",
            Stage::Sending => "writing results",
        })
    }
}

/// Lines that an error shows.
const LAST: usize = 12;
/// How the first process's lines begin.
const OWN: &str = "mmtwin-lab: ";

/// A console that is read while the guest writes it.
pub(crate) struct Console {
    file: File,
    partial: Vec<u8>,
    lines: Vec<String>,
    pub stage: Stage,
    /// Seconds of the guest's clock at which the agent started and ended.
    pub times: [Option<f64>; 2],
    end: Option<End>,
    message: Vec<String>,
    panic: Option<String>,
    out_of_memory: Option<String>,
}

/// How the first process ended.
struct End {
    kind: String,
    number: i32,
}

impl Console {
    /// Creates the file that QEMU writes to.
    pub fn create(path: &Path) -> Result<Console, Error> {
        let create = || {
            File::create(path)?;
            File::open(path)
        };
        let file = create().map_err(|e| Error::io(path.display(), e))?;
        Ok(Console {
            file,
            partial: Vec::new(),
            lines: Vec::new(),
            stage: Stage::Booting,
            times: [None; 2],
            end: None,
            message: Vec::new(),
            panic: None,
            out_of_memory: None,
        })
    }

    /// Reads new output; returns the number of whole lines.
    pub fn read(&mut self) -> Result<usize, Error> {
        self.file.read_to_end(&mut self.partial).map_err(|e| Error::io("console", e))?;
        let before = self.lines.len();
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let rest = self.partial.split_off(end + 1);
            let line = std::mem::replace(&mut self.partial, rest);
            self.line(String::from_utf8_lossy(&line).trim_end().to_string());
        }
        Ok(self.lines.len() - before)
    }

    /// The last whole line.
    pub fn last(&self) -> Option<&str> {
        self.lines.last().map(String::as_str)
    }

    /// The last lines, for an error.
    pub fn tail(&self) -> Vec<String> {
        let mut tail = self.lines[self.lines.len().saturating_sub(LAST)..].to_vec();
        tail.extend((!self.partial.is_empty()).then(|| String::from_utf8_lossy(&self.partial).trim_end().to_string()));
        tail
    }

    /// Result of a guest that has stopped, with this room for its recording, in bytes.
    pub fn result(&self, room: u64) -> Result<(), Error> {
        let Some(end) = &self.end else { return Err(self.silence()) };
        let message = if self.message.is_empty() { "no reason given".into() } else { self.message.join("\n") };
        match (end.kind.as_str(), &self.out_of_memory) {
            ("done", _) => Ok(()),
            ("full", _) => Err(Error::Results { room }),
            ("workload", Some(message)) => Err(Error::GuestMemory { message: message.clone(), console: self.tail() }),
            ("workload", None) => Err(Error::Workload { status: end.number, message }),
            _ => Err(Error::SetUp { message }),
        }
    }

    /// Reason why it ended without a status.
    fn silence(&self) -> Error {
        let console = self.tail();
        match (&self.panic, &self.out_of_memory) {
            // A kernel without memory for its first process reports it in its last words, or just before.
            (Some(message), None) if message.contains("emory") => {
                Error::GuestMemory { message: message.clone(), console }
            }
            (Some(_), Some(message)) => Error::GuestMemory { message: message.clone(), console },
            (Some(message), None) => Error::Panic { message: message.clone(), console },
            (None, _) => Error::Died { stage: self.stage, console },
        }
    }

    fn enter(&mut self, stage: Stage, time: Option<&str>) {
        self.stage = stage;
        self.times[usize::from(stage == Stage::Sending)] = time.and_then(|time| time.parse().ok());
    }

    fn line(&mut self, line: String) {
        let text = without_time(&line);
        if let Some(own) = text.strip_prefix(OWN) {
            let mut words = own.split(' ');
            match words.next() {
                Some("running") => self.enter(Stage::Running, words.next()),
                Some("sending") => self.enter(Stage::Sending, words.next()),
                Some("|") => self.message.push(own.get(2..).unwrap_or_default().to_string()),
                Some("end") => {
                    let end = words.next().zip(words.next().and_then(|number| number.parse().ok()));
                    self.end = end.map(|(kind, number)| End { kind: kind.to_string(), number });
                }
                _ => {}
            }
        }
        if let Some(message) = text.strip_prefix("Kernel panic - not syncing: ") {
            self.panic.get_or_insert_with(|| message.to_string());
        }
        if text.starts_with("Out of memory: ") || text.starts_with("Initramfs unpacking failed: write error") {
            self.out_of_memory.get_or_insert_with(|| text.to_string());
        }
        self.lines.push(line);
    }
}

/// A kernel's line without the time that it begins with.
fn without_time(line: &str) -> &str {
    match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((time, text)) if time.trim().parse::<f64>().is_ok() => text,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn console(pieces: &[&str]) -> Console {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("console");
        let mut console = Console::create(&path).expect("console");
        let mut guest = File::options().append(true).open(path).expect("file");
        for piece in pieces {
            guest.write_all(piece.as_bytes()).expect("written");
            console.read().expect("read");
        }
        console
    }

    #[test]
    fn stages_and_times() {
        let console =
            console(&["x\r\nmmtwin-lab: runn", "ing 3.25\nmmtwin-lab: no /proc/x\nmmtwin-lab: sending 9.5\n"]);
        assert_eq!((console.stage, console.times), (Stage::Sending, [Some(3.25), Some(9.5)]));
        assert_eq!(console.tail()[0], "x");
    }

    #[test]
    fn why_a_guest_stopped() {
        let why = |pieces: &[&str]| console(pieces).result(64).expect_err("no results");
        let panic = why(&["[    1.5] Kernel panic - not syncing: VFS: no root\n[    1.6] CPU: 0\n"]);
        assert!(matches!(&panic, Error::Panic { message, console } if message == "VFS: no root" && console.len() == 2));
        let memory = why(&["[ 1.0] Kernel panic - not syncing: System is deadlocked on memory\n"]);
        assert!(matches!(memory, Error::GuestMemory { .. }));
        let unpacked =
            why(&["[ 1.0] Initramfs unpacking failed: write error\n[ 2.0] Kernel panic - not syncing: No init\n"]);
        assert!(matches!(unpacked, Error::GuestMemory { .. }));
        let silent = why(&["half a li"]);
        assert!(matches!(silent, Error::Died { stage: Stage::Booting, console } if console == ["half a li"]));
    }

    #[test]
    fn how_the_first_process_ended() {
        let of = |text: &str| console(&[text]).result(64);
        assert!(of("mmtwin-lab: end done 0\r\n").is_ok());
        let workload = "mmtwin-lab: | no such\nmmtwin-lab: |  node\nmmtwin-lab: end workload 3\n";
        let failed = of(workload).expect_err("failed");
        assert!(matches!(&failed, Error::Workload { status: 3, message } if message == "no such\n node"), "{failed}");
        let killed = of(&format!("[ 7.0] Out of memory: Killed process 1\n{workload}"));
        assert!(matches!(killed, Err(Error::GuestMemory { .. })));
        assert!(matches!(of("mmtwin-lab: end full 0\n"), Err(Error::Results { room: 64 })));
        let set_up = of("mmtwin-lab: | mount: no\nmmtwin-lab: end set-up 0\n");
        assert!(matches!(set_up, Err(Error::SetUp { message }) if message == "mount: no"));
        assert!(matches!(of("mmtwin-lab: end done\n"), Err(Error::Died { .. })));
    }

    #[test]
    fn times_of_the_kernel_are_no_part_of_a_message() {
        assert_eq!(without_time("[    1.234567] text"), "text");
        assert_eq!(without_time("[x] text"), "[x] text");
    }
}
