//! The workers of a run, as the recorder sees them.

use super::message::{FromWorker, Line, Plan, ToWorker};
use super::placement::Placed;
use super::worker::WORKER;
use crate::Error;
use mmtwin_scenario::Process;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A worker.
#[derive(Debug)]
pub struct Member {
    /// Name of its process.
    pub name: String,
    /// The line to it.
    pub line: Line,
    /// Its regions, once it is ready.
    pub regions: Vec<Placed>,
    /// It has not said that it is done.
    pub runs: bool,
    child: Child,
}

impl Member {
    /// Starts it and tells it its plan; `forked`: as a shell starts programs.
    pub fn start(process: &Process, plan: &Plan, forked: bool) -> Result<Member, Error> {
        let fail = |e| Error::io(format!("starting process {}", process.name), e);
        let (ours, theirs) = UnixStream::pair().map_err(fail)?;
        // Not its path: the executable may have been replaced, and a guest's first file system is gone.
        let mut command = Command::new("/proc/self/exe");
        command.arg(WORKER).stdin(Stdio::from(OwnedFd::from(theirs)));
        if forked {
            // A command that sets its user, be it the same, is forked. Otherwise it begins in the recorder's memory,
            // and NUMA balancing takes its first thread for one of the recorder's.
            command.uid(rustix::process::getuid().as_raw());
        }
        let child = command.spawn().map_err(fail)?;
        // The command holds the other end of the line, which must close with the child.
        drop(command);
        let (name, line) = (process.name.clone(), Line::new(ours));
        let mut member = Member { name, line, regions: Vec::new(), runs: true, child };
        // If it has ended already, its end says why.
        let _ = member.line.send(plan);
        Ok(member)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its threads that have been started: all of them, once it is ready.
    pub fn tids(&self) -> Vec<i32> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid()));
        let tid = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        tasks.into_iter().flatten().filter_map(tid).collect()
    }

    /// Waits until it is ready.
    pub fn ready(&mut self, process: &Process) -> Result<(), Error> {
        match self.line.wait()? {
            Some(FromWorker::Ready(ranges)) => {
                let regions = process.regions.iter().zip(ranges);
                let placed = |(region, (start, length)): (&mmtwin_scenario::workload::Region, (u64, u64))| Placed {
                    region: region.name.clone(),
                    start,
                    end: start + length,
                };
                self.regions = regions.map(placed).collect();
                Ok(())
            }
            Some(FromWorker::Failed(message)) => Err(Error::Workload { process: self.name.clone(), message }),
            _ => Err(self.broken()),
        }
    }

    /// Sends it a message. One that has exited is detected elsewhere.
    pub fn tell(&mut self, message: &ToWorker) {
        let _ = self.line.send(message);
    }

    /// Waits until it has ended and its memory is free; with `now` it is killed. It stays known to `/proc` as long as
    /// this lives. Returns the signal that ended it, if one did.
    pub fn end(&mut self, now: bool) -> Result<Option<i32>, Error> {
        self.runs = false;
        let fail = |e| Error::io(format!("process {}", self.name), e);
        if now {
            self.child.kill().map_err(fail)?;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(Pid::from_child(&self.child)), options).map_err(|e| fail(e.into()))?;
        Ok(status.and_then(|status| status.terminating_signal()))
    }

    /// It ended without a word.
    pub fn broken(&mut self) -> Error {
        let message = match self.end(false) {
            Ok(Some(signal)) => format!("it was killed by signal {signal}"),
            Ok(None) => "it exited before its work was done".into(),
            Err(error) => error.to_string(),
        };
        Error::Workload { process: self.name.clone(), message }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Both fail if it has ended and been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
