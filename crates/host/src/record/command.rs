//! The recorded command, and the signals that end a recording.

use crate::Error;
use mmtwin_event::manifest::Exit;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, kill_process, setrlimit, waitid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{self, Command};

/// Signals as something that can be waited for.
pub struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
    /// Those that are told.
    told: Vec<i32>,
}

impl Signals {
    /// Takes SIGINT, SIGTERM and SIGHUP, and SIGCHLD to be woken by the end of the command. Where SIGHUP is ignored,
    /// as below `nohup`, it stays ignored.
    pub fn take() -> Result<Signals, Error> {
        Signals::take_with(&[])
    }

    /// The same, and others.
    pub fn take_with(others: &[i32]) -> Result<Signals, Error> {
        let fail = |e| Error::io("signal handlers", e);
        let (read, write) = UnixStream::pair().map_err(fail)?;
        let mut told = [&[SIGINT, SIGTERM], others].concat();
        if !ignored(SIGHUP) {
            told.push(SIGHUP);
        }
        let signals = told.iter().copied().chain([SIGCHLD]);
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, signals).map_err(fail)?;
        Ok(Signals { delivery, told })
    }

    /// Readable when a signal came.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }

    /// Signals that came since the last call, but for SIGCHLD.
    pub fn pending(&mut self) -> Vec<i32> {
        self.delivery.pending().filter(|signal| self.told.contains(signal)).collect()
    }
}

/// Whether this process was started with a signal ignored, as below `nohup`.
pub fn ignored(signal: i32) -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, signal))
}

/// A signal is ignored, by a text of `/proc/PID/status`.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The command.
pub struct Child {
    process: process::Child,
    pid: Pid,
}

impl Child {
    /// Starts it, with this limit of open files if one is given.
    pub fn start(command: &[OsString], files: Option<Rlimit>) -> Result<Child, Error> {
        let (program, arguments) = command.split_first().ok_or_else(|| {
            let source = std::io::Error::from(std::io::ErrorKind::InvalidInput);
            Error::Command { command: String::new(), source }
        })?;
        let mut command = Command::new(program);
        command.args(arguments);
        if let Some(files) = files {
            let set = move || Ok(setrlimit(Resource::Nofile, files)?);
            // SAFETY: between fork and exec this makes one system call; it allocates nothing and takes no lock.
            unsafe { command.pre_exec(set) };
        }
        let process = command
            .spawn()
            .map_err(|source| Error::Command { command: program.to_string_lossy().into_owned(), source })?;
        let pid = Pid::from_child(&process);
        Ok(Child { process, pid })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
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
        let (user, system) = times_of(self.process.id()).unwrap_or_default();
        let status = self.process.wait().map_err(fail)?;
        let exit = match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(0)),
        };
        Ok((exit, user, system))
    }

    /// Gives it a signal that was meant for both. A terminal sends SIGINT to the whole foreground process group, so
    /// the command has it already.
    pub fn pass_on(&self, signal: i32) {
        let in_foreground = fs::read_to_string("/proc/self/stat").is_ok_and(|stat| is_foreground(&stat));
        if !(signal == SIGINT && in_foreground) {
            let signal = match signal {
                SIGINT => Signal::INT,
                SIGHUP => Signal::HUP,
                _ => Signal::TERM,
            };
            // It may have ended meanwhile.
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Ends it at once; [`Child::take`] waits for that.
    pub fn kill(&mut self) {
        // It may have ended meanwhile.
        let _ = self.process.kill();
    }
}

/// User and system seconds of a process that runs or has not been waited for, with those of children that it waited for.
pub(crate) fn times_of(pid: u32) -> Option<(f64, f64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let (user, system) = times(&stat)?;
    Some((user as f64 / ticks, system as f64 / ticks))
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
    fn an_ignored_signal_is_seen() {
        let status = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n";
        assert!(ignores(status, SIGHUP) && !ignores(status, SIGINT) && !ignores("", SIGHUP));
    }

    #[test]
    fn a_command_has_the_limit_of_files_that_it_is_given() {
        let command = ["sh", "-c", "exit $(ulimit -Sn)"].map(OsString::from);
        let limit = rustix::process::getrlimit(Resource::Nofile);
        let child = Child::start(&command, Some(Rlimit { current: Some(77), ..limit })).unwrap();
        assert_eq!(child.take().unwrap().0, Exit::Code(77));
    }

    #[test]
    fn the_end_of_a_command_is_told() {
        let start = |command: &[&str]| {
            let command: Vec<OsString> = command.iter().map(OsString::from).collect();
            Child::start(&command, None)
        };
        let run = |script: &str| start(&["sh", "-c", script]).unwrap().take().unwrap().0;
        assert_eq!(run("exit 7"), Exit::Code(7));
        assert_eq!(run("kill -KILL $$"), Exit::Signal(9));
        let error = start(&["/no/such/program"]).err().unwrap().to_string();
        assert!(error.contains("/no/such/program"), "{error}");
    }
}
