//! The emulator as a process.

use crate::Error;
use crate::pinned::Pinned;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// The emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// Its program.
    pub program: PathBuf,
    /// Version as it prints it, such as `10.0.2 (Debian 1:10.0.2+ds-2)`.
    pub version: String,
}

impl Qemu {
    /// The program `qemu-system-x86_64`.
    ///
    /// # Errors
    /// If there is none, or it does not start.
    pub fn find() -> Result<Qemu, Error> {
        Qemu::open(Path::new("qemu-system-x86_64"))
    }

    /// A program by its path.
    ///
    /// # Errors
    /// If it is not there, or does not start.
    pub fn open(program: &Path) -> Result<Qemu, Error> {
        let output = match Command::new(program).arg("--version").stdin(Stdio::null()).output() {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(Error::NoQemu),
            Err(error) => return Err(Error::io(program.display(), error)),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().next().and_then(|line| line.split_once("version "));
        let (_, version) =
            version.ok_or_else(|| Error::Qemu { message: format!("{} reports no version", program.display()) })?;
        Ok(Qemu { program: program.into(), version: version.to_string() })
    }

    /// The first number of its version; 0 if it has none.
    pub fn major(&self) -> u32 {
        self.version.split('.').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Starts it in a directory, with its standard error in the file `stderr`.
    pub(crate) fn start(&self, options: &[String], directory: &Path, pinned: Option<Pinned>) -> Result<Running, Error> {
        let complaints = directory.join(STDERR);
        let stderr = File::create(&complaints).map_err(|e| Error::io(complaints.display(), e))?;
        let mut command = Command::new(&self.program);
        command.args(options).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        // In a group of its own, so that Ctrl-C on the terminal is ours to handle.
        command.process_group(0);
        let parent = rustix::process::getpid();
        let cpus = pinned.as_ref().map(Pinned::set);
        // SAFETY: between fork and exec only functions that are safe in a signal handler may run. The closure makes
        // system calls, allocates nothing, takes no lock, and accesses only the copied process id and set of CPUs.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
                if let Some(cpus) = &cpus {
                    rustix::thread::sched_setaffinity(None, cpus)?;
                }
                // The parent may have died before the call: then the signal is never sent.
                if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::CHILD.into()) }
            });
        }
        let child = command.spawn().map_err(|e| Error::io(self.program.display(), e))?;
        Ok(Running { child, complaints, _pinned: pinned })
    }
}

const STDERR: &str = "stderr";

/// A running emulator. It is killed when dropped, and dies with the thread that started it.
pub(crate) struct Running {
    child: Child,
    complaints: PathBuf,
    _pinned: Option<Pinned>,
}

impl Running {
    /// Its status once it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(|e| Error::io("QEMU", e))
    }

    /// Its error output.
    pub fn complaints(&self) -> String {
        // Warnings of features that the host lacks are irrelevant for an emulated guest.
        let text = std::fs::read_to_string(&self.complaints).unwrap_or_default();
        let own = text.lines().filter(|line| !line.contains("warning: "));
        own.map(|line| line.trim_start_matches("qemu-system-x86_64: ")).collect::<Vec<_>>().join("; ")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let qemu = |version: &str| Qemu { program: "q".into(), version: version.into() };
        assert_eq!(qemu("10.0.2 (Debian 1:10.0.2+ds-2)").major(), 10);
        assert_eq!(qemu("7.2.22").major(), 7);
        assert_eq!(qemu("unknown").major(), 0);
        assert!(matches!(Qemu::open(Path::new("/no/such/qemu")), Err(Error::NoQemu)));
        assert!(matches!(Qemu::open(Path::new("/bin/true")), Err(Error::Qemu { .. })));
    }
}
