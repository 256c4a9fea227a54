//! The recorded command, and the signals that end a recording.

use crate::Error;
use mmtwin_event::manifest::Exit;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Command};

/// Signals as something that can be waited for.
pub struct Signals(SignalDelivery<UnixStream, SignalOnly>);

impl Signals {
    /// Takes SIGINT, SIGTERM and SIGHUP, and SIGCHLD to be woken by the end of the command.
    pub fn take() -> Result<Signals, Error> {
        let fail = |e| Error::io("signal handlers", e);
        let (read, write) = UnixStream::pair().map_err(fail)?;
        let signals = [SIGINT, SIGTERM, SIGHUP, SIGCHLD];
        SignalDelivery::with_pipe(read, write, SignalOnly, signals).map(Signals).map_err(fail)
    }

    /// Readable when a signal came.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.get_read().as_fd()
    }

    /// Signals that came since the last call.
    pub fn pending(&mut self) -> Vec<i32> {
        self.0.pending().collect()
    }
}

/// The command.
pub struct Child {
    process: process::Child,
    pid: Pid,
}

impl Child {
    /// Starts it.
    pub fn start(command: &[OsString]) -> Result<Child, Error> {
        let (program, arguments) = command.split_first().ok_or_else(|| {
            let source = std::io::Error::from(std::io::ErrorKind::InvalidInput);
            Error::Command { command: String::new(), source }
        })?;
        let process = Command::new(program)
            .args(arguments)
            .spawn()
            .map_err(|source| Error::Command { command: program.to_string_lossy().into_owned(), source })?;
        let pid = Pid::from_child(&process);
        Ok(Child { process, pid })
    }

    /// It has ended. What `/proc` has of it can be read until [`Child::take`].
    pub fn has_ended(&self) -> Result<bool, Error> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid), options);
        status.map(|s| s.is_some()).map_err(|e| Error::io("waiting for the command", e))
    }

    /// Waits for it. Returns how it ended, and its user and system seconds with those of children it waited for.
    pub fn take(mut self) -> Result<(Exit, f64, f64), Error> {
        let fail = |e: std::io::Error| Error::io("waiting for the command", e);
        waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).map_err(|e| fail(e.into()))?;
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let (user, system) = times(&stat).unwrap_or_default();
        let status = self.process.wait().map_err(fail)?;
        let exit = match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(0)),
        };
        Ok((exit, user as f64 / ticks, system as f64 / ticks))
    }

    /// Gives it a signal that was meant for both. A terminal sends SIGINT to the whole foreground process group, so
    /// the command has it already.
    pub fn pass_on(&self, signal: i32) {
        let in_foreground = fs::read_to_string("/proc/self/stat").is_ok_and(|stat| is_foreground(&stat));
        if !(signal == SIGINT && in_foreground) {
            let signal = if signal == SIGINT { Signal::INT } else { Signal::TERM };
            // It may have ended meanwhile.
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        // It may have ended meanwhile.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Numbers of `/proc/PID/stat` behind the name, which may hold anything: field 3 is the first.
fn stat_fields(stat: &str) -> Option<Vec<&str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace().collect())
}

/// User and system ticks, those of waited-for children included (fields 14 to 17).
fn times(stat: &str) -> Option<(u64, u64)> {
    let fields = stat_fields(stat)?;
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some((field(14)? + field(16)?, field(15)? + field(17)?))
}

/// The process group (field 5) is the terminal's foreground group (field 8).
fn is_foreground(stat: &str) -> bool {
    stat_fields(stat).is_some_and(|fields| fields.len() > 5 && fields[2] == fields[5])
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "77 (a) (b c) S 1 77 70 34816 77 4194304 1 2 3 4 150 25 10 5 20 0 1 0 9";

    #[test]
    fn times_and_group_of_a_process_with_any_name() {
        assert_eq!(times(STAT), Some((160, 30)));
        assert!(is_foreground(STAT));
        assert!(!is_foreground(&STAT.replace("34816 77", "34816 70")));
        assert_eq!(times("77 (x"), None);
    }

    #[test]
    fn the_end_of_a_command_is_told() {
        let run = |script: &str| Child::start(&["sh", "-c", script].map(OsString::from)).unwrap().take().unwrap().0;
        assert_eq!(run("exit 7"), Exit::Code(7));
        assert_eq!(run("kill -KILL $$"), Exit::Signal(9));
        let error = Child::start(&["/no/such/program".into()]).err().unwrap().to_string();
        assert!(error.contains("/no/such/program"), "{error}");
    }
}
