//! Features of the lab, and suggested fixes for missing parts.

use crate::image::{OWN_DELAY, OWN_MODULE};
use crate::options::EXACT_NEEDS;
use crate::{Folder, Kernel, Qemu};

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The subject.
    pub name: String,
    /// True if it can be used.
    pub works: bool,
    /// The result.
    pub found: String,
    /// The fix, if it cannot be used.
    pub fix: Option<String>,
}

/// Kernels that the lab is made for.
const KERNELS: [&str; 2] = ["6.1", "6.12"];

/// Checks all programs and files that the lab uses. Changes nothing.
pub fn doctor(folder: &Folder) -> Vec<Check> {
    let mut checks = emulator();
    let busybox = folder.busybox();
    let there = busybox.is_file();
    checks.push(check("busybox", there, busybox.display().to_string(), "make lab"));
    let delay = folder.dm_delay();
    checks.push(check("dm-delay, for disks with latency", delay.is_file(), delay.display().to_string(), "make lab"));
    let mut names = folder.kernels();
    names.extend(KERNELS.iter().filter(|name| !folder.path.join("kernels").join(name).exists()).map(|n| n.to_string()));
    for name in &names {
        for own in [OWN_MODULE, OWN_DELAY] {
            let module = folder.path.join("kernels").join(name).join(format!("modules/extra/{own}.ko"));
            let found = module.display().to_string();
            checks.push(check(&format!("module {own} for {name}"), module.is_file(), found, "make lab"));
        }
    }
    for name in names {
        checks.push(match folder.kernel(&name, None) {
            Ok(Kernel { version, .. }) => check(&format!("kernel {name}"), true, version, ""),
            Err(_) => {
                let place = folder.path.join("kernels").join(&name);
                check(&format!("kernel {name}"), false, format!("nothing usable in {}", place.display()), "make lab")
            }
        });
    }
    // Nothing needs them.
    let built = folder.built();
    let found = if built.is_empty() { "none: `make lab-variants` builds them".into() } else { built.join(", ") };
    checks.push(check("kernel variants for before/after comparisons", true, found, ""));
    let mkfs = std::process::Command::new("mkfs.ext4").arg("-V").output().is_ok();
    let found = if mkfs { "found" } else { "not found: scenarios with files cannot run" };
    checks.push(check("mkfs.ext4", mkfs, found.into(), "apt-get install e2fsprogs"));
    checks
}

fn emulator() -> Vec<Check> {
    match Qemu::find() {
        Ok(qemu) => {
            let exact = qemu.major() >= EXACT_NEEDS;
            let found =
                if exact { "bit-reproducible runs".into() } else { format!("needs QEMU {EXACT_NEEDS} or newer") };
            vec![check("QEMU", true, qemu.version, ""), check("mode exact", exact, found, "make lab")]
        }
        Err(_) => vec![check("QEMU", false, "no qemu-system-x86_64".into(), "make lab")],
    }
}

fn check(name: &str, works: bool, found: String, fix: &str) -> Check {
    Check { name: name.into(), works, found, fix: (!works).then(|| fix.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_has_a_fix() {
        let directory = tempfile::tempdir().expect("directory");
        let checks = doctor(&Folder { path: directory.path().into() });
        let built = checks.iter().find(|c| c.name == "kernel variants for before/after comparisons").expect("a check");
        assert!(built.works && built.found.contains("make lab-variants"), "{built:?}");
        let lacking =
            |name: &str| checks.iter().any(|c| c.name == name && !c.works && c.fix.as_deref() == Some("make lab"));
        assert!(
            lacking("busybox") && lacking("kernel 6.1") && lacking("module mmtwin for 6.1") && lacking("kernel 6.12")
        );
    }
}
