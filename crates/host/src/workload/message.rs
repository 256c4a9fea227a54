//! What the recorder and a worker, the process that is a process of the scenario, tell each other: JSON, a line each.

use super::pace::Pace;
use crate::Error;
use mmtwin_event::results::PhaseResult;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// What a worker is sent first.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Resolved scenario.
    pub scenario: serde_json::Value,
    /// Index of the process.
    pub process: u32,
    /// Speeds of this machine.
    pub pace: Pace,
    /// By region: the file behind it, open in the recorder.
    pub files: Vec<Option<PathBuf>>,
    /// Where these files were made.
    pub directory: PathBuf,
    /// File to write its pid into, to be in its cgroup.
    pub cgroup: Option<PathBuf>,
    /// Names and directories of all cgroups of the scenario.
    pub cgroups: Vec<(String, PathBuf)>,
}

/// What a worker tells.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromWorker {
    /// Everything is set up; addresses and lengths of the regions.
    Ready(Vec<(u64, u64)>),
    /// All threads stand between two phases, of which the first achieved this; before the first phase of a process
    /// that starts later nothing has.
    Boundary(Option<PhaseResult>),
    /// It has done all it will do. `cut`: not all phases, for the run is over.
    Done {
        /// The run ended before its last phase did.
        cut: bool,
        /// By thread: the CPU on which it began its first phase; empty: not all did.
        began: Vec<u32>,
    },
    /// It cannot continue.
    Failed(String),
}

/// What a worker is sent later.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum ToWorker {
    /// The run begins.
    Go {
        /// Its beginning, by the trace clock.
        start: u64,
    },
    /// The boundary has been recorded: continue.
    On,
}

/// One end of the line between them.
#[derive(Debug)]
pub struct Line {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl Line {
    /// The line that goes through a socket.
    pub fn new(stream: UnixStream) -> Line {
        Line { stream, buffer: Vec::new() }
    }

    /// The socket, to wait for.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Sends a message.
    pub fn send(&mut self, message: &impl Serialize) -> Result<(), Error> {
        let mut text = serde_json::to_vec(message).map_err(|e| Error::io("a message to a worker", e))?;
        text.push(b'\n');
        self.stream.write_all(&text).map_err(|e| Error::io("a message to a worker", e))
    }

    /// Reads what has come, waiting if nothing has. False: the other end is closed.
    pub fn read(&mut self) -> Result<bool, Error> {
        let mut part = [0; 4096];
        loop {
            match self.stream.read(&mut part) {
                Ok(read) => {
                    self.buffer.extend(&part[..read]);
                    return Ok(read > 0);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // A worker that was killed with something unread in its socket.
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(false),
                Err(e) => return Err(Error::io("a message of a worker", e)),
            }
        }
    }

    /// The next message of those that were read.
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        let Some(end) = self.buffer.iter().position(|&b| b == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.buffer.drain(..=end).collect();
        serde_json::from_slice(&line).map(Some).map_err(|e| Error::io("a message of a worker", e))
    }

    /// Waits for a message; `None`: the other end is closed.
    pub fn wait<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        loop {
            if let Some(message) = self.next()? {
                return Ok(Some(message));
            }
            if !self.read()? {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_and_in_order() {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut a, mut b) = (Line::new(a), Line::new(b));
        a.send(&ToWorker::Go { start: 7 }).unwrap();
        a.send(&ToWorker::On).unwrap();
        assert_eq!(b.wait::<ToWorker>().unwrap(), Some(ToWorker::Go { start: 7 }));
        assert_eq!(b.next::<ToWorker>().unwrap(), Some(ToWorker::On));
        // Longer than one read.
        let files = vec![Some(PathBuf::from("f".repeat(10_000)))];
        let pace = Pace { ticks: 1.5, rounds: 0.25 };
        let (scenario, directory) = (serde_json::Value::Null, PathBuf::from("/data"));
        let (process, cgroup, cgroups) = (1, None, Vec::new());
        a.send(&Plan { scenario, process, pace, files, directory, cgroup, cgroups }).unwrap();
        let plan = b.wait::<Plan>().unwrap().unwrap();
        assert_eq!((plan.pace, plan.files[0].as_ref().unwrap().as_os_str().len()), (pace, 10_000));
        drop(a);
        assert_eq!(b.wait::<ToWorker>().unwrap(), None);
    }
}
