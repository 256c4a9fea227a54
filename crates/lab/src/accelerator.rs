//! How guests run at the same time: by the host's CPUs where KVM works, otherwise emulated.
//!
//! A machine may have `/dev/kvm`, create guests and still not run one: it is tried with the kernel itself, which
//! prints its first line within a fraction of a second. The answer is kept, because a guest that does not run costs
//! the whole limit.

use crate::options::names;
use crate::{Folder, Kernel, Qemu};
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The accelerator of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// The emulator, with a thread for each CPU of the guest.
    Tcg,
    /// The host's CPUs.
    Kvm,
}

impl Accelerator {
    pub(crate) fn option(self) -> &'static str {
        match self {
            Accelerator::Tcg => "tcg,thread=multi",
            Accelerator::Kvm => "kvm",
        }
    }
}

impl Accelerator {
    /// The guest's CPU. The emulated one has the instruction through which QEMU's seed reaches the kernel, and
    /// otherwise as few as there are, because what is omitted need not be saved and restored.
    pub(crate) fn cpu(self) -> &'static str {
        match self {
            Accelerator::Tcg => "qemu64,+rdrand",
            Accelerator::Kvm => "host",
        }
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Accelerator::Tcg => "tcg",
            Accelerator::Kvm => "kvm",
        })
    }
}

/// How long the first line may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The fastest accelerator that works on this machine.
pub(crate) fn choose(qemu: &Qemu, kernel: &Kernel, folder: &Folder) -> Accelerator {
    let device = Path::new("/dev/kvm");
    if std::fs::File::options().read(true).write(true).open(device).is_err() {
        return Accelerator::Tcg;
    }
    let host = rustix::system::uname();
    let key = format!("{} on {}", qemu.version, host.release().to_string_lossy());
    let file = folder.path.join("kvm");
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    let works = match known.lines().find_map(|line| line.strip_suffix(&key)) {
        Some(answer) => answer == "works: ",
        None => {
            let works = try_kvm(qemu, kernel).unwrap_or(false);
            let answer = if works { "works" } else { "does not work" };
            // Not kept, it is tried again the next time.
            let _ = std::fs::write(&file, format!("{answer}: {key}\n"));
            works
        }
    };
    if works { Accelerator::Kvm } else { Accelerator::Tcg }
}

/// True if the kernel prints a message within the limit.
fn try_kvm(qemu: &Qemu, kernel: &Kernel) -> Option<bool> {
    let directory = tempfile::tempdir().ok()?;
    let image = std::fs::canonicalize(&kernel.image).ok()?;
    std::os::unix::fs::symlink(image, directory.path().join(names::KERNEL)).ok()?;
    let console = directory.path().join(names::CONSOLE);
    let serial = format!("file:{}", names::CONSOLE);
    let options = [
        "-no-user-config",
        "-nodefaults",
        "-no-reboot",
        "-display",
        "none",
        "-machine",
        "pc",
        "-accel",
        Accelerator::Kvm.option(),
        "-cpu",
        Accelerator::Kvm.cpu(),
        "-m",
        "256",
        "-serial",
        &serial,
        "-kernel",
        names::KERNEL,
        "-append",
        "earlyprintk=ttyS0 console=ttyS0 panic=-1",
    ];
    let mut running = qemu.start(&options.map(str::to_string), directory.path(), None).ok()?;
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        let ended = running.ended().ok()?.is_some();
        if std::fs::read(&console).is_ok_and(|text| String::from_utf8_lossy(&text).contains("Linux version")) {
            return Some(true);
        }
        if ended {
            return Some(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(false)
}
