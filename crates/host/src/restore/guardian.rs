//! A process that outlives a run that is killed, and undoes its changes.

use super::folder::settle;
use crate::{Error, instance, tracefs};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// First argument of an executable that is to be a guardian: it calls [`guardian`] and ends with its result.
pub const GUARDIAN: &str = "workload-guardian";

/// Handle of the run to its guardian, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Guardian(Child);

impl Guardian {
    /// Starts it, and waits until signals do not end it any more.
    pub fn start(journal: &Path) -> Result<Guardian, Error> {
        let fail = |e| Error::io("starting the guardian of the run", e);
        let mut command = Command::new("/proc/self/exe");
        command.arg(GUARDIAN).arg(journal).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Signals of the terminal to the run are not for the guardian.
        let mut child = command.process_group(0).spawn().map_err(fail)?;
        let ready = child.stdout.take().map_or(Ok(0), |mut out| out.read(&mut [0; 1]));
        match ready {
            Ok(1) => Ok(Guardian(child)),
            other => {
                let _ = child.kill();
                let _ = child.wait();
                Err(fail(other.err().unwrap_or_else(|| io::Error::other("it exited immediately"))))
            }
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // The end of its input is the end of the run.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Is the guardian of a run: waits for the end of its standard input, which the run holds open, and undoes what is then
/// in its journal, the second argument of the executable. Returns the exit status.
pub fn guardian() -> i32 {
    let Some(journal) = std::env::args_os().nth(2) else { return 2 };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // A session of its own: the end of the run's terminal does not reach it.
    let _ = rustix::process::setsid();
    // Where memory runs out, it is needed.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let ready = io::stdout().write_all(b"\n").and_then(|()| io::stdout().flush());
    let mut input = io::stdin().lock();
    let mut byte = [0; 1];
    while ready.is_ok() {
        match input.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let journal = Path::new(&journal);
    if !journal.exists() {
        return 0;
    }
    // The terminal may be closed.
    let mut say = |line: &str| drop(writeln!(io::stderr(), "mmtwin: {line}"));
    let settled = settle(journal, true, &mut say);
    // The run's instance has lost its owner.
    let _ = tracefs::open().map(|tracefs| instance::clean(tracefs.path()));
    match settled {
        Ok(()) => 0,
        Err(error) => {
            say(&error.to_string());
            1
        }
    }
}
